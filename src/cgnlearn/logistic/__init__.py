"""Logistic regression with an optional offset, along a path of penalties."""
