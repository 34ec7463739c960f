"""The report of a study: one HTML file that opens from disk, prints, and asks nothing of the network.

* :func:`make_report`, :class:`Report`: from a study to the page.

Inside: ``quantities`` reads what is compared, ``comparing`` asks :mod:`suffice.compare` about it, ``findings`` says it
in sentences; ``models`` and ``methods`` make tables, ``choosing`` and ``gallery`` pictures, ``appendix`` the methods of
a paper; ``content`` is what they make, and ``render`` turns it into the page.
"""

from suffice.report.page.report import Report, make_report

__all__ = ["Report", "make_report"]
