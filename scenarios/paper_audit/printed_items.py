"""The printed rows of the paper's catalogues, computed again and held to what its text says of
them.
"""

from __future__ import annotations

import re
from typing import Any

from rrf_design.checks import evaluate
from scenarios.paper_audit.slips import Rows, Slip
from scenarios.real_model.arithmetic import FAMILIES, SCALES, SHIFTS

EXPRESSIONS: tuple[tuple[int, str, str, int, int, int], ...] = (
    (0, "large_add", "909 + 770", 1679, 3, -23),
    (1, "large_subtract", "9897 - 7758", 2139, 5, -37),
    (2, "multiply", "59 * 56", 3304, 2, -23),
    (3, "affine_product", "(80 + 90) * 7 - 90", 1100, 2, 47),
    (4, "nested_difference", "17 * (91 - 4) + 75", 1554, 5, 31),
    (5, "exact_quotient", "(32 + 678) / 5", 142, 5, 47),
    (6, "squares", "(27 * 27) + (24 * 24) - 179", 1126, 5, 19),
    (7, "mixed_products", "7 * 27 - 39 * 19 + 62", -490, 4, 31),
    (8, "large_add", "928 + 934", 1862, 4, 19),
    (9, "large_subtract", "3746 - 1052", 2694, 3, 47),
    (10, "multiply", "11 * 71", 781, 3, -23),
    (11, "affine_product", "(97 + 79) * 7 - 59", 1173, 2, -37),
    (58, "multiply", "79 * 95", 7505, 3, 47),
    (59, "affine_product", "(21 + 42) * 7 - 143", 298, 3, -37),
    (60, "nested_difference", "13 * (92 - 82) + 108", 238, 2, -23),
    (61, "exact_quotient", "(13 + 1752) / 5", 353, 5, 47),
    (62, "squares", "(19 * 19) + (23 * 23) - 179", 711, 4, 47),
    (63, "mixed_products", "30 * 29 - 18 * 10 + 88", 778, 2, -37),
    (64, "large_add", "878 + 198", 1076, 3, 19),
    (65, "large_subtract", "1090 - 559", 531, 2, -37),
    (66, "multiply", "45 * 68", 3060, 2, -37),
    (67, "affine_product", "(74 + 92) * 7 - 140", 1022, 4, -37),
    (68, "nested_difference", "3 * (93 - 20) + 133", 352, 3, 19),
    (69, "exact_quotient", "(61 + 1487) / 6", 258, 5, 31),
    (116, "nested_difference", "5 * (98 - 5) + 158", 623, 2, 19),
    (117, "exact_quotient", "(92 + 2248) / 5", 468, 3, 19),
    (118, "squares", "(24 * 24) + (13 * 13) - 72", 673, 3, 19),
    (119, "mixed_products", "28 * 21 - 31 * 29 + 105", -206, 5, 31),
    (120, "large_add", "795 + 618", 1413, 4, 19),
    (121, "large_subtract", "2735 - 2574", 161, 5, -23),
    (122, "multiply", "90 * 72", 6480, 5, 31),
    (123, "affine_product", "(84 + 22) * 7 - 154", 588, 5, 19),
    (124, "nested_difference", "11 * (42 - 11) + 109", 450, 5, -37),
    (125, "exact_quotient", "(93 + 1629) / 6", 287, 2, 31),
    (126, "squares", "(19 * 19) + (7 * 7) - 175", 235, 2, -37),
    (127, "mixed_products", "34 * 6 - 12 * 13 + 56", 104, 4, -37),
)
"""Paper, "Representative examples from the mathematics benchmark": number, family, expression,
answer, scale, shift.
"""
ITEMS = {"mathematics": (len(EXPRESSIONS), 128), "code": (24, 64)}
"""Rows printed of a catalogue whose text says that it lists every item."""
SUM_DIGITS = 5
"""Paper, "Mathematics dataset": five-digit addition."""


def printed_expressions() -> list[dict[str, Any]]:
    """Every printed item: its value again, its place in the order of families, scale and shift, and
    the digits of sums.
    """
    families = list(FAMILIES)
    return [
        {
            "index": index,
            "family": family,
            "expression": text,
            "printed": answer,
            "computed": int(evaluate(text)[0]),
            "as_described": families[index % len(families)] == family and scale in SCALES and shift in SHIFTS,
            "most_digits": max(len(number) for number in re.findall(r"\d+", text)),
        }
        for index, family, text, answer, scale, shift in EXPRESSIONS
    ]


def _sums(rows: Rows) -> list[int]:
    return [row["most_digits"] for row in rows if row["family"] == "large_add"]


def _judge(rows: Rows) -> tuple[bool, str]:
    right = sum(row["printed"] == row["computed"] and row["as_described"] for row in rows)
    sums = _sums(rows)
    listed = ", ".join(f"{shown} of {all_} {task} items" for task, (shown, all_) in ITEMS.items())
    return (
        right == len(rows) and max(sums) < SUM_DIGITS,
        (
            f"{right} of {len(rows)} printed answers, scales and shifts are right; sums have at most {max(sums)}"
            f" digits; printed are {listed}"
        ),
    )


SLIPS = (
    Slip(
        "printed-items",
        "The printed part of the mathematics catalogue, computed again.",
        printed_expressions,
        _judge,
        lambda rows: (
            f"Catalogue. The items of the family of sums have {min(_sums(rows))} digits; which of text and table"
            " describes the items that were asked matters for what the printed accuracies mean. Real-model follows the"
            " table."
        ),
    ),
)
