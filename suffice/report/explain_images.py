"""Images explained by several methods: predictions, maps, scores and one figure an image."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from suffice.attribution import Attribution, Method, attribute, find_method
from suffice.draw.files import Format, check_format, save_picture
from suffice.errors import OptionError, UnreadableImage
from suffice.metrics import Scores, find_protocol, measure
from suffice.metrics.choices import questions_of
from suffice.metrics.tables import write_tables
from suffice.perturb import Runner
from suffice.progress import plan, reports
from suffice.report.explanation import ClassRow, explanation_figure
from suffice.report.names import safe_name
from suffice.vision import Classifier, Images, Model, Predictions, as_classifier, open_images
from suffice.vision.classifier import Targets
from suffice.vision.provenance import as_json, provenance
from suffice.vision.stream import OnError, Skip

# What a figure adds to the name of a class.
_ROLES = {"@label": ", the label", "@1": ", likeliest", "@2": ", second", "@3": ", third"}
MEASURED = ("insertion", "deletion")


@dataclass(frozen=True, eq=False)
class Explanations:
    """Maps of images by several methods, for one class or several.

    Attributes:
        images: Those that could be read.
        predictions: What the model says of them; of a study, of the likeliest classes only, −∞ for the others.
        maps: By target as asked for (``""`` for the predicted class), then by method.
        scores: Insertion and deletion alike, where they were measured.
        skipped: Images that could not be read.
        figures: Files of the figures, where they were written.
        left_out: Why methods were left out, by name: they do not fit the model.
        about: All that has to be known to make the same again; see :func:`suffice.vision.provenance.provenance`.
    """

    net: Classifier
    images: Images
    predictions: Predictions
    maps: Mapping[str, Mapping[str, Attribution]]
    scores: Mapping[str, Mapping[str, Scores]] = field(default_factory=dict)
    skipped: Sequence[Skip] = ()
    figures: Sequence[Path] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """Names of the methods that made maps."""
        return list(next(iter(self.maps.values())))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics that were measured."""
        return MEASURED if self.scores else ()

    def rows(self) -> list[dict[str, Any]]:
        """One for each target, method and image: what was explained and, where it was measured, the scores."""
        return [
            {
                "image": made.names[n], "image_id": made.ids[n], "index": n, "asked": wanted or "@1",
                "target": int(made.targets[n]), "label": made.labels[n], "confidence": float(made.confidences[n]),
                "method": name,
                **{m: float(self.scores[wanted][name][m].values[n]) for m in self.metrics},
            }
            for wanted, by_method in self.maps.items()
            for name, made in by_method.items()
            for n in range(len(made))
        ]  # fmt: skip

    def figure(self, number: int, top: int = 0) -> str:
        """Draw an image, by its number, with its ``top`` predictions: one row a class, one overlay a method, as SVG."""
        rows = []
        for wanted, by_method in self.maps.items():
            first = next(iter(by_method.values()))
            maps = {name: attribution.maps[number] for name, attribution in by_method.items()}
            notes = {
                name: " · ".join(f"{metric} {float(scores[metric].values[number]):.2f}" for metric in MEASURED)
                for name, scores in self.scores.get(wanted, {}).items()
            }
            label = f"{first.labels[number]}{_ROLES.get(wanted, '')}"
            rows.append(ClassRow(label, float(first.confidences[number]), maps, notes))
        picture = self.images[number]
        own = replace(self.predictions, scores=self.predictions.scores[number : number + 1])
        best = [(label, score) for _, label, score in own.top(top)[0]]
        pixels = self.net.geometry(picture.decode())
        return explanation_figure(pixels, rows, title=Path(picture.name).name, model=self.net.name, top=best)

    def draw(self, folder: str | Path, top: int = 3, format: Format = "svg") -> Explanations:
        """Write the figure of each image to a folder; the same explanations with these files as ``figures``."""
        stems = (safe_name(Path(name).stem) for name in self.images.names)
        figures = [Path(folder) / f"{number:05d}-{stem}.{format}" for number, stem in enumerate(stems)]
        for number, file in enumerate(figures):
            save_picture(self.figure(number, top), file, as_json(self.about))
        return replace(self, figures=figures)

    def write_scores(self, folder: str | Path) -> None:
        """Write the scores, where they were measured, as CSV, JSON and Parquet."""
        if self.scores:
            write_tables(folder, "scores", {}, self.rows(), self.rows(), self.about)


