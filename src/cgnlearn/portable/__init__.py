"""Models outside Python: a portable description, and files that predict from it."""
