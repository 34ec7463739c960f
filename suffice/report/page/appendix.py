"""Methods, settings, versions and references of a study, ready for the appendix of a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from suffice.attribution import find_method
from suffice.errors import SufficeError
from suffice.metrics import find_metric, find_protocol
from suffice.report.page.content import Cell, Column, Table
from suffice.report.page.sources import in_words
from suffice.report.page.wording import counted, listed
from suffice.study.reading import read_about

if TYPE_CHECKING:
    from suffice.study import Study

# By the name of a method, a metric or a kind of measurement.
CITED = {
    "evidence": ("shitole2021one", "jiang2024comparing"),
    "cross-test": ("jiang2024comparing",),
    "activations": ("jiang2024comparing",),
    "sanity": ("adebayo2018sanity",),
    "tis": ("englebert2023explaining",),
    "eea": ("barkan2023learning",),
    "vit-shapley": ("covert2023learning",),
    "vit-cx": ("xie2023vitcx",),
    "occlusion": ("zeiler2014visualizing",),
    "gradient": ("simonyan2014deep",),
    "integrated-gradients": ("sundararajan2017axiomatic",),
    "smoothgrad": ("smilkov2017smoothgrad",),
    "grad-cam": ("selvaraju2017gradcam",),
    "grad-cam++": ("chattopadhyay2018gradcampp",),
    "adp": ("chattopadhyay2018gradcampp",),
    "pic": ("chattopadhyay2018gradcampp",),
    "score-cam": ("wang2020scorecam",),
    "energy-pointing-game": ("wang2020scorecam",),
    "rise": ("petsiuk2018rise",),
    "insertion": ("petsiuk2018rise",),
    "deletion": ("petsiuk2018rise",),
    "ins-del": ("petsiuk2018rise",),
    "i-gos": ("qi2020visualizing",),
    "igos+": ("khorram2021igos",),
    "igos++": ("khorram2021igos",),
    "rollout": ("abnar2020quantifying",),
    "partial-lrp": ("voita2019analyzing", "chefer2021transformer"),
    "cgw1": ("chefer2021transformer",),
    "raw-attention": ("chefer2021transformer",),
    "attention-grad-cam": ("chefer2021transformer",),
    "pos": ("chefer2021transformer",),
    "neg": ("chefer2021transformer",),
    "cgw2": ("chefer2021generic",),
    "tam": ("yuan2021explaining",),
    "bt-h": ("chen2022beyond",),
    "bt-t": ("chen2022beyond",),
    "layer-cam": ("jiang2021layercam",),
    "hires-cam": ("draelos2020hirescam",),
    "eigen-cam": ("muhammad2020eigencam",),
    "deep-lift": ("shrikumar2017learning",),
    "deep-shap": ("lundberg2017unified",),
    "kernel-shap": ("lundberg2017unified",),
    "lime": ("ribeiro2016why",),
    "morf": ("samek2017evaluating",),
    "lerf": ("samek2017evaluating",),
    "pointing-game": ("zhang2016topdown",),
    "aic": ("kapishnikov2019xrai",),
    "sic": ("kapishnikov2019xrai",),
    "sensitivity-max": ("yeh2019infidelity",),
    "sparseness": ("chalasani2020concise",),
    "localization": ("zhou2016learning",),
}
WRITTEN = "As each measurement wrote it beside its results; of several methods, those of the first."
STATISTICS = ("wilcoxon1945individual", "holm1979simple", "efron1987better")


def prose_of(study: Study) -> list[str]:
    """How the study was made, a paragraph a measurement."""
    plan = study.plan
    source = plan.asked.to_dict()["images"]["source"]
    images = source if isinstance(source, str) else listed([str(one) for one in source])
    families = dict.fromkeys(model.family for model in plan.models if model.family)
    of = f" of {counted(len(families), 'family', 'families')}" if families else ""
    asked = (
        f" and over the {counted(len(plan.asked.contrasts), 'comparison')} that the study was made for on their own,"
        if plan.asked.contrasts
        else ","
    )
    lines = [
        f"We studied {counted(len(plan.models), 'model')} ({listed([m.label for m in plan.models], 24)}){of} "
        f"on {counted(len(plan.names), 'image')} ({_relative(images)}) "
        f"with suffice {plan.versions.get('suffice', '')} and PyTorch {plan.versions.get('torch', '')}, in "
        f"{plan.asked.run.precision}, with the random seed {plan.asked.run.seed}."
    ]
    for table in study.tables:
        names = plan.asked.named(table)
        measurement: Any = plan.measurements[names[0]]
        paragraph = _paragraph(table, measurement, [plan.measurements[name] for name in names])
        lines += [paragraph] if paragraph else []
    lines.append(
        "Two models are compared over the images that both have a value for, by Wilcoxon’s signed-rank test "
        "[wilcoxon1945individual], two-sided; p-values are corrected by Holm’s rule [holm1979simple] over all pairs of "
        f"a quantity{asked} and differences with a corrected p-value below 0.05 are called significant. Counts are "
        "compared by the geometric mean of (1 + first) / (1 + second), with Student’s t interval of its logarithm; "
        "other quantities by mean differences with bias-corrected and accelerated bootstrap intervals "
        "[efron1987better]. Intervals are at the 95 % level. Effect sizes are rank-biserial correlations."
    )
    return lines


def _paragraph(table: str, measurement: Any, all_of_it: Iterable[Any]) -> str:
    kind = measurement.kind
    cited = _cited([kind])
    if kind == "evidence":
        s = measurement.settings
        share = f"{s.threshold:.0%} of the confidence in the {measurement.target_class} class"
        top = "the class on top"
        ended = "" if s.max_mses is None else f", which ends with the size at which it has more than {s.max_mses} sets"
        kept = {"ratio": f"keeps {share}", "top-1": f"keeps {top}", "both": f"keeps {top} and {share}"}[s.keeps]
        return (
            f"Evidence ({table}): minimal sufficient explanations{cited} on a grid of {s.grid} × {s.grid} cells. A set "
            f"of cells is sufficient if it {kept}, the other cells showing the baseline {s.baseline!r}. They are found "
            f"by a beam search of width {s.beam_width} up to {min(s.max_size, s.grid**2)} cells{ended}; "
            f"sub-explanations are counted as {s.counting!r}, down to a ratio of {s.expand_at:g}."
        )
    if kind == "attribution":
        methods = [(one.label or one.method, one.method, one.options) for one in all_of_it]
        said = [
            f"{label}{_cited([name])}{f' with {in_words(options)}' if options else ''}"
            for label, name, options in methods
        ]
        return f"Maps ({table}): {listed(said, 40)}, of the {measurement.target_class} class."
    if kind in ("metrics", "cross-test"):
        judged = listed([f"{metric}{_cited([metric])}" for metric in measurement.metrics], 40)
        if kind == "cross-test":
            judged = f"maps of every model ({measurement.maps}) shown to every model{cited}, judged by {judged}"
        about = _protocol(measurement.protocol)
        other = f"Here instead: {in_words(measurement.options)}." if measurement.options else ""
        what = "Scores" if kind == "metrics" else "Cross-test"
        return f"{what} ({table}): {judged}, by the protocol {measurement.protocol!r}. {about} {other}".strip()
    if kind == "sanity":
        maps = f"Sanity ({table}): maps of {measurement.method}"
        if measurement.check == "data":
            return f"{maps} beside those of the same network trained on permuted labels{cited}."
        draws = counted(measurement.draws, "draw")
        return f"{maps} while weights are made random{cited}, {measurement.check}, {draws}."
    if kind == "predictions":
        return f"Predictions ({table}): the likeliest classes of whole images, with their softmax probabilities."
    if kind == "activations":
        return f"Activations ({table}): the largest activation of each channel of a layer, image by image{cited}."
    return f"{kind.capitalize()} ({table}){cited}."


def settings_tables(study: Study) -> list[Table]:
    """Every setting of every measurement, and the versions of what computed."""
    plan = study.plan
    rows = []
    for table in study.tables:
        name = plan.asked.named(table)[0]
        model = next((model.label for model in plan.models if plan.measured(name, model)), None)
        about = {} if model is None or study.store is None else read_about(plan, study.store, name, model)
        settings = about.get("settings") if isinstance(about.get("settings"), Mapping) else plan.asked.measure[name]
        rows.append([Cell(table), Cell(plan.measurements[name].kind), Cell(in_words(settings or {}))])
        if about:
            where = {key: about.get(key) for key in ("device", "precision", "versions", "date") if about.get(key)}
            rows.append([Cell(table), Cell("where"), Cell(in_words(where))])
    columns = [Column("Measurement"), Column("What"), Column("Settings", "wide")]
    models = [
        [Cell(m.label), Cell(m.name), Cell((m.checkpoint and _relative(m.checkpoint)) or "–"), Cell(m.weights or "–")]
        for m in plan.models
    ]
    heads = [Column("Model"), Column("Name"), Column("Checkpoint"), Column("Hash of the weights")]
    return [
        Table("settings", "Every setting", columns, rows, reading=WRITTEN),
        Table("weights", "Models and weights", heads, models),
    ]


def bibtex_of(study: Study) -> str:
    """BibTeX of all that the study used."""
    used: list[str] = []
    for one in study.plan.measurements.values():
        names = [one.kind, getattr(one, "method", ""), *getattr(one, "metrics", ())]
        for name in names:
            used += _keys(str(name).partition("/")[0])
    wanted = dict.fromkeys((*used, *STATISTICS))
    entries = _entries()
    own = (
        "@software{suffice,\n  title = {suffice: what is enough for an image classifier to decide},\n"
        f"  author = {{{{The suffice developers}}}},\n  version = {{{study.plan.versions.get('suffice', '')}}}\n}}"
    )
    return "\n".join([own, *(entries[key] for key in wanted if key in entries)])


def _keys(name: str) -> tuple[str, ...]:
    """References of a method, metric or kind; of an alias, those of what it stands for."""
    if name in CITED or not name:
        return CITED.get(name, ())
    for find in (find_method, find_metric):
        try:
            return CITED.get(find(name).name, ())
        except SufficeError:
            continue
    return ()


def _cited(names: Iterable[str]) -> str:
    keys = dict.fromkeys(key for name in names for key in _keys(name.partition("/")[0]))
    return f" [{', '.join(keys)}]" if keys else ""


def _entries() -> dict[str, str]:
    text = (files("suffice.report.page") / "references.bib").read_text(encoding="utf-8")
    found = re.findall(r"@\w+\{(\w+),.*?\n\}", text, flags=re.S)
    parts = re.split(r"(?m)^(?=@)", text)
    return dict(zip(found, [part.strip() for part in parts if part.strip()], strict=True))


def _protocol(name: str) -> str:
    try:
        return find_protocol(name).about.removeprefix("Ours. ")
    except SufficeError:
        return ""


def _relative(path: str) -> str:
    """A path without the folders that exist on one machine only.

    Example:
        >>> _relative("/home/someone/photos/list.csv"), _relative("$DATA/photos"), _relative("scenes:test[:4]")
        ('…/photos/list.csv', '$DATA/photos', 'scenes:test[:4]')
    """
    parts = path.split("/")
    return "/".join(["…", *parts[-2:]]) if path.startswith("/") and len(parts) > 3 else path
