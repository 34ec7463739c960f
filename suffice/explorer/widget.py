"""The explorer in a notebook."""

from __future__ import annotations

import base64
import binascii
from functools import cache
from typing import Any

from suffice.errors import MissingExtra, OptionError
from suffice.explorer.explorer import Explorer, Message
from suffice.explorer.opening import USUAL_IMAGES, USUAL_MODELS, open_explorer
from suffice.explorer.pictures import MOST_BYTES
from suffice.study import Study
from suffice.vision import as_classifier, load, open_images


def explore(what: Any = None, images: Any = None, *, baseline: str = "blur", grid: int = 7) -> Any:
    """Open the explorer below the cell of a notebook: hide and show parts of images, and see what models say.

    Args:
        what: A classifier, or the name of one as :func:`suffice.load` takes it, or several; or a
            :class:`suffice.Study` that was run, for its tables, figures, images and models. Default: four networks of
            the zoo.
        images: Anything that :func:`suffice.open_images` takes; default: scenes, or the images of the study.
        baseline: What shows where cells are hidden, to begin with.
        grid: Cells per side, to begin with.

    Returns:
        A widget; needs ``pip install 'suffice[notebook]'``. Its ``close()`` ends the threads behind it.
    """
    made = _widget_class()
    return made(_explorer(what, images), {"baseline": baseline, "grid": grid})


def _explorer(what: Any, images: Any) -> Explorer:
    if isinstance(what, Study):
        if what.store is None:
            raise OptionError("The study was not run yet; write explore(study.run(out)).")
        if images is not None:
            raise OptionError("A study has images of its own; leave images= away, or give models instead of the study.")
        return open_explorer(what.store.place)
    if what is None:
        what = USUAL_MODELS
    named = what if isinstance(what, (list, tuple)) else [what]
    nets = [load(one) if isinstance(one, str) else as_classifier(one) for one in named]
    return Explorer(nets, open_images(USUAL_IMAGES if images is None else images))


@cache
def _widget_class() -> Any:
    """The class of the widget; made when first needed, as its base is optional."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise MissingExtra("The explorer in notebooks needs anywidget: pip install 'suffice[notebook]'.") from error
    from suffice.explorer.bundle import bundled, stylesheet

    class Widget(anywidget.AnyWidget):
        """The explorer as a widget; ``explorer`` is what answers."""

        _esm = bundled()
        _css = stylesheet()
        given = traitlets.Dict().tag(sync=True)

        def __init__(self, explorer: Explorer, given: dict[str, Any]) -> None:
            super().__init__(given=given)
            self.explorer = explorer
            channel = _Comm(self)
            self.on_msg(lambda widget, content, buffers: answer(explorer, channel, content))

        def close(self) -> None:
            """Close the widget, and end the threads behind it."""
            self.explorer.close()
            super().close()

    return Widget


class _Comm:
    """The way back to a widget."""

    def __init__(self, widget: Any) -> None:
        self.widget = widget

    def send(self, message: Message) -> None:
        """Send a message to the page."""
        self.widget.send(message)


def answer(explorer: Explorer, channel: Any, message: Any) -> None:
    """Answer a message of a notebook: as on the page, and files and charts, which have no server there."""
    kind = message.get("kind") if isinstance(message, dict) else None
    if kind not in ("upload", "charts"):
        explorer.handle(channel, message)
        return
    try:
        channel.send({"id": message.get("id"), "data": _file(explorer, message) if kind == "upload" else _charts()})
    except Exception as error:
        channel.send({"id": message.get("id"), "error": explorer.words_of(error)})


def _file(explorer: Explorer, message: Any) -> Message:
    data = message.get("data")
    content, name = (data.get("content"), data.get("name")) if isinstance(data, dict) else (None, None)
    if not isinstance(content, str) or not isinstance(name, str) or len(content) > 2 * MOST_BYTES:
        raise OptionError("Expected the name of a file, and its content in base64.")
    try:
        return explorer.add_picture(base64.b64decode(content, validate=True), name)
    except binascii.Error:
        raise OptionError("The content of the file is not base64.") from None


def _charts() -> Message:
    from suffice.explorer.app import vega

    return {"script": vega()}
