"""Names of files and folders that every file system takes."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from suffice.evidence import Evidence

LONGEST = 60  # characters; of four bytes each, they still fit the 255 bytes that a name can have


def safe_name(text: str) -> str:
    """A text as part of the name of a file: letters, digits, ``-``, ``_`` and ``.``, and neither empty nor hidden.

    Example:
        >>> safe_name("scenes:test[3]"), safe_name("Ä b/c*?.jpg"), safe_name(".."), safe_name("@2")
        ('scenes-test-3', 'Ä-b-c-.jpg', 'image', '-2')
    """
    return re.sub(r"[^\w.-]+", "-", text).lstrip(".").rstrip("-.")[:LONGEST] or "image"


def figure_folder(evidence: Evidence) -> str:
    """The folder for the figures of one image: its name, and the beginning of its identity (else its position).

    So images of the same name have folders of their own, and which these are does not depend on other images.

    Example:
        >>> from suffice import find_evidence
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(0,)], grid=2)
        >>> found = find_evidence(oracle.classifier(8), oracle.image(8), targets=1, grid=2, baseline="black")
        >>> figure_folder(found[0]).startswith("tensor-")
        True
    """
    name = PurePosixPath(evidence.name.replace("\\", "/"))
    return f"{safe_name(name.stem).lstrip('-')}-{(evidence.image_id or f'{evidence.index:05d}')[:8]}"
