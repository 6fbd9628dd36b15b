"""Where rounding and overflow are reckoned with."""

import numpy as np

EPS = float(np.finfo(float).eps)
FARTHEST = 1e140  # in standard units: squares of values farther out would overflow
FULL = 1e150  # a product beyond this is turned into a logarithm before it can overflow
LEAST_LEFT = 1e-14  # of a scale that forgets a sample: less is rounding
SINGULAR = 64 * EPS  # relative to the feature's variance and per member
