"""Evidence in tables and files.

``table`` has one row an image, ``statistics`` is what the rows say together, ``subexplanations`` one row a region.
``storage`` writes and reads Parquet files, and ``provenance`` is what has to be known to find the same again.
"""
