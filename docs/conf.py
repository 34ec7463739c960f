"""Sphinx configuration; `make docs` builds the site without a network."""

from __future__ import annotations

from pathlib import Path

import suffice

project = "suffice"
author = "The suffice developers"
copyright = author
version = release = suffice.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_generated"]

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


def write_methods_table() -> None:
    """The table of methods, from the methods themselves."""
    lines = ["| method | what it shows | needs | options | reference |", "|---|---|---|---|---|"]
    for method in suffice.methods().values():
        options = ", ".join(f"`{key}={value!r}`" for key, value in method.options.items())
        needs = ", ".join(method.needs) or "nothing"
        lines.append(f"| `{method.name}` | {method.about} | {needs} | {options} | {method.reference} |")
    file = Path(__file__).parent / "_generated" / "methods.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


write_methods_table()
