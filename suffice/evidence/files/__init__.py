"""Evidence in tables and files.

``table`` has one row an image, ``statistics`` is what the rows say together, ``subexplanations`` one row a region.
``storage`` writes and reads Parquet files, ``writer`` writes them while a search goes on, ``folder`` takes up one that
ended early, ``run`` searches what it lacks, and ``provenance`` is what has to be known to find the same again.
"""
