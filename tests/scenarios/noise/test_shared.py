from __future__ import annotations

import numpy as np

from scenarios.noise import shared


def test_noise_that_blocks_share_is_covered_whatever_is_held() -> None:
    found = shared.batch(0, 12)
    assert found["held"] > 60
    assert found["singular"] > 0
    assert found["uncovered"] == found["wrong"] == found["above"] == 0


def test_the_oracle_sees_what_is_not_covered() -> None:
    sigma = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert not shared.at_most_identity(np.eye(2), sigma)
    assert shared.at_most_identity(np.eye(2) / np.sqrt(1.5), sigma)
    assert not shared.at_most_identity(np.eye(2) / np.sqrt(1.4999), sigma)


def test_only_the_aware_radius_holds() -> None:
    found = shared.coverage(0.9, trials=2000, seed=0)
    assert found["outside"] <= found["allowed"] < found["outside_if_taken_for_independent"]
