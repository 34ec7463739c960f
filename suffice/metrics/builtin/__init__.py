"""The metrics, one file each; whatever is in this folder is a metric."""