@reports("Explaining")
def explain_images(
    net: Model,
    images: Any,
    methods: Sequence[str | Method],
    targets: Sequence[str | int] = (),
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    score: bool = False,
    top: int = 3,
    out: str | Path | None = None,
    format: Format = "svg",
    seed: int = 0,
    runner: Runner | None = None,
    on_error: OnError = "raise",
    progress: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Explanations:
    """Explain images by several methods, measure the maps, and draw one figure an image.

    Args:
        net: The classifier.
        images: Anything that :func:`suffice.open_images` takes.
        methods: The methods; one that does not fit the model is left out.
        targets: The classes to explain, an index or label each; ``"@label"``, that of each image; ``"@1"``, ``"@2"``
            and so on, its likeliest classes. Default: the predicted class.
        options: Of methods, by name.
        score: Measure insertion and deletion.
        top: Predictions to show in figures.
        out: Folder for raw maps, written as soon as they are there, figures, and scores as CSV, JSON and Parquet; None
            to write nothing.
        format: Of the figures: ``"svg"``, ``"png"`` or ``"pdf"``.
        seed: Seed of everything random.
        runner: Of the classifier; default: one in fp32.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and record it.
        progress: Show how many questions were put to the model, how fast, and the time left.
        on_progress: Called with (maps made or measured, in all).

    Example:
        >>> from suffice.testing import WeightedSum
        >>> oracle = WeightedSum({5: 1.0, 6: 1.0}, threshold=1.0, grid=4, link="smooth")
        >>> found = explain_images(oracle.classifier(32), oracle.image(32), ["gradient", "occlusion"], ["@1", "@2"])
        >>> list(found.maps), list(found.maps["@1"])
        (['@1', '@2'], ['gradient', 'occlusion'])
    """
    net = as_classifier(net)
    opened, runner = open_images(images), runner or Runner(net)
    chosen, left_out = fitting([find_method(method) for method in methods], net, options or {})
    check_format(format)
    _plan(net, len(opened), chosen, max(len(targets), 1), options or {}, score)
    predictions = net.predict(opened, batch_size=runner.batch_size, on_error=on_error)
    if not len(predictions):
        raise UnreadableImage(f"None of the images could be read. {predictions.skipped[0].reason}")
    readable = opened[predictions.index.tolist()] if predictions.skipped else opened
    classes = {str(target): _classes(target, readable, predictions) for target in targets} or {"": None}
    folder = None if out is None else Path(out)
    done, total = 0, len(readable) * len(classes) * len(chosen) * (2 if score else 1)

    def report(part: int, _: int) -> None:
        if on_progress is not None:
            on_progress(done + part, total)

    maps: dict[str, dict[str, Attribution]] = {wanted: {} for wanted in classes}
    scores: dict[str, dict[str, Scores]] = {wanted: {} for wanted in classes if score}
    for wanted, of_images in classes.items():
        for method in chosen:
            how = (options or {}).get(method.name, {})
            made = attribute(net, readable, method, of_images, seed=seed, runner=runner, on_progress=report, **how)
            done += len(readable)
            maps[wanted][method.name] = made
            if folder is not None:
                made.save(folder / f"{method.name}{f'-{safe_name(wanted)}' if wanted else ''}.safetensors")
            if score:
                scores[wanted][method.name] = measure(
                    net, readable, made, MEASURED, seed=seed, runner=runner, on_progress=report
                )
                done += len(readable)
    about = provenance(net, settings_of(chosen, options or {}, targets, score, seed), precision=runner.precision)
    found = Explanations(
        net, readable, predictions, maps, scores, predictions.skipped, left_out=left_out, about=about
    )  # fmt: skip
    if folder is None:
        return found
    found.write_scores(folder)
    return found.draw(folder, top, format)


def settings_of(
    methods: Sequence[Method],
    options: Mapping[str, Mapping[str, Any]],
    targets: Sequence[str | int],
    score: bool,
    seed: int,
) -> dict[str, Any]:
    """Every choice behind explanations."""
    of_methods = {method.name: {**method.options, **options.get(method.name, {})} for method in methods}
    return {"methods": of_methods, "targets": list(map(str, targets)), "score": score, "seed": seed}


def fitting(
    methods: Sequence[Method], net: Classifier, options: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Method], dict[str, str]]:
    """The methods that fit a model, each with its options, and why the others do not, by name."""
    reasons = {method.name: method.incompatibility(net, options.get(method.name, {})) for method in methods}
    left_out = {name: reason for name, reason in reasons.items() if reason is not None}
    fitting = [method for method in methods if method.name not in left_out]
    if not fitting:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items()) or "none was named"
        raise OptionError(f"No method fits {net.name} ({why}). suffice.list_methods() lists others.")
    return fitting, left_out


def _plan(
    net: Classifier,
    images: int,
    methods: Sequence[Method],
    classes: int,
    options: Mapping[str, Mapping[str, Any]],
    score: bool,
) -> None:
    """Say what is to come, for reports of the progress; stages have the names that the functions give them."""
    plan("predictions", images, each=1)
    for method in methods:
        plan(method.name, images * classes, method.questions_of(net, options.get(method.name, {})))
    if score:
        choices = {metric: find_protocol("default").options(metric) for metric in MEASURED}
        plan(", ".join(MEASURED), images * classes * len(methods), questions_of(net, MEASURED, choices))


def _classes(wanted: str | int, images: Images, predictions: Predictions) -> Targets:
    """What a target asks for: the same class for all images, or one for each."""
    if not isinstance(wanted, str) or not wanted.startswith("@"):
        return wanted
    if wanted == "@label":
        labels = [label for label in images.labels if label is not None]
        if len(labels) < len(images):
            raise OptionError(f"Target @label: {len(images) - len(labels)} of {len(images)} images have no label.")
        return labels
    classes = predictions.scores.shape[1]
    if not wanted[1:].isdecimal() or not 1 <= int(wanted[1:]) <= classes:
        raise OptionError(f"Target {wanted}: expected @label, or @1 to @{classes}.")
    return [best[-1][0] for best in predictions.top(int(wanted[1:]))]
