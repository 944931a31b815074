"""Derivatives against complex steps, on random expressions of everything that is supported."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.autodiff import value_and_jacobian


def everything(z):
    a, b, c = z[0], z[1], z[2]
    return [
        a + b - c * 2 + 1,
        3 - a / b,
        2 / c + a * b * c,
        a**3 + a**0 + b**c + 2**a,
        np.sin(a) * np.cos(b) + np.exp(c) / np.log(a + 2),
        np.sqrt(b) - np.tanh(c),
        np.sum(z * z) + np.dot(z, z[::-1]),
        -a,
    ]


@pytest.mark.parametrize("seed", range(5))
def test_against_complex_steps(seed):
    point = 0.5 + np.random.default_rng(seed).random(3)
    values, jacobian = value_and_jacobian(everything, point)
    np.testing.assert_allclose(values, np.array(everything(point), dtype=float))
    for i in range(3):
        step = point.astype(complex)
        step[i] += 1e-30j
        np.testing.assert_allclose(jacobian[:, i], np.imag(np.array(everything(step))) / 1e-30, rtol=1e-10, atol=1e-12)


def test_constants_have_no_gradient_and_absolute_values_have_one():
    values, jacobian = value_and_jacobian(lambda z: [7.0, abs(z[0])], np.array([-2.0]))
    np.testing.assert_allclose(values, [7.0, 2.0])
    np.testing.assert_allclose(jacobian, [[0.0], [-1.0]])
