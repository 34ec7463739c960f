"""A study whose plan is read once: a report asks for it hundreds of times, and it has the name of every image."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from suffice.study import Study

if TYPE_CHECKING:
    from suffice.study.plan import Plan


class _Kept(Study):
    """As :class:`suffice.Study`, but what joins the folder later is not seen."""

    @cached_property
    def plan(self) -> Plan:
        return super().plan


def kept(study: Study) -> Study:
    """The same study, as it is now."""
    made = copy(study)
    made.__class__ = _Kept
    return made
