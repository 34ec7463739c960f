"""From the content of a report to one HTML file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from suffice import __version__
from suffice.draw.theme import DARK, chart_config
from suffice.errors import MissingExtra
from suffice.report.page.content import Page

MISSING = "Reports need jinja2 and vl-convert-python: pip install 'suffice[report]'."


def render(page: Page) -> str:
    """The page as one HTML document that refers to nothing outside itself."""
    charts = any(figure.spec is not None for part in (page.studied, *page.sections) for figure in part.figures)
    looks = {"light": chart_config(False), "dark": chart_config(True), "exchange": DARK}
    contents = [("findings", "Findings"), ("studied", page.studied.title)]
    contents += [(section.id, section.title) for section in page.sections]
    contents += [("gallery", "Gallery")] if page.cases else []
    contents.append(("methods", "Methods, settings and references"))
    return str(
        _template().render(
            page=page, contents=contents, titles=dict(contents), looks=looks,
            css=_asset("page.css"), js=_asset("page.js"), vega=_vega() if charts else "", version=__version__,
        )
    )  # fmt: skip


@cache
def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtra(MISSING) from error
    here = files("suffice.report.page")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=False, undefined=jinja2.StrictUndefined, loader=jinja2.BaseLoader()
    )
    environment.filters["plain"] = _plain
    environment.filters["tight"] = tight
    return environment.from_string((here / "page.html.jinja").read_text(encoding="utf-8"))


def _plain(value: Mapping[str, Any]) -> Any:
    """JSON that can stand in a script element, whatever texts are in it."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def tight(text: str) -> str:
    """A sentence whose intervals and percentages do not break at the end of a line."""
    inside = re.sub(r"\[[^\]]*\]", lambda found: found[0].replace(" ", "\u00a0"), text)
    return re.sub(r"(?<=[<=≥]) | (?=%)", "\u00a0", inside)


def _asset(name: str) -> str:
    return (files("suffice.report.page") / "assets" / name).read_text(encoding="utf-8")


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtra(MISSING) from error
    script: str = vl_convert.javascript_bundle("window.sufficeEmbed = vegaEmbed;")
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
