"""Ordered columns: k-BAND and k-BOX, every k at once."""
