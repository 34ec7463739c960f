"""The structured attention graph of an image, and evidence of many images to look at.

``graph`` builds it, ``drawing`` draws it (with ``layouts``, ``rows``, ``legend``, ``words`` and ``trim``), ``export``
writes it for other programs; ``set_drawing`` is a table of many images.
"""
