"""The explorer: touch an image, and every model answers.

A page on which parts of an image are hidden and shown, with what each model says of the rest; with evidence, maps and
the tables of a study one click away. ``suffice serve`` starts it on this machine; in notebooks it is a widget.

* :func:`explore`: in a notebook.
* :func:`open_explorer`, :class:`Explorer`: what answers, from names of models, images and studies.
* :func:`serve`: the web server.

Inside: ``seats`` ask models, ``lanes`` are the threads that do it, ``search`` and ``maps`` take longer, ``guard`` says
who may ask; ``page`` has what the browser gets.
"""

from suffice.explorer.explorer import Explorer
from suffice.explorer.opening import open_explorer
from suffice.explorer.server import serve
from suffice.explorer.widget import explore

__all__ = ["Explorer", "explore", "open_explorer", "serve"]
