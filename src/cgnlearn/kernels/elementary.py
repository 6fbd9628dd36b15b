"""Logarithms and exponentials of arrays, written so that the compiler uses vector registers.

The library functions are called for each number, which costs about five times as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.compilation import compiled

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # together ln 2 to 100 bits
PER_LN2 = 1.44269504088896338700
EXPONENT = np.uint64(52)  # where the exponent of a number begins, which counts from 1023
SHIFTED_ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD - (1023 << 52) + (1 << 64))  # the bits of √½, with its exponent at -1
LEAST = -700.0  # smaller exponents are replaced by this


@compiled
def logarithms(numbers: Any, scratch: Any) -> None:
    """ln of positive numbers, none of them denormal or infinite, in their place."""
    bits = numbers.view(np.uint64)
    for i in range(len(numbers)):
        power = ((bits[i] - SHIFTED_ROOT_HALF) >> EXPONENT) - np.uint64(1023)
        bits[i] -= power << EXPONENT  # leaves a number from √½ to √2
        scratch[i] = np.int32(power)
    for i in range(len(numbers)):
        power = scratch[i]
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
        numbers[i] = power * LN2_HIGH + (2.0 * s + (2.0 * s * q * series + power * LN2_LOW))


@compiled
def exponentials(numbers: Any, scratch: Any) -> None:
    """e to the power of numbers that are at most 700, in their place; 1e-304 for all that are less than -700."""
    bits = scratch.view(np.int64)
    for i in range(len(numbers)):
        x = max(numbers[i], LEAST)
        power = np.floor(x * PER_LN2 + 0.5)
        r = (x - power * LN2_HIGH) - power * LN2_LOW  # at most half a ln 2
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
        numbers[i] = 1.0 + (r + r * r * series)
        bits[i] = (np.int64(np.int32(power)) + 1023) << 52  # the power of two
    for i in range(len(numbers)):
        numbers[i] *= scratch[i]
