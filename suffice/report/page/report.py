"""A report: the page of a study, to be saved, shown, and looked at in notebooks."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from suffice import __version__
from suffice.errors import StudyError
from suffice.report.figures.drawing import Drawing
from suffice.report.figures.registry import figures_of
from suffice.report.page.appendix import bibtex_of, prose_of, settings_tables
from suffice.report.page.content import Page, Section
from suffice.report.page.gallery import gallery_of
from suffice.report.page.keeping import kept
from suffice.report.page.models import measurements_table, models_table
from suffice.report.page.questions import answer, sections_of, tables_by_kind
from suffice.report.page.render import render
from suffice.report.page.wording import counted, listed

if TYPE_CHECKING:
    from suffice.study import Study

LARGEST = 10_000_000  # bytes
MAPS = 2  # methods whose maps are in the gallery
EACH = 2  # images of each rule there


@dataclass(frozen=True, eq=False)
class Report:
    """The report of a study.

    Attributes:
        page: What it says.
        figures: Its figures, which can be saved one by one.
        html: The page as one document.
    """

    page: Page
    figures: Sequence[Drawing]
    html: str

    def save(self, path: str | Path = "report.html") -> Path:
        """Write the page; returns its path."""
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.html, encoding="utf-8")
        return file

    def save_figures(self, folder: str | Path, formats: Sequence[str] = ("svg", "pdf", "png")) -> list[Path]:
        """Write every figure to a folder in each format; returns the files."""
        return [one.save(Path(folder) / f"{one.name}.{kind}") for one in self.figures for kind in formats]

    def show(self) -> None:
        """Show it below the cell of a notebook, elsewhere in the browser."""
        folder = Path(tempfile.mkdtemp(prefix="suffice-"))
        path = self.save(folder / "report.html")
        if not webbrowser.open(path.as_uri()):
            print(f"No browser to show it in; it is in {path}.")

    def _repr_html_(self) -> str:
        look = "width:100%;height:48rem;border:1px solid #d8dee5;border-radius:8px"
        return f'<iframe srcdoc="{escape(self.html)}" style="{look}" title="{escape(self.page.title)}"></iframe>'

    def __repr__(self) -> str:
        size = len(self.html.encode()) / 1e6
        return f"Report({self.page.title!r}, {counted(len(self.page.findings), 'finding')}, {size:.1f} MB)"


def make_report(
    study: Study,
    *,
    figures: Sequence[Drawing] | None = None,
    maps: Sequence[str] | None = None,
    each: int = EACH,
    largest: int = LARGEST,
) -> Report:
    """The report of a study, as far as it is done.

    Args:
        study: That was run.
        figures: Instead of those of :func:`suffice.report.figures.registry.figures_of`.
        maps: Measurements whose maps the gallery shows; default: the first two.
        each: Images that each rule of the gallery chooses.
        largest: Bytes; the gallery is made smaller where the page would be larger.

    Example:
        >>> import tempfile
        >>> from suffice import Study
        >>> study = Study("example", "scenes:test[:8]", ["zoo/resnet", "zoo/deit"], {"said": {"kind": "predictions"}})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report = make_report(study.run(folder, device="cpu"))
        >>> report.page.title, report.html.startswith("<!doctype html>")
        ('example', True)
    """
    study = kept(study)
    kinds = tables_by_kind(study)
    if not kinds:
        raise StudyError("Nothing of this study is done yet; run it first, and then make its report.")
    drawn = list(figures_of(study) if figures is None else figures)
    page = _page(study, kinds, drawn)
    makers = [name for name, one in study.plan.measurements.items() if one.makes_maps] if maps is None else list(maps)
    wanted = makers if maps is not None else makers[:MAPS]
    said, searched = (next(iter(kinds.get(kind, [])), None) for kind in ("predictions", "evidence"))
    for images in dict.fromkeys((each, 1, 0)):
        cases = gallery_of(study, said, searched, wanted, images) if images else []
        html = render(replace(page, cases=cases))
        if len(html.encode()) <= largest:
            break
    return Report(replace(page, cases=cases), drawn, html)


def _page(study: Study, kinds: dict[str, list[str]], figures: Sequence[Drawing]) -> Page:
    plan = study.plan
    found = answer(study, kinds)
    first, sections = sections_of(study, found, figures)
    said = next(iter(kinds.get("predictions", [])), None)
    families = list(dict.fromkeys(model.family for model in plan.models if model.family))
    status = study.status()
    share = sum(line.done for line in status.lines) / max(sum(line.shards for line in status.lines), 1)
    words = [] if share == 1 else [f"It is not finished: {share:.0%} of its work is done."]
    failed = sum(line.failed for line in status.lines)
    words += (
        [f"{counted(failed, 'part')} of it failed, and {'is' if failed == 1 else 'are'} left out."] if failed else []
    )
    studied = Section(
        "studied",
        "What was studied",
        " ".join([f"Families: {listed(families, 8)}." if families else "", *words]).strip(),
        first,
        [models_table(study, said, found.right), measurements_table(study)],
    )
    now = datetime.now(timezone.utc)
    return Page(
        title=plan.asked.name,
        lead=_lead(study, kinds),
        facts={
            "models": f"{len(plan.models):,}",
            "families": f"{len(families):,}",
            "images": f"{len(plan.names):,}",
            "measurements": f"{len(study.tables):,}",
        },
        studied=studied,
        findings=found.findings,
        untold=found.untold,
        sections=sections,
        cases=(),
        methods=prose_of(study),
        settings=settings_tables(study),
        bibtex=bibtex_of(study),
        terms=TERMS if "evidence" in kinds and found.findings else "",
        made=f"Made with suffice {__version__} on {now:%B} {now.day}, {now.year}. It asks nothing of the network.",
    )


TERMS = (
    "An image is cut into cells. A minimal sufficient explanation (MSE) is a set of cells that is enough: with all "
    "others hidden a model keeps its answer, and no cell of the set can go. Sub-explanations are what is left of such "
    "sets as cells go one by one: “at ≥ 80 %” counts those that keep so much of the confidence. Effect sizes are +1 or "
    "−1 where all images say the same, and 0 where as many say the opposite."
)
WORDS = {
    "evidence": "what is enough for them to decide",
    "metrics": "whether maps are true to them",
    "sanity": "whether maps depend on what they have learned",
    "cross-test": "whether what one finds important is enough for another",
    "activations": "whether a few channels decide",
}


def _lead(study: Study, kinds: dict[str, list[str]]) -> str:
    plan = study.plan
    asked = [WORDS[kind] for kind in WORDS if kind in kinds]
    what = listed(asked, 5) if asked else "what they say"
    return f"{counted(len(plan.models), 'model')} on {counted(len(plan.names), 'image')}: {what}."
