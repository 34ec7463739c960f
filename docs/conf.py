"""Sphinx configuration; `make docs` builds the site without a network."""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

import suffice
from suffice.report.demo import demo_study
from suffice.zoo.architectures import ARCHITECTURES
from suffice.zoo.source import table

sys.path.insert(0, str(Path(__file__).parent))  # for narrow_tables

project = "suffice"
author = "The suffice developers"
copyright = author
version = release = suffice.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    *([] if tags.has("draft") else ["sphinx.ext.viewcode"]),  # noqa: F821  the code of each module, a page each
    "sphinx_copybutton",
    "narrow_tables",
]
exclude_patterns = ["_build", "_generated", "tables"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Long unions read better as the names they were given in the source.
autodoc_type_aliases = {"Baseline": "Baseline", "Questions": "Questions", "Targets": "Targets"}
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Attributes that a class lists in its docstring, rather than a second entry for each.
napoleon_use_ivar = True

# Only what is typed, not the prompt or the answer.
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = f"suffice {release}"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_extra_path = ["_generated/pages"]


def write_table(name: str, heads: str, rows: list[list[str]]) -> None:
    lines = [heads, "|" + "---|" * (heads.count("|") - 1), *("| " + " | ".join(row) + " |" for row in rows)]
    file = Path(__file__).parent / "_generated" / f"{name}.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_reports() -> None:
    """Reports of a small study, but for drafts, and of studies/real.toml; made once, as each takes half a minute."""
    here = Path(__file__).parent
    small, real = (here / "_generated" / "pages" / f"report-{name}.html" for name in ("example", "real"))
    with tempfile.TemporaryDirectory() as folder:
        if not small.exists() and not tags.has("draft"):  # noqa: F821
            study = demo_study(images=10, networks=["resnet", "resnet-aug"]).run(f"{folder}/small", device="cpu")
            study.report(small)
        if not real.exists():
            with tarfile.open(here / "studies" / "real.tar.xz") as tables:
                tables.extractall(f"{folder}/real", filter="data")
            suffice.Study.open(f"{folder}/real").report(real)


def described(method) -> str:
    options = ", ".join(f"`{key}={value!r}`" for key, value in method.options.items())
    return f"{method.about} *{method.reference}.* {options}"


# From the methods, metrics and protocols themselves, so that pages cannot fall behind them.
write_table(
    "methods",
    "| method | what it shows | needs |",
    [
        [f"`{m.name}`", described(m), ", ".join(m.needs) or "nothing"]
        for m in suffice.attribution.all_methods().values()
    ],
)
write_table(
    "zoo",
    "| network | what it is | parameters | accuracy | of all seeds |",
    [
        [
            f"`zoo/{name}`",
            f"{ARCHITECTURES[name].about} (*{ARCHITECTURES[name].family}*)",
            f"{row['parameters']:,}",
            f"{row['accuracy']:.2%}",
            ", ".join(f"{value:.2%}" for value in row["accuracy_of_all_seeds"]),
        ]
        for name, row in table().items()
    ],
)
BETTER = {True: "higher", False: "lower", None: "neither"}
write_table(
    "metrics",
    "| metric | what it says | better | needs |",
    [
        [f"`{m.name}`", f"{m.about} *{m.reference}*", BETTER[m.higher_is_better], ", ".join(m.needs)]
        for m in suffice.metrics.all_metrics().values()
    ],
)
write_table(
    "protocols",
    "| protocol | about |",
    [[f"`{p.name}`", p.about] for p in suffice.metrics.all_protocols().values()],
)
write_reports()
