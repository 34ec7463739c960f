"""A study as it is now: its plan is read once, and its files are listed once.

A report asks for both hundreds of times; the plan has the name of every image, and a large study thousands of files.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from suffice.study import Store, Study

if TYPE_CHECKING:
    from suffice.study.plan import Plan


class _KeptStore(Store):
    """As :class:`suffice.study.Store`, but what joins the folder later is not listed."""

    def files(self, folder: str = "") -> list[str]:
        if folder not in self._listed:
            self._listed[folder] = super().files(folder)
        return self._listed[folder]

    @cached_property
    def _listed(self) -> dict[str, list[str]]:
        return {}


class _Kept(Study):
    """As :class:`suffice.Study`, but what joins the folder later is not seen."""

    @cached_property
    def plan(self) -> Plan:
        return super().plan


def kept(study: Study) -> Study:
    """The same study, as it is now."""
    made = copy(study)
    made.__class__ = _Kept
    made.store = None if study.store is None else _KeptStore(study.store.place)
    return made
