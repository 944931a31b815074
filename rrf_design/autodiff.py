"""Forward-mode derivatives of user residuals: a number that carries its gradient.

Arrays of `Dual` objects go through ordinary numpy expressions (sums, products, indexing, `np.sin`,
`np.log`, ...), because numpy calls the method of the same name on every element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class _Dual:
    """value + gradient · h, to first order."""

    __slots__ = ("gradient", "value")
    __array_priority__ = 100.0

    def __init__(self, value: float, gradient: Array) -> None:
        self.value, self.gradient = value, gradient

    def _chain(self, value: float, slope: float) -> _Dual:
        return _Dual(value, slope * self.gradient)

    def __add__(self, other: Any) -> _Dual:
        if isinstance(other, _Dual):
            return _Dual(self.value + other.value, self.gradient + other.gradient)
        return _Dual(self.value + float(other), self.gradient)

    __radd__ = __add__

    def __neg__(self) -> _Dual:
        return self._chain(-self.value, -1.0)

    def __sub__(self, other: Any) -> _Dual:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> _Dual:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> _Dual:
        if isinstance(other, _Dual):
            return _Dual(self.value * other.value, self.value * other.gradient + other.value * self.gradient)
        return self._chain(self.value * float(other), float(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> _Dual:
        return self.__mul__(other.__pow__(-1.0) if isinstance(other, _Dual) else 1.0 / float(other))

    def __rtruediv__(self, other: Any) -> _Dual:
        return self.__pow__(-1.0).__mul__(other)

    def __pow__(self, other: Any) -> _Dual:
        if isinstance(other, _Dual):
            return self.log().__mul__(other).exp()
        power = float(other)
        slope = 0.0 if power == 0.0 else power * self.value ** (power - 1.0)
        return self._chain(self.value**power, slope)

    def __rpow__(self, other: Any) -> _Dual:
        return self.__mul__(math.log(float(other))).exp()

    def __abs__(self) -> _Dual:
        return self._chain(abs(self.value), math.copysign(1.0, self.value))

    def sin(self) -> _Dual:
        return self._chain(math.sin(self.value), math.cos(self.value))

    def cos(self) -> _Dual:
        return self._chain(math.cos(self.value), -math.sin(self.value))

    def tanh(self) -> _Dual:
        value = math.tanh(self.value)
        return self._chain(value, 1.0 - value * value)

    def exp(self) -> _Dual:
        value = math.exp(self.value)
        return self._chain(value, value)

    def log(self) -> _Dual:
        return self._chain(math.log(self.value), 1.0 / self.value)

    def sqrt(self) -> _Dual:
        value = math.sqrt(self.value)
        return self._chain(value, 0.5 / value)


def value_and_jacobian(residual: Callable[[Any], Any], point: Array) -> tuple[Array, Array]:
    """r(z) as (rows,) and its Jacobian as (rows, coordinates), in one evaluation."""
    size = len(point)
    seeds = np.eye(size)
    duals = np.empty(size, dtype=object)
    for i in range(size):
        duals[i] = _Dual(float(point[i]), seeds[i])
    rows = np.atleast_1d(np.asarray(residual(duals), dtype=object)).ravel()
    values = np.array([row.value if isinstance(row, _Dual) else float(row) for row in rows], dtype=np.float64)
    jacobian = np.array([row.gradient if isinstance(row, _Dual) else np.zeros(size) for row in rows], dtype=np.float64)
    return values, jacobian.reshape(len(rows), size)
