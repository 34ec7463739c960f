"""Explain images by every method on every model, measure the maps, and put the scores in a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from suffice.attribution import Attribution, Method, attribute, find_method
from suffice.errors import OptionError
from suffice.metrics.api import measure
from suffice.metrics.choices import choices_of, questions_of
from suffice.metrics.protocols import Protocol, TargetClass, find_protocol
from suffice.metrics.score_table import ScoreTable, TableRow
from suffice.metrics.scores import Scores
from suffice.perturb.runner import AnyPrecision, Runner
from suffice.progress import plan, reports, stage
from suffice.vision import Classifier, Images, Model, as_classifier, open_images
from suffice.vision.provenance import provenance
from suffice.vision.stream import OnError, readable

# So many images are explained and measured before their maps are let go of.
BLOCK = 256


@dataclass(frozen=True)
class Entry:
    """A method with options of its own, as one line of a table.

    Attributes:
        method: Itself, or its name.
        options: Its options.
        label: What the table calls it; default: the name of the method, and the options.
    """

    method: str | Method
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def found(self) -> Method:
        """The method itself."""
        return find_method(self.method)

    @property
    def name(self) -> str:
        """What the table calls it."""
        return self.label or " ".join([self.found.name, *(f"{key}={value}" for key, value in self.options.items())])

    def fits(self, net: Classifier) -> bool:
        """Whether the method, with its options, fits a model."""
        return self.found.incompatibility(net, self.options) is None


@reports("Scoring")
def score_table(
    nets: Model | Sequence[Model],
    images: Any,
    methods: Sequence[str | Method | Entry],
    metrics: Sequence[str],
    protocol: str | Protocol = "default",
    *,
    target_class: TargetClass | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    metric_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    precision: AnyPrecision = "fp32",
    compile: bool = False,
    on_error: OnError = "raise",
    on_row: Callable[[TableRow], None] | None = None,
    on_table: Callable[[ScoreTable], None] | None = None,
    progress: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> ScoreTable:
    """Explain images by every method on every model, and measure the maps.

    Args:
        nets: The models, or one.
        images: Anything that :func:`suffice.open_images` takes; with labels or boxes where metrics need them.
        methods: The methods; one that does not fit a model is left out for it. An :class:`Entry` has options of its
            own, so that a method can be there more than once.
        metrics: Names of the metrics; ``"insertion/gray"`` is the part of insertion over that baseline, where a
            protocol has several.
        protocol: Every choice behind them.
        target_class: The class that is explained and asked about: the ``"label"`` of the image, or the
            ``"predicted"`` one; None: as the protocol has it.
        options: Of methods, by name.
        metric_options: Of metrics, where they are not to be as the protocol has them; each goes to those that have it.
        seed: Seed of everything random.
        batch_size: Inputs per forward.
        precision: Of the model; methods that propagate relevance are always in fp32, and with ``"auto"`` so are
            gradients; the table records that of the metrics.
        compile: Compile the model, once, for the metrics and for methods that do not look inside it.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and record it.
        on_row: Called with each row when it is done.
        on_table: Called with the table so far, when each row is done.
        progress: Show how many questions were put to the models, how fast, and the time left.
        on_progress: Called with (maps made and measured, in all).

    Example:
        >>> from suffice.testing import WeightedSum
        >>> oracle = WeightedSum({5: 1.0, 6: 1.0}, threshold=1.0, grid=4, link="smooth")
        >>> entries = [Entry("rise", {"masks": count}) for count in (10, 200)]
        >>> table = score_table([oracle.classifier(32)], oracle.image(32), entries, ["insertion"])
        >>> [row.method for row in table.rows]
        ['rise masks=10', 'rise masks=200']
    """
    chosen = find_protocol(protocol)
    wanted = list(dict.fromkeys(map(_metric_of, metrics)))
    choices = choices_of(wanted, chosen, metric_options or {})  # what cannot be is said before any work
    given = [nets] if isinstance(nets, (Classifier, nn.Module)) else nets
    classifiers = [as_classifier(net) for net in given]
    opened, skipped = readable(open_images(images), on_error)
    explained = explained_class(opened, chosen, target_class)
    entries = [_entry(method, options or {}) for method in methods]
    names = [entry.name for entry in entries]
    if len(set(names)) < len(names):
        twice = ", ".join(sorted({name for name in names if names.count(name) > 1}))
        raise OptionError(f"There is more than one {twice}; write Entry(method, options, label) with different labels.")
    for entry in entries:
        entry.found.check(entry.options)
    pairs = [(net, entry) for net in classifiers for entry in entries if entry.fits(net)]
    if not pairs:
        models = ", ".join(net.name for net in classifiers) or "no model"
        said = ", ".join(names) or "no method"
        raise OptionError(f"None of {said} fits {models}; suffice.list_methods() lists others.")
    for net, entry in pairs:
        questions = entry.found.questions_of(net, entry.options), questions_of(net, wanted, choices)
        for name, each in zip(_stages(net, entry), questions, strict=True):
            plan(name, len(opened), each)
    settings: dict[str, Any] = {
        "protocol": chosen.name, "metrics": choices, "target_class": explained, "seed": seed,
        "methods": {entry.name: {"method": entry.found.name, "options": dict(entry.options)} for entry in entries},
    }  # fmt: skip
    about = {}
    for net in dict.fromkeys(n for n, _ in pairs):
        records = {entry.name: entry.found.records_of(net, entry.options) for n, entry in pairs if n is net}
        recorded = {name: {**one, **records.get(name, {})} for name, one in settings["methods"].items()}
        computed = Runner(net, precision=precision).precision
        about[net.name] = provenance(net, {**settings, "methods": recorded}, precision=computed)
    unread = {skip.index for skip in skipped}
    index = tuple(i for i in range(len(opened) + len(skipped)) if i not in unread)
    table = ScoreTable((), tuple(metrics), chosen.name, len(opened), tuple(skipped), about, index)
    runner: Runner | None = None
    for number, (net, entry) in enumerate(pairs):
        if runner is None or runner.net is not net:
            runner = Runner(net, batch_size=batch_size, precision=precision, compile=compile)

        def report(done: int, before: int = number * len(opened)) -> None:
            if on_progress is not None:
                on_progress(before + done, len(pairs) * len(opened))

        explaining = partial(attribute, net, method=entry.found, seed=seed, runner=runner, **entry.options)
        measuring = partial(measure, net, protocol=chosen, target_class="explained", seed=seed, runner=runner)
        measuring = partial(measuring, **(metric_options or {}))
        stages = _stages(net, entry)
        found = _blockwise(opened, metrics, explained == "label", explaining, measuring, stages, report)
        row = TableRow(net.name, entry.name, **found, names=opened.names, ids=opened.ids)
        table = replace(table, rows=(*table.rows, row))
        if on_row is not None:
            on_row(row)
        if on_table is not None:
            on_table(table)
    return table


def explained_class(
    images: Images, protocol: Protocol, target_class: TargetClass | None = None
) -> Literal["label", "predicted"]:
    """Which class of images is to be explained; one that they do not say is an error."""
    if (target_class or protocol.target_class) != "label":
        return "predicted"
    if None in images.labels:
        raise OptionError(
            f"The protocol {protocol.name!r} asks about the label of each image, and {images.labels.count(None)} of "
            f"{len(images)} have none. Write target_class='predicted', or open_images(…, labels=…)."
        )
    return "label"


def _entry(given: str | Method | Entry, options: Mapping[str, Mapping[str, Any]]) -> Entry:
    if isinstance(given, Entry):
        return replace(given, options={**options.get(given.found.name, {}), **given.options}, label=given.name)
    method = find_method(given)
    return Entry(method, options.get(method.name, {}), method.name)


def _blockwise(
    images: Images,
    columns: Sequence[str],
    of_labels: bool,
    explaining: Callable[..., Attribution],
    measuring: Callable[..., Scores],
    stages: tuple[str, str],
    report: Callable[[int], None],
) -> dict[str, Any]:
    """What is found about one row, block by block, so that memory does not grow with the number of images.

    That is ``values`` by column, the ``targets`` explained, and ``seconds`` an image.
    """
    values: dict[str, list[Tensor]] = {column: [] for column in columns}
    wanted = list(dict.fromkeys(map(_metric_of, columns)))
    classes: list[Tensor] = []
    seconds = 0.0
    for start in range(0, len(images), BLOCK):
        some = images[start : start + BLOCK]
        targets = [label for label in some.labels if label is not None] if of_labels else None
        begun = time.perf_counter()
        with stage(stages[0], len(some)):
            maps = explaining(images=some, targets=targets)
        classes.append(maps.targets)
        seconds += time.perf_counter() - begun
        with stage(stages[1], len(some)):
            scores = measuring(images=some, maps=maps, metric=wanted)
        for column in columns:
            values[column].append(scores[column].values.cpu())
        report(start + len(some))
    joined = {column: torch.cat(parts) for column, parts in values.items()}
    return {"values": joined, "targets": torch.cat(classes), "seconds": seconds / len(images)}


def _stages(net: Classifier, entry: Entry) -> tuple[str, str]:
    """What a report of the progress calls the making of maps, and the measuring."""
    return f"{entry.name} on {net.name}", f"metrics of {entry.name} on {net.name}"


def _metric_of(column: str) -> str:
    return column.partition("/")[0]
