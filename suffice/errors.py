"""Every error a user can cause, by name.

Messages say what was seen, what was expected, and what to write instead. The command line prints them
without a traceback and exits with code 2; in Python they also derive from the built-in error that fits, so
``except ValueError`` keeps working.
"""

from __future__ import annotations


class SufficeError(Exception):
    """Base of every error that a user's input can cause."""


class OptionError(SufficeError, ValueError):
    """An argument has a value that is not among those it can have."""


class ImageError(SufficeError, ValueError):
    """An image cannot be used."""


class UnreadableImage(ImageError):
    """The file is missing, broken, truncated, or not an image in a supported format."""


class ImageTooLarge(ImageError):
    """The image has more pixels than the limit allows."""


class ManifestError(ImageError):
    """A CSV or JSONL list of images is malformed or points outside its folder."""


class UnknownModel(SufficeError, LookupError):
    """No source knows a model of that name."""


class DownloadError(SufficeError, OSError):
    """Pretrained weights could not be fetched, most often because there is no network."""


class CheckpointError(SufficeError, ValueError):
    """A checkpoint cannot be read safely or does not fit the model."""


class OutputError(SufficeError, TypeError):
    """A model returned something in which no class scores could be found."""


class AnatomyError(SufficeError, LookupError):
    """A model has no such part, or its structure is not known."""


class StudyError(SufficeError, ValueError):
    """A study cannot be run as it is written, or not in a folder that holds another one."""


class StoreError(SufficeError, OSError):
    """The place where results of a study are kept cannot be written."""


class MissingExtra(SufficeError, ImportError):
    """An optional dependency is not installed."""


class SufficeWarning(UserWarning):
    """Something the user should know, said once, that did not stop the work."""
