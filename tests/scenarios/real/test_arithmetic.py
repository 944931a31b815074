from __future__ import annotations

import re
from collections import Counter

import pytest

from scenarios.real import arithmetic

# Rows of the paper's catalogue: family, expression, answer, scale, shift.
CATALOGUE = [
    ("large_add", "909 + 770", 1679, 3, -23),
    ("large_subtract", "9897 - 7758", 2139, 5, -37),
    ("multiply", "59 * 56", 3304, 2, -23),
    ("affine_product", "(80 + 90) * 7 - 90", 1100, 2, 47),
    ("nested_difference", "17 * (91 - 4) + 75", 1554, 5, 31),
    ("exact_quotient", "(32 + 678) / 5", 142, 5, 47),
    ("squares", "(27 * 27) + (24 * 24) - 179", 1126, 5, 19),
    ("mixed_products", "7 * 27 - 39 * 19 + 62", -490, 4, 31),
    ("large_subtract", "1090 - 559", 531, 2, -37),
    ("exact_quotient", "(61 + 1487) / 6", 258, 5, 31),
    ("nested_difference", "3 * (93 - 20) + 133", 352, 3, 19),
    ("squares", "(19 * 19) + (7 * 7) - 175", 235, 2, -37),
]


def test_128_items_sixteen_per_family_in_turn() -> None:
    items = arithmetic.items()
    assert len(items) == 128
    assert set(Counter(item.family for item in items).values()) == {16}
    assert [item.family for item in items[:8]] == list(arithmetic.FAMILIES)
    assert items[:8] == arithmetic.items(8)
    assert items != arithmetic.items(seed=1)


@pytest.mark.parametrize("item", [*arithmetic.items(), *arithmetic.our_items()], ids=lambda item: item.id)
def test_answers_are_those_of_integer_arithmetic(item: arithmetic.AskedExpression) -> None:
    assert re.fullmatch(r"[\d\s+*/()-]+", item.text)
    value = eval(item.text)
    assert value == item.answer
    assert float(value).is_integer()


@pytest.mark.parametrize(("family", "text", "answer", "scale", "shift"), CATALOGUE)
def test_the_printed_catalogue_could_have_been_drawn(
    family: str, text: str, answer: int, scale: int, shift: int
) -> None:
    assert eval(text) == answer
    assert scale in arithmetic.SCALES
    assert shift in arithmetic.SHIFTS
    drawn = [item for item in arithmetic.items(1024) if item.family == family]
    shape = re.sub(r"\d+", "n", text)
    assert {re.sub(r"\d+", "n", item.text) for item in drawn} == {shape}
    places = [[int(n) for n in re.findall(r"\d+", item.text)] for item in drawn]
    for position, number in enumerate(int(n) for n in re.findall(r"\d+", text)):
        low, high = min(p[position] for p in places), max(p[position] for p in places)
        slack = 0.1 * (high - low) + 1
        assert low - slack <= number <= high + slack


def test_four_typed_ways_of_asking() -> None:
    item = arithmetic.items(4)[3]
    query = arithmetic.query(item)
    truths = [variant.transformation.affine(1).apply([item.answer])[0] for variant in query.variants]
    assert truths == [item.answer, item.answer, item.scale * item.answer, item.answer + item.shift]
    prompts = [query.prompt(variant) for variant in query.variants]
    assert all(item.text in prompt for prompt in prompts)
    assert all(str(item.answer) not in prompt for prompt in prompts)
    assert query.request(query.variants[0]).max_tokens == 24
    assert len(set(prompts)) == 4


def test_our_items_differ_and_swap_their_operands() -> None:
    items = arithmetic.our_items()
    assert len({item.text for item in items}) == 64
    query = arithmetic.query(items[0])
    left, sign, right = items[0].text.split()
    assert f"{right} {sign} {left}" in query.prompt(query.variants[2])
