"""What goes wrong between a page and its server, beyond what a user's input can cause elsewhere."""

from __future__ import annotations

from suffice.errors import SufficeError


class Busy(SufficeError):
    """More is asked for than is kept waiting."""


class Cancelled(Exception):
    """Somebody no longer wants to know; ends long work from within."""


class Unknown(SufficeError, LookupError):
    """There is no such image, model, table or question."""
