"""What a forger writes into the premise of a certificate: units, delivered values, suspect checks,
and margins that go along.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rrf_design.checker.wording import CONSEQUENCE, Regime
from scenarios.kit.sealing import Document


def _larger_unit(rng: Any, document: Document) -> None:
    document["protection"]["units"] = [["a"], ["b", "c", "d"]] if rng.random() < 0.5 else [["a", "b", "c", "d"]]


def _more_delivered(rng: Any, document: Document) -> None:
    document["protection"]["deliver"] = (
        list(rng.permutation(["a", "b", "c", "d"])) if rng.random() < 0.5 else ["a", "d"]
    )


def _more_wrong_checks(rng: Any, document: Document) -> None:
    claim = document["protection"]
    claim["wrong_checks"] = int(rng.choice([2, 3, 2**40]))
    if rng.random() < 0.5:
        claim["suspects"] = list(document["operator"]["block_ids"])


def _better_protected(rng: Any, document: Document) -> None:
    """A larger margin, with a witness and derived numbers that go along."""
    claim = document["margin"]
    factor = 1.0 + 10.0 ** float(rng.uniform(-7, 1))
    claim["lower"] = claim["upper"] * factor
    document["protection"]["wrong"] = []  # nothing set aside: the same witness leaves more
    claim["upper"] = claim["lower"] * float(rng.choice([1.0, 2.0]))
    claim["status"] = "exact" if claim["lower"] >= claim["upper"] * (1 - 1e-6) else "bounded"
    document["audit"].update(residual=5.0, sensitivity=(1.0 / claim["upper"]) * (1.0 - 1e-15))


def _field_margin(rng: Any, document: Document) -> None:
    """As if uncertain relations acted on delivered values alone."""
    lower, eta = document["margin"]["lower"], document["uncertainty"]["eta"]
    document["protection"]["field_lower"] = float(rng.choice([lower, 0.5 * lower, 0.1, 1e300]))
    document["regime"] = {"name": "computation", "consequence": CONSEQUENCE[Regime("computation")]}
    left = (min(lower, document["protection"]["field_lower"]) - eta) * (1 - 1e-12)
    document["uncertainty"].update(global_lower=max(left, 0.0), robust_lower=max(left, 0.0))
    if rng.random() < 0.3:
        document["protection"]["field_lower"] = None


def _set_aside(rng: Any, document: Document) -> None:
    """More, or others, are set aside for the witness than may be: its quotient falls."""
    claim, kind = document["protection"], int(rng.integers(4))
    claim["wrong"] = (["x0", "x1", "x2"], ["ab", "x0"], ["x0", "x0"], ["nobody"])[kind]


def _strange_lists(rng: Any, document: Document) -> None:
    claim, kind = document["protection"], int(rng.integers(7))
    if kind < 4:
        claim["units"] = ([["a"], ["b"], ["c"]], [["a"], ["b"], ["c", "d"], []], [["a", "b"], ["b", "c", "d"]], [])[
            kind
        ]
    elif kind == 4:
        claim["deliver"] = [[], ["nobody"], ["a", "a"]][int(rng.integers(3))]
    elif kind == 5:
        claim["suspects"] = [["nobody"], ["x0", "x0", "x1"], ["a"]][int(rng.integers(3))]
    else:
        claim["wrong_checks"] = int(rng.choice([-1, -(2**40)]))


TRICKS: dict[str, Callable[[Any, Document], Any]] = {
    "larger unit": _larger_unit,
    "more delivered": _more_delivered,
    "more wrong checks": _more_wrong_checks,
    "better protected": _better_protected,
    "margin of the field": _field_margin,
    "more set aside": _set_aside,
    "strange lists": _strange_lists,
}
