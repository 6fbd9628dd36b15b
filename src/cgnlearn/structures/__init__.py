"""Learners: structures that are fixed, learned, searched or averaged over."""
