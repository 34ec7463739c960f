"""Memory of the host that is freed and needed again at once: where a model runs on a CPU, every layer of every batch.

The C library of Linux hands large pieces back to the system when they are freed, and the system clears each page of
them before it is used again. That takes up to a quarter of the time with small networks, and a tenth of it with
gradients of large ones; their forwards alone hardly notice.
"""

from __future__ import annotations

import ctypes
import sys

# Of mallopt, in glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
KEPT = 1 << 30  # bytes at most that lie free at the end of the heap, and largest piece that is taken from it
_SMALLER = 1 << 25  # the largest piece that older versions accept


def keep_freed_memory() -> bool:
    """Let this process keep memory that is freed, up to a gigabyte of it, for whatever needs some next.

    It makes work on CPUs faster, and changes no result. The command line does it by itself; call it once at the start
    of a program or notebook of your own, if nothing else there needs the memory in between.

    Returns:
        Whether it could be done: on Linux with the GNU C library.

    Example:
        >>> keep_freed_memory() in (True, False)
        True
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    large = mallopt(_MMAP_THRESHOLD, KEPT) or mallopt(_MMAP_THRESHOLD, _SMALLER)
    return bool(large and mallopt(_TRIM_THRESHOLD, KEPT))
