"""The kinds of measurement that comparisons add to studies: one file each, imported when a study asks for it."""
