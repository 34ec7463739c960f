"""The kinds of measurement that studies have: one file each, imported when a study asks for it."""
