from __future__ import annotations

import pytest

from scenarios.real import hidden, programs


def test_64_items_sixteen_families_in_turn() -> None:
    items = programs.items()
    assert len(items) == 64
    assert [item.family.name for item in items[:16]] == [family.name for family in programs.FAMILIES]
    assert all(items[i].family is items[i + 16].family for i in range(48))
    assert all(len(item.public) == 8 for item in items)
    assert all(len(hidden.hidden_tests(item)) == 16 for item in items)
    assert items[0].public != items[16].public


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("absolute_difference", [-3, 4], 7),
        ("greatest_common_divisor", [12, 18], 6),
        ("least_common_multiple", [4, 6], 12),
        ("digit_sum", [9081], 18),
        ("digital_root", [9875], 2),
        ("divisor_count", [12], 6),
        ("prime_indicator", [1], 0),
        ("prime_indicator", [97], 1),
        ("fibonacci", [10], 55),
        ("triangular_number", [100], 5050),
        ("collatz_steps", [6], 8),
        ("count_even", [[1, 2, -4, 7, 0]], 3),
        ("maximum_adjacent_gap", [[1, 5, -2]], 7),
        ("second_largest_distinct", [[3, 9, 9, 4]], 4),
        ("weighted_sum", [[5, 1, 2]], 13),
        ("alternating_sum", [[5, 1, 2]], 6),
        ("count_above_threshold", [[1, 5, 6], 4], 2),
    ],
)
def test_references_by_hand(name: str, arguments: list[object], expected: int) -> None:
    family = next(f for f in programs.FAMILIES if f.name == name)
    assert family.reference(*arguments) == expected


@pytest.mark.parametrize("family", programs.FAMILIES, ids=lambda f: f.name)
def test_four_different_prompts_without_any_output(family: programs.Family) -> None:
    prompts = [programs.prompt(family, variant) for variant in programs.VARIANTS]
    assert len(set(prompts)) == 4
    assert all("def solve" not in prompt and "return " not in prompt.replace("returns ", "") for prompt in prompts)
    assert f"solve({', '.join(family.renamed)})" in prompts[1]


def test_all_outputs_are_bounded_integers() -> None:
    for item in programs.items():
        values = [*item.truth(), *hidden.hidden_truth(item)]
        assert all(type(value) is int and abs(value) < 10**6 for value in values)
