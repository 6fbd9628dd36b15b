"""Candidates: models with grids of settings, compared on held-out samples, chosen and mixed."""
