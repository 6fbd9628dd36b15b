"""Candidates: ways to predict with their settings, how they are compared on held-out samples, chosen and mixed."""
