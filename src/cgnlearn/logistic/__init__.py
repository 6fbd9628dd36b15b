"""Logistic regression with an optional offset."""
