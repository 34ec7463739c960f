"""A study: models × images × measurements, run to the end, kept in a folder, read as tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from suffice.errors import StudyError
from suffice.options import check_options
from suffice.plugins import resolve
from suffice.progress import reporting
from suffice.study.asked import Asked, read_dict, read_file
from suffice.study.choices import HowToRun
from suffice.study.local import forget_failed, forget_outgrown, run_here
from suffice.study.models import without_weights
from suffice.study.plan import IMAGES, PLAN, Plan, changes, make_plan, only_gone, versions_here
from suffice.study.store import Store

if TYPE_CHECKING:
    import pyarrow

    from suffice.attribution import Attribution
    from suffice.evidence import EvidenceSet
    from suffice.metrics import ScoreTable
    from suffice.study.estimate import Estimate
    from suffice.study.status import Status


class Study:
    """Models × images × measurements.

    Args:
        name: Of the study.
        images: Which images: a path, or a mapping with ``source``, ``take``, ``every``, ``classes``, ``root``.
        models: Which models: names, or mappings with ``name``, ``checkpoint``, ``seeds``, ``family``, ``label``.
        measure: Which measurements, by name: mappings with ``kind`` and the options of the kind.
        run: What holds for all of them: ``precision``, ``compile``, ``batch``, ``seed``, ``block``, ``misfits``,
            ``maps``.
        contrasts: The comparisons that it is made for: mappings with ``of``, ``against``, ``question``.
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
        contrasts: Sequence[Mapping[str, str]] = (),
        base: str | Path = ".",
    ) -> None:
        content = {"name": name, "images": images, "models": models, "measure": measure, "run": run or {}}
        content["contrasts"] = list(contrasts)
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
        if Path(path).is_dir() or "://" in str(path):
            raise StudyError(f"There is no study in {path}: no {PLAN}.")
        if not Path(path).exists() and Path(path).suffix not in (".toml", ".json"):
            raise StudyError(f"There is no study in {path}: no such file or folder.")
        made.asked, made._text = read_file(path)
        made.store, made._suffix = None, Path(path).suffix
        return made

    def run(
        self,
        out: str | Path | None = None,
        *,
        only: str | Sequence[str] = (),
        device: str | None = None,
        engine: Literal["local", "ray"] = "local",
        address: str | None = None,
        gpus: float | None = None,
        cpus: float | None = None,
        retry_failed: bool = False,
        progress: bool = False,
    ) -> Study:
        """Do what is not done yet; what is there already, from before an interruption, stays.

        Args:
            out: The folder, or any address that fsspec knows; default: the one that was opened.
            only: Just these measurements, and those whose maps they read.
            device: Instead of the first GPU if there is one; with Ray, ``"cpu"`` or ``"cuda"``.
            engine: ``"local"`` works in this process; ``"ray"`` on several GPUs, or a cluster.
            address: Of the Ray cluster; default: the one that this machine belongs to, or a new one on it.
            gpus: With Ray, those that a task takes; default: 1 if there are some.
            cpus: With Ray, those that a task takes; default: 1 beside a GPU, else as many as this process has threads.
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
        wanted = self._wanted(only)
        run_all = _engine(engine, store, device, address=address, gpus=gpus, cpus=cpus)
        plan = self._planned(store, None if engine == "ray" and device != "cpu" else device)
        if retry_failed:
            forget_failed(plan, store, wanted)
        forget_outgrown(plan, store, wanted)
        with reporting(progress, self.asked.name):
            run_all(plan, store, only=wanted, device=device)
        return Study.open(str(store))

    def dry_run(
        self,
        out: str | Path | None = None,
        *,
        only: str | Sequence[str] = (),
        device: str | None = None,
        images: int | None = None,
        forwards: float | None = None,
        random_weights: bool = False,
    ) -> Estimate:
        """Say what :meth:`run` would do, how long it would take, and how much space; nothing is written.

        Args:
            out: The folder; what is done there already is left out. Default: the one that was opened, if any.
            only: Just these measurements, and those whose maps they read.
            device: Instead of the first GPU if there is one.
            images: To be measured at once, four times; default: 16 with a GPU, else 2. More fill larger batches.
            forwards: That an image takes in searches for evidence, which do not say so beforehand; default: counted.
            random_weights: Fetch no weights: they do not change how fast a model is. How much a search asks depends on
                them, so that ``forwards`` has to be given; whatever it asks to confirm results in fp32 comes on top.
        """
        from suffice.study.estimate import estimate

        store = None if random_weights else self.store if out is None else Store(out)
        asked = without_weights(self.asked) if random_weights else self.asked
        plan = make_plan(asked, device) if store is None else self._planned(store, device, write=False)
        done = [] if store is None else store.files("tables")
        how: dict[str, Any] = {"images": images, "forwards": forwards, "any_weights": random_weights}
        return estimate(plan, done, only=self._wanted(only), device=device, **how)

    def changed(self, **how: Any) -> Study:
        """The same study, run in another way: ``precision``, ``compile``, ``batch`` and so on, as in ``run``.

        Example:
            >>> study = Study("example", "scenes:test[:4]", ["zoo/resnet"], {"said": {"kind": "predictions"}})
            >>> study.changed(precision="bf16").asked.run.precision
            'bf16'
        """
        check_options(how, HowToRun, "run")
        made = copy(self)
        made.asked = replace(self.asked, run=replace(self.asked.run, **how))
        return made

    @property
    def plan(self) -> Plan:
        """What has to be done, as it was written when the study began."""
        return Plan.load(self._folder)

    @property
    def tables(self) -> list[str]:
        """Names of the tables of results; methods of one list have one together."""
        return self.asked.tables

    @property
    def folder_name(self) -> str:
        """Its name, such that a folder can have it."""
        return re.sub(r"[^\w.+-]+", "-", self.asked.name).strip(".-") or "study"

    def table(self, measurement: str) -> pyarrow.Table:
        """All rows of a measurement so far, in order of models and images; ``model`` is the first column."""
        from suffice.study.reading import read_table

        return read_table(self.plan, self._folder, measurement)

    def evidence(self, model: str | None = None, measurement: str | None = None) -> EvidenceSet:
        """The evidence of a model so far, to be drawn and looked at one by one.

        Args:
            model: Its label; may be left out where there is just one.
            measurement: Which search; may be left out where there is just one. Graphs show what lies below MSEs where
                it has ``regions = true``.
        """
        from suffice.study.reading import read_evidence

        return read_evidence(self.plan, self._folder, model, measurement)

    def maps(self, measurement: str, model: str) -> Attribution:
        """The maps of a model so far, one after the other in the order of the images; those without are skipped."""
        from suffice.study.reading import read_maps_of

        return read_maps_of(self.plan, self._folder, measurement, model)

    def status(self) -> Status:
        """How far it is: a line for each measurement of each model."""
        from suffice.study.status import status_of

        return status_of(self.plan, self._folder)

    def export(self, out: str | Path | None = None, format: Literal["parquet", "csv"] = "parquet") -> list[Path]:
        """Write one file a measurement, and two more: the models, and what failed.

        Args:
            out: A folder; default: ``export`` in that of the study.
            format: ``"parquet"``, or ``"csv"``, where lists are JSON, and pictures and regions are left out.

        Returns:
            The files.
        """
        from suffice.study.export import export

        folder = self._folder
        if out is None and folder.local is None:
            raise StudyError("Say where the tables are to be written: export(out).")
        return export(self.plan, folder, out or Path(folder.root) / "export", format)

    def score_tables(self, order: str | None = None) -> dict[str, ScoreTable]:
        """Tables of methods × metrics by name, one for each table of scores, of the methods that are done.

        Args:
            order: A metric by which the rows of a model are ordered, best first; default: as in the study.
        """
        from suffice.study.score_tables import score_tables

        return score_tables(self.plan, self._folder, order)

    def write_score_tables(self, out: str | Path, order: str | None = None) -> list[Path]:
        """Write these tables to a folder as Markdown, LaTeX, CSV, JSON, and Parquet with every image; the files."""
        from suffice.study.score_tables import write_score_tables

        return write_score_tables(self.score_tables(order), self.plan, out, self.folder_name)

    def report(self, path: str | Path | None = None, **options: Any) -> Any:
        """The report of the study: one HTML file with findings, figures, tables and pictures.

        Args:
            path: Where to write it; default: nowhere yet.
            **options: Those of :func:`suffice.report.make_report`.

        Returns:
            A :class:`suffice.report.Report`, which shows itself in notebooks.
        """
        made = resolve("suffice.reports", "html")(self, **options)
        if path is not None:
            made.save(path)
        return made

    def _wanted(self, only: str | Sequence[str]) -> list[str]:
        """The measurements of these names, and those that they read; none stands for all."""
        named = [only] if isinstance(only, str) else list(only)
        names = [one for name in named for one in self.asked.named(name)]
        read = [read for name in names for read in self.asked.measurements[name].reads]
        return [*dict.fromkeys((*read, *names))]

    def _planned(self, store: Store, device: str | None, *, write: bool = True) -> Plan:
        """The plan of the folder: the one that is there if it is of the same study, else a new one."""
        if self.store is not None:
            if (store.fs, store.root) != (self.store.fs, self.store.root):
                raise StudyError(f"{self.store} is the folder of a study already. For another one, open its file.")
            return _continued(store, replace(Plan.load(store), asked=self.asked, versions=versions_here()))
        if not _is_new(store, f"study{self._suffix}", self._text) and not store.exists(PLAN):
            raise StudyError(f"{store} is not empty, and has no study. Choose another folder.")
        made = make_plan(self.asked, device)
        if not write:
            return _continued(store, made)
        with store.lock("plan", wait=True):
            made = _continued(store, made)
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
        return f"Study({self.asked.name!r}, {len(self.asked.models)} models, {', '.join(self.tables)}{where})"


def _engine(name: str, store: Store, device: str | None, **for_ray: Any) -> Callable[..., int]:
    """What does the shards of a plan; an engine that cannot is an error."""
    check_options({"engine": name}, Study.run)
    if name == "ray":
        from suffice.study.on_ray import check_for_ray, run_on_ray

        check_for_ray(store, device, for_ray["address"], for_ray["gpus"])
        return partial(run_on_ray, **for_ray)
    for option, value in for_ray.items():
        if value is not None:
            raise StudyError(f"{option}={value!r} is for engine='ray'.")
    return run_here


def _is_new(store: Store, name: str, text: str) -> bool:
    """Whether nothing is in a folder, or only what this study began to write before it was killed."""
    found = set(store.files()) - {"locks/plan.lock"}
    return not found or (found <= {name, IMAGES} and name in found and store.read(name) == text.encode())


def _continued(store: Store, made: Plan) -> Plan:
    """A plan such that it goes on with what is in a folder; what does not belong together is an error."""
    if not store.exists(PLAN):
        return made
    before = Plan.load(store)
    if other := changes(before, made):
        instead = f" Or go on without those that are gone: suffice study run {store}" if only_gone(before, made) else ""
        said = f"The study in {store} was begun in another way: {'; '.join(other)}. Take another folder.{instead}"
        raise StudyError(said)
    return made.as_before(before)
