"""Studies: models × images × measurements, run to the end even through crashes, kept in one folder.

* :class:`Study`: a TOML file or the same in Python; :meth:`Study.run` runs it, :meth:`Study.table` reads it.
* :class:`Measurement`, :class:`Work`, :class:`Found`, :func:`register_kind`: kinds of measurement; ours are in
  :mod:`suffice.study.kinds`.
* :class:`Store`: the folder, or any place that fsspec knows.
"""

from suffice.study.measurement import Found, Measurement, Work, register_kind
from suffice.study.store import Store
from suffice.study.study import Study

__all__ = ["Found", "Measurement", "Store", "Study", "Work", "register_kind"]
