"""Warnings that a cross-validation passes on once, not from every fold."""

from __future__ import annotations


class DataWarning(UserWarning):
    """Something about the data as a whole, which holds for every part of them alike."""
