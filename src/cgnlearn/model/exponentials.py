"""Logarithms and exponentials of many numbers, compiled so that several are taken in one instruction.

The library functions are called number by number, which costs some five times as much. Importing this module imports
numba, which takes half a second: import it where a large job begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # together ln 2 to 100 bits
PER_LN2 = 1.44269504088896338700
ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # the bits of √½
LEAST = -700.0  # e to anything below counts as e to this
UNLIKELY = -16.0  # e to anything below needs nine digits only, where it is added to 1


@compiled
def logarithms(numbers: Any, out: Any) -> None:
    """ln of positive numbers, none of them denormal, infinite or below √½; ``numbers`` is written over."""
    bits = numbers.view(np.uint64)
    for i in range(len(numbers)):
        doublings = (bits[i] - ROOT_HALF) >> np.uint64(52)
        bits[i] -= doublings << np.uint64(52)  # leaves a number from √½ to √2
        out[i] = np.int32(doublings)
    for i in range(len(numbers)):
        s = (numbers[i] - 1.0) / (numbers[i] + 1.0)  # ln = 2 artanh s, |s| < .172
        q = s * s
        series = 1 / 21 * q + 1 / 19
        series = series * q + 1 / 17
        series = series * q + 1 / 15
        series = series * q + 1 / 13
        series = series * q + 1 / 11
        series = series * q + 1 / 9
        series = series * q + 1 / 7
        series = series * q + 1 / 5
        series = series * q + 1 / 3
        out[i] = out[i] * LN2_HIGH + (2.0 * s + (2.0 * s * q * series + out[i] * LN2_LOW))


@compiled
def exponentials(numbers: Any, out: Any, scratch: Any) -> None:
    """e to the power of numbers that are at most 700; 1e-304 for all that are less than -700.

    Three arrays that do not overlap, or the compiler dares not take several numbers at once.
    """
    bits = scratch.view(np.int64)
    for i in range(len(numbers)):
        x = max(numbers[i], LEAST)
        doublings = np.floor(x * PER_LN2 + 0.5)
        r = (x - doublings * LN2_HIGH) - doublings * LN2_LOW  # at most half a ln 2
        series = 1 / 6227020800 * r + 1 / 479001600
        series = series * r + 1 / 39916800
        series = series * r + 1 / 3628800
        series = series * r + 1 / 362880
        series = series * r + 1 / 40320
        series = series * r + 1 / 5040
        series = series * r + 1 / 720
        series = series * r + 1 / 120
        series = series * r + 1 / 24
        series = series * r + 1 / 6
        series = series * r + 1 / 2
        out[i] = 1.0 + (r + r * r * series)
        bits[i] = (np.int64(np.int32(doublings)) + 1023) << 52  # the power of two
    for i in range(len(numbers)):
        out[i] *= scratch[i]


@compiled
def small_exponentials(numbers: Any, out: Any, scratch: Any) -> None:
    """As `exponentials`, of numbers below `UNLIKELY`, to nine digits: added to 1 they have all of theirs."""
    bits = scratch.view(np.int64)
    for i in range(len(numbers)):
        x = max(numbers[i], LEAST)
        doublings = np.floor(x * PER_LN2 + 0.5)
        r = x - doublings * (LN2_HIGH + LN2_LOW)
        series = 1 / 40320 * r + 1 / 5040
        series = series * r + 1 / 720
        series = series * r + 1 / 120
        series = series * r + 1 / 24
        series = series * r + 1 / 6
        series = series * r + 1 / 2
        out[i] = 1.0 + (r + r * r * series)
        bits[i] = (np.int64(np.int32(doublings)) + 1023) << 52  # the power of two
    for i in range(len(numbers)):
        out[i] *= scratch[i]
