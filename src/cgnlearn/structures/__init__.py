"""Learners of structures and averages over structures."""
