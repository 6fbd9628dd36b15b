"""Limits of rounding and overflow."""

import numpy as np

EPS = float(np.finfo(float).eps)
FARTHEST = 1e140  # in standard units: squares of larger values would overflow
FULL = 1e150  # a product beyond this is turned into a logarithm before it can overflow
LEAST_LEFT = 1e-14  # share of a determinant left without a sample: less is rounding
SINGULAR = 64 * EPS  # relative to the feature's variance and per member
