"""A file system that remembers the listings of folders, as those of object stores do; its files are those of memory://."""

from __future__ import annotations

from typing import Any

import fsspec
from fsspec.implementations.memory import MemoryFileSystem


class Listing(MemoryFileSystem):
    protocol = "listing"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.removeprefix("listing://"))

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        path = self._strip_protocol(path)
        if path not in self.dircache:
            self.dircache[path] = super().ls(path, detail=True, **options)
        found = self.dircache[path]
        return found if detail else sorted(one["name"] for one in found)

    def info(self, path: str, **options: Any) -> Any:
        path = self._strip_protocol(path)
        known = self._ls_from_cache(path)  # a file that a listing does not have is none
        same = [one for one in known or [] if one["name"] == path]
        return same[0] if same else super().info(path, **options)

    def exists(self, path: str, **options: Any) -> bool:
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def invalidate_cache(self, path: str | None = None) -> None:
        self.dircache.clear()


fsspec.register_implementation("listing", Listing, clobber=True)
