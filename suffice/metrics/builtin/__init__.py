"""The metrics of this package; whatever is in this folder declares itself when it is imported."""
