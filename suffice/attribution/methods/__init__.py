"""The methods, one file each; whatever is in this folder is a method."""
