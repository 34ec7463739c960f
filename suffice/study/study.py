"""A study: models × images × measurements, run to the end, kept in a folder, read as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import StudyError
from suffice.plugins import did_you_mean
from suffice.progress import reporting
from suffice.study.asked import Asked, read_dict, read_file
from suffice.study.local import forget_failed, run_here
from suffice.study.plan import PLAN, Plan, changes, make_plan
from suffice.study.store import Store

if TYPE_CHECKING:
    import pyarrow


class Study:
    """Models × images × measurements.

    Args:
        name: Of the study.
        images: Which images: a path, or a mapping with ``source``, ``take``, ``every``, ``classes``, ``root``.
        models: Which models: names, or mappings with ``name``, ``checkpoint``, ``seeds``, ``family``, ``label``.
        measure: Which measurements, by name: mappings with ``kind`` and the options of the kind.
        run: What holds for all of them: ``precision``, ``compile``, ``batch``, ``seed``, ``block``, ``misfits``,
            ``maps``.
        base: Folder that paths are relative to.

    Attributes:
        asked: What is asked, checked.
        store: The folder of results; None before it is run.

    Example:
        >>> import tempfile
        >>> study = Study("example", "scenes:test[:4]", ["zoo/resnet"], {"said": {"kind": "predictions"}})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = study.run(folder, device="cpu").table("said")
        >>> table.num_rows, table.column_names[:3]
        (4, ['model', 'image', 'image_id'])
    """

    def __init__(
        self,
        name: str,
        images: Any,
        models: Any,
        measure: Mapping[str, Mapping[str, Any]],
        run: Mapping[str, Any] | None = None,
        *,
        base: str | Path = ".",
    ) -> None:
        content = {"name": name, "images": images, "models": models, "measure": measure, "run": run or {}}
        self.asked: Asked = read_dict(content, base)
        self.store: Store | None = None
        self._text, self._suffix = json.dumps(content, indent=1), ".json"

    @classmethod
    def open(cls, path: str | Path) -> Study:
        """Read the file of a study, or open the folder of one that was run."""
        made = cls.__new__(cls)
        store = Store(path)
        if store.exists(PLAN):
            made.store, made.asked = store, Plan.load(store).asked
            made._text, made._suffix = "", ""
            return made
        if Path(path).is_dir():
            raise StudyError(f"There is no study in {path}: no {PLAN}.")
        made.asked, made._text = read_file(path)
        made.store, made._suffix = None, Path(path).suffix
        return made

    def run(
        self,
        out: str | Path | None = None,
        *,
        only: str | Sequence[str] = (),
        device: str | None = None,
        retry_failed: bool = False,
        progress: bool = False,
    ) -> Study:
        """Do what is not done yet; what is there already, from before an interruption, stays.

        Args:
            out: The folder, or any address that fsspec knows; default: the one that was opened.
            only: Just these measurements.
            device: Instead of the first GPU if there is one.
            retry_failed: Do again what failed.
            progress: Show how far it is.

        Returns:
            The study of that folder, to be read.

        Raises:
            StudyError: The folder has another study, or something is asked for that cannot be; nothing was done then.
        """
        if out is None and self.store is None:
            raise StudyError("Say where results are to be kept: run(out).")
        store = self.store if out is None else Store(out)
        assert store is not None
        wanted = [only] if isinstance(only, str) else list(only)
        for name in wanted:
            if name not in self.asked.measure:
                hint = did_you_mean(name, self.asked.measure) or f" There are {', '.join(self.asked.measure)}."
                raise StudyError(f"There is no measurement {name!r}.{hint}")
        plan = self._planned(store, device)
        if retry_failed:
            forget_failed(plan, store, wanted)
        with reporting(progress, self.asked.name):
            run_here(plan, store, only=wanted, device=device)
        return Study.open(str(store))

    @property
    def plan(self) -> Plan:
        """What has to be done, as it was written when the study began."""
        return Plan.load(self._folder)

    @property
    def tables(self) -> list[str]:
        """Names of the measurements."""
        return list(self.asked.measure)

    def table(self, measurement: str) -> pyarrow.Table:
        """All rows of a measurement so far, in order of models and images; ``model`` is the first column."""
        from suffice.study.reading import read_table

        return read_table(self.plan, self._folder, measurement)

    def _planned(self, store: Store, device: str | None) -> Plan:
        """The plan of the folder: the one that is there if it is of the same study, else a new one."""
        if not self._text:  # opened from its folder
            return Plan.load(store)
        if not store.exists(PLAN) and store.files():
            raise StudyError(f"{store} is not empty, and has no study. Choose another folder.")
        made = make_plan(self.asked, device)
        with store.lock("plan", wait=True):
            if store.exists(PLAN):
                before = Plan.load(store)
                other = changes(before, made)
                if other:
                    raise StudyError(
                        f"The study in {store} was begun in another way: {'; '.join(other)}. Choose another folder."
                    )
                made = made.as_before(before)
            store.write(f"study{self._suffix}", self._text.encode())
            made.save(store)
        return made

    @property
    def _folder(self) -> Store:
        if self.store is None:
            raise StudyError("This study was not run yet; open the folder of its results.")
        return self.store

    def __repr__(self) -> str:
        where = "" if self.store is None else f" in {self.store}"
        return f"Study({self.asked.name!r}, {len(self.asked.models)} models, {', '.join(self.asked.measure)}{where})"
