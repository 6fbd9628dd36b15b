"""Types of the arrays that all rooms exchange."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Columns = NDArray[np.intp]  # indexes of columns, or of samples
