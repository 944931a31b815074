"""Truths, how answers are compared with them, and leaks of them into questions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError, Refused
from rrf_design.promises import PilotSettings
from rrf_design.promises._measure import measured
from rrf_design.promises._pilot_analysis import _is, _readings
from rrf_design.promises._sheets import read_sheet
from rrf_design.promises._truths import GoldRule, answer_is_right, cell_is_right, read_truth, same, shown
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.recipe import DataSection, recipe_from_document
from rrf_design.responses import parsers
from rrf_design.responses.open_text import ChoiceParser


def truth(cell: Any, parser: Any = "decimal", **rule: Any) -> Any:
    return read_truth(cell, None if parser is None else parsers.get(parser), GoldRule("gold", **rule))


def test_a_number_is_right_up_to_rounding_or_within_the_tolerance() -> None:
    assert truth("119.00").right((119.0,))
    assert not truth("119.00").right((119.004,))
    assert truth(119, tolerance=0.005).right((119.005,))
    assert not truth(119, tolerance=0.005).right((119.0051,))
    assert not truth(119).right(None)


@pytest.mark.parametrize(
    ("said", "value", "right"),
    [
        (4006381333931.0, 4006381333931.0, True),
        (4006381333931.0, 4006381333930.0, False),
        (4111111111111111.0, 4111111111111112.0, False),
        (1234567890.12, 1234567890.13, False),
        (1234567890.12, 1234567890.12 * 3 / 3, True),
        (4006381333931.0, 4006381333931.0 + 2**-10, True),
        (0.1 + 0.2, 0.3, True),
        (1e-7, 1.00000001e-7, False),
        (math.inf, 1.0, False),
    ],
)
def test_long_numbers_differ_in_their_last_digit(said: float, value: float, right: bool) -> None:
    """A code of 13 digits with four wrong ones is wrong, though it is a billionth away."""
    assert same((said,), (value,)) is right


def test_several_values_can_be_right() -> None:
    assert truth([3, 4]).right((4.0,))
    assert truth("3 | 4", separator="|").right((4.0,))
    assert not truth("3 | 4", separator="|").right((5.0,))


def test_words_are_read_by_the_parser_of_the_answers() -> None:
    letters = {"name": "choice", "options": ["A", "B"]}
    found = truth("B", letters, tolerance=9.0)  # a distance means nothing among choices
    assert found.right((0.0, 1.0))
    assert not found.right((1.0, 0.0))
    assert truth("[1,  2]", "literal").right("[1, 2]")
    assert shown((0.0, 1.0), parsers.get(letters)) == "B"


@pytest.mark.parametrize("cell", [None, "", "  ", []])
def test_an_empty_cell_is_no_truth(cell: Any) -> None:
    assert truth(cell) is None


@pytest.mark.parametrize(
    ("cell", "parser"), [("many", "decimal"), ("C", {"name": "choice", "options": ["A", "B"]}), ("x", None)]
)
def test_what_cannot_be_read_is_named(cell: str, parser: Any) -> None:
    with pytest.raises(InputError, match="the truth"):
        truth(cell, parser)


@pytest.mark.parametrize(
    ("gold", "words"),
    [
        ({"column": "g", "tolerence": 1.0}, "did you mean|unknown key"),
        ({"tolerance": 1.0}, "needs column"),
        ({"column": "g", "tolerance": -1.0}, "tolerance"),
        ({"column": "g", "separator": ""}, "separator"),
    ],
)
def test_a_bad_rule_is_refused(gold: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        GoldRule.of(DataSection(gold=gold))


def test_the_rule_of_the_recipe_goes_before_the_tolerance_of_the_answer() -> None:
    assert GoldRule.of(DataSection(gold="g"), tolerance=0.5) == GoldRule("g", 0.5)
    assert GoldRule.of(DataSection(gold={"column": "g", "tolerance": 0.1}), tolerance=0.5).tolerance == 0.1


def test_delivered_cells_are_compared_as_numbers_where_they_are_numbers() -> None:
    assert cell_is_right("119.00", "119", tolerance=None)
    assert cell_is_right("yes", " yes ", tolerance=None)
    assert cell_is_right("yes", "no", tolerance=None) is False
    assert cell_is_right("5", "", tolerance=None) is None
    assert cell_is_right(5, "4;5", tolerance=None, separator=";")
    assert not same((1.0, 2.0), (1.0,))


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        (1200, "1,200.00", True),
        ("1200", "1.200,00", True),
        (1200, "1,200.01", False),
        (-1200000, "-1,200,000", True),
        (1234, "1,234", False),  # 1234, or 1.234: what could be two numbers is no proof that the answer is right
        (1.234, "1,234", False),
        (2024, "2024-01-05", False),
        ("2024-01-05", "2024-01-05", True),
        ("1,200 apples", "1,200 apples", True),
        (1200, "1,200 apples", False),
    ],
)
def test_numbers_as_people_write_them_without_a_recipe(answer: Any, gold: Any, right: bool) -> None:
    """A reviewer's 1,200.00 is the 1200 that was delivered; whatever could mean something else
    counts as wrong.
    """
    assert cell_is_right(answer, gold, tolerance=None) is right


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_a_tolerance_is_a_distance(tolerance: float) -> None:
    """Infinite, everything would be right."""
    with pytest.raises(InputError, match="a tolerance of"):
        GoldRule("booked", tolerance)


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        ([2.0, 4.0], [2, 4], True),
        ([2.0, 5.0], [2, 4], False),
        ("[2, 4]", "[2.0,4.0]", True),
        ("[2, 4]", [[9, 9], [2, 4]], True),
        ([2.0, 4.0], [2, 4, 4], False),
        (4.0, [2, 4], True),  # of one number, a list says which are right
        ("[a, b]", "[a, b]", True),
        ([2.0, 4.0], "", None),
        ("[" * 5000, "[1]", False),
    ],
)
def test_an_answer_of_several_numbers_is_right_as_a_whole(answer: Any, gold: Any, right: bool | None) -> None:
    assert cell_is_right(answer, gold, tolerance=0.1) is right


def test_whose_word_it_was_is_told_with_its_tolerance() -> None:
    """A tolerance of a thousand makes everything right, and the certificate has to say so."""
    assert GoldRule("booked").words(0) == "gold column 'booked'"
    assert GoldRule("booked", 0.0).words(1) == "gold column 'booked' and 1 review"
    assert GoldRule("booked", 1000.0).words(6) == "gold column 'booked' and 6 reviews, right within 1000"
    assert GoldRule(None, 1000.0).words(0) == ""


@pytest.mark.parametrize(
    ("answer", "gold", "parser", "right"),
    [
        ("{'a': 1, 'f': 2}", "{'f': 2, 'a': 1}", "literal", True),
        ("{'a': 1, 'f': 2}", "{'f': 2, 'a': 3}", "literal", False),
        ("372359", "'372359'", "literal", False),
        ("[0]", "0", "literal", False),
        ("not a literal", "not a literal", "literal", True),
        ("5", "", "literal", None),
        ("5.00", "5", "decimal", True),
        ("5", "5", None, True),
    ],
)
def test_words_are_read_by_their_parser_on_both_sides(answer: str, gold: str, parser: str | None, right: Any) -> None:
    assert answer_is_right(answer, gold, None if parser is None else parsers.get(parser), GoldRule("g")) is right


SETTINGS = PilotSettings(40, 0.2)


@pytest.fixture
def pilot(make_world: Any) -> Any:
    """A pilot of a table with one column more, which a prompt shows."""

    def make(cell: Callable[[int, int], Any], prompt: str = "{{ text }} {{ extra }}", **options: Any) -> dict[str, Any]:
        world = make_world(items=80, wrong=0.02, **options)
        path = world.folder / "table.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text(
            "".join(json.dumps({**row, "extra": cell(at, row["booked"])}) + "\n" for at, row in enumerate(rows))
        )
        world.recipe.write_text(
            world.recipe.read_text().replace('prompt = "{{ text }}"', f"prompt = '''{prompt}'''", 1)
        )
        found: dict[str, Any] = world.document(SETTINGS)
        return found

    return make


@pytest.mark.parametrize(
    "prompt",
    [
        "{{ text }} {{ booked }}",
        "{{ text }} {{ booked | string | reverse }}",
        "{% set x = booked %}{{ text }} {{ x }}",
        "{{ text }}{% if booked > 50 %} large{% endif %}",
        "{% for part in [text, booked] %}{{ part }}{% endfor %}",
        "{{ {'a': booked}['a'] }} {{ text }}",
    ],
)
def test_no_text_names_the_gold_column(pilot: Any, prompt: str) -> None:
    with pytest.raises(InputError, match="is the gold column, which no question and no check may see"):
        pilot(lambda at, truth: 0, prompt)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("{% macro m(a) %}{{ a }}{% endmacro %}{{ m(booked) }}", "macro is not available"),
        ("{% include 'table.jsonl' %}{{ text }}", "include is not available"),
        ("{% import 'x' as x %}{{ text }}", "import is not available"),
        ("{{ self }} {{ text }}", "'self' is reserved"),
        ("{{ text }} {{ lipsum.__globals__ }}", "no column 'lipsum'"),
        ("{{ text }} {{ cycler.__init__.__globals__ }}", "no column 'cycler'"),
        ("{{ text }} {{ namespace(x=1).x }}", "no column 'namespace'"),
        ("{{ text }} {{ ([text] | map(attribute='booked') | first) }}", "can't be used"),
    ],
)
def test_no_back_door_of_the_templates_leads_to_it(pilot: Any, prompt: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        pilot(lambda at, truth: 0, prompt)


@pytest.mark.parametrize(
    "cell",
    [
        lambda at, truth: truth,
        lambda at, truth: float(truth),
        lambda at, truth: str(truth),
        lambda at, truth: f"  {truth}.00 ",
        lambda at, truth: f"{truth},00 €",
        lambda at, truth: f"EUR {truth}.00",
        lambda at, truth: [truth],
        lambda at, truth: f"[{truth}.0]",
    ],
)
def test_a_copy_of_the_truth_in_a_prompt_is_refused(pilot: Any, cell: Any) -> None:
    with pytest.raises(Refused, match=r"ask 'total' prompt.*column 'extra' is the truth in all 40 drawn items"):
        pilot(cell)


@pytest.mark.parametrize(
    ("cell", "how"),
    [
        (lambda at, truth: 100 * truth, "the truth is 0.01 · the cell + 0"),
        (lambda at, truth: f"{100 * truth:,.2f} %", "the truth is 0.01 · the cell + 0"),
        (lambda at, truth: truth + 7, "the truth is 1 · the cell − 7"),
        (lambda at, truth: -2.5 * truth + 1, "the truth is -0.4 · the cell + 0.4"),
    ],
)
def test_a_column_that_gives_it_away_by_one_line_is_named(pilot: Any, cell: Any, how: str) -> None:
    (entry,) = pilot(cell)["leaks"]
    assert (entry["column"], entry["how"], len(entry["items"])) == ("extra", how, 40)


@pytest.mark.parametrize(
    "cell",
    [
        lambda at, truth: truth if at % 9 else truth + 1,
        lambda at, truth: truth * truth,
        lambda at, truth: at,
        lambda at, truth: f"pay {truth} please",
        lambda at, truth: "",
    ],
)
def test_honest_columns_are_left_alone(pilot: Any, cell: Any) -> None:
    """A draft that is sometimes wrong, and texts that contain the answer: reading them is the
    question.
    """
    assert pilot(cell)["leaks"] == []


def test_the_truth_of_other_items_is_not_looked_at(make_world: Any) -> None:
    """A copy in the drawn rows is seen from them alone; what gold says elsewhere changes
    nothing.
    """
    world = make_world(items=80, wrong=0.02)
    drawn = set(world.document(SETTINGS)["drawn"])
    path = world.folder / "table.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    extra = [{**row, "extra": row["booked"] if row["no"] in drawn else 0} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in extra))
    text = world.recipe.read_text()
    world.recipe.write_text(
        text.replace('by = { person = "Total of {{ no }}?" }', 'by = { person = "Total of {{ no }}: {{ extra }}?" }')
    )
    assert world.document(SETTINGS)["leaks"] == []  # only a person sees it


def test_a_rounded_truth_is_named(make_world: Any) -> None:
    world = make_world(items=80, wrong=0.02, scale=None)
    path = world.folder / "table.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    fine = [{**row, "booked": row["booked"] + 0.25, "extra": round(row["booked"] + 0.25)} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in fine))
    text = world.recipe.read_text().replace('prompt = "{{ text }}"', 'prompt = "{{ text }} {{ extra }}"', 1)
    world.recipe.write_text(text)
    (entry,) = world.document(SETTINGS)["leaks"]
    assert entry["how"] == "it is the truth, rounded to 0 decimals"
    world.recipe.write_text(text.replace("k = 1", "k = 1\ntolerance = 0.3"))  # now the rounded one is right, too
    with pytest.raises(Refused, match="is the truth in all 40"):
        world.document(SETTINGS)


def test_an_item_that_is_an_example_of_the_prompt_is_named(make_world: Any) -> None:
    """Its text stands in the recipe, but for spacing and case; the others do not."""
    world = make_world(items=80, wrong=0.02)
    path = world.folder / "table.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    told = [{**row, "text": f"Invoice {row['no']} of the Example Company: please pay {row['booked']}."} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in told))
    drawn = world.document(SETTINGS)["drawn"][5]  # the draw depends on the texts of the table, so look again below
    for _ in range(8):
        shot = next(row["text"] for row in told if row["no"] == drawn).upper().replace(" ", "  ")
        text = world.recipe.read_text().split("[[ask]]")
        text[1] = (
            text[1].split("prompt")[0] + f'prompt = "Example: {shot} Answer: 1. Now: {{{{ text }}}}"\ncost = 1.0\n\n'
        )
        world.recipe.write_text("[[ask]]".join(text))
        document = world.document(SETTINGS)
        if drawn in document["drawn"]:
            break
        drawn = document["drawn"][5]
    (entry,) = document["leaks"]
    assert (entry["items"], entry["column"]) == ([drawn], "text")
    assert "example" in entry["how"]


@pytest.mark.parametrize(
    ("cell", "numbers"),
    [
        ("1,234.50", [1234.5]),
        ("1.234,50 €", [1234.5]),
        ("USD 1'234.5", [1234.5]),
        ("−7", [-7.0]),
        ("1.234", [1.234, 1234.0]),
        ("12 %", [12.0]),
        ("pay 12", []),
        ("item 3: 12", []),
        ("ABCDEF", []),
    ],
)
def test_a_number_is_seen_however_it_is_written(cell: str, numbers: list[float]) -> None:
    assert sorted(set(_readings(cell)) & set(numbers)) == numbers
    assert bool(_readings(cell)) == bool(numbers)


@pytest.mark.parametrize(("cell", "leak"), [("(b)", True), ("Answer: B", True), ("A", False), ("b" * 50, False)])
def test_an_option_in_other_words_is_a_copy(cell: str, leak: bool) -> None:
    parser = ChoiceParser(("A", "B", "C"))
    truth = read_truth("B", parser, GoldRule())
    assert truth is not None
    assert _is(cell, truth, parser) is leak


@pytest.mark.parametrize("shared", [False, True])
def test_a_short_example_is_named_unless_it_is_the_name_of_a_kind(make_world: Any, shared: bool) -> None:
    """ "What is 17 x 23?" stands in a prompt because it is an example; "United Kingdom", which many
    rows have, need not.
    """
    world = make_world(items=80, wrong=0.02)
    path = world.folder / "table.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [{**row, "extra": "United Kingdom" if shared else f"invoice nr {at}"} for at, row in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    shots = "United Kingdom" if shared else ", ".join(row["extra"] for row in kept)
    text = world.recipe.read_text()
    world.recipe.write_text(text.replace('"{{ text }}"', f'"{shots} {{{{ text }}}} {{{{ extra }}}}"', 1))
    found = [entry["items"] for entry in world.document(SETTINGS)["leaks"]]
    assert [len(items) for items in found] == ([] if shared else [40])


RECIPE = {
    "data": {"id": "no", "gold": "truth"},
    "answer": {"of": "euros", "tolerance": 0.001},
    "ask": [
        {"id": "euros", "prompt": "How many? {{ no }}"},
        {"id": "cents", "prompt": "How many cents? {{ no }}", "like": "euros", "change": {"scale": 100}},
        {"id": "again", "prompt": "How many, again? {{ no }}", "like": "euros"},
    ],
    "check": [{"id": "register", "of": "cents", "by": {"value": "{{ cents }}"}}],
}


def measure(rows: list[dict[str, Any]], answers: list[dict[str, Any]]) -> dict[str, Any]:
    dataset = rrf.dataset(recipe_from_document(RECIPE), rows)
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, ("euros", "cents", "again"))
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.001)
    truths = [read_truth(row.item.gold, row.parser, rule) for row in sheet.rows]
    return measured(sheet, [truth for truth in truths if truth is not None], dataset.recipe, 0.95)


def rows(*cents: float) -> list[dict[str, Any]]:
    return [{"no": str(i), "truth": 10.0 + i, "cents": value} for i, value in enumerate(cents)]


def said(item: int, euros: float, cents: float, again: float | None = None) -> list[dict[str, Any]]:
    values = {"euros": euros, "cents": cents, "again": again}
    return [{"id": str(item), "node": n, "value": v} for n, v in values.items() if v is not None]


def test_a_relation_is_at_fault_only_where_it_denies_the_truth() -> None:
    found = measure(rows(1000.0, 1100.0, 1250.0), [*said(0, 10, 1000, 10), *said(1, 11, 900, 11), *said(2, 12, 1200)])
    cents, again = found["relations"]
    assert (cents["relation"], cents["both_read"], cents["broken"], cents["one_right"]) == ("cents like euros", 3, 1, 1)
    assert (cents["known"], cents["faults"]) == (3, 1)  # 12 euros, and the register says 1250 cents
    assert cents["bound"] == pytest.approx(0.865, abs=0.001)
    assert (again["both_read"], again["broken"], again["faults"], again["bound"]) == (2, 0, None, None)
    assert any("denies the truth in 1 of 3" in words for words in found["proposals"])


def test_a_relation_that_always_breaks_the_same_way_is_under_suspicion() -> None:
    """The model was asked for cents and always says euros: an answer that is wrong by itself would
    be wrong differently.
    """
    answers = [entry for i in range(4) for entry in said(i, 10.0 + i, 10.0 + i)]
    cents, _ = measure(rows(1000.0, 1100.0, 1200.0, 1300.0), answers)["relations"]
    assert (cents["broken"], cents["faults"]) == (4, 0)
    assert cents["same_way"] == {"how": "times 0.01", "times": 4}
    scattered = [entry for i in range(4) for entry in said(i, 10.0 + i, 7.0 * i * i + 1)]
    assert measure(rows(1000.0, 1100.0, 1200.0, 1300.0), scattered)["relations"][0]["same_way"] is None


@pytest.mark.parametrize(
    ("relation", "check", "known", "faults"),
    [
        ({"transport": {"scale": 3.0}}, {}, 30, 30),
        ({"transport": {"matrix": [[3.0]]}}, {}, 0, None),
        ({}, {"sigma": 5.0}, 0, None),
    ],
    ids=["walked", "not walked", "a noisy check"],
)
def test_what_was_not_looked_at_has_no_bound(relation: Any, check: Any, known: int, faults: int | None) -> None:
    """Every head is a third of what the relation says.

    Where nobody can walk it that was 0 faults of 30, and a check's own noise was the relation's
    fault.
    """
    recipe = {
        "data": {"id": "no", "gold": "truth"},
        "problem": {"k": 1, "delta": 0.5, "deliver": ["a"]},
        "nodes": [{"id": node, "prompt": f"{node} {{{{ no }}}}"} for node in "ab"],
        "relations": [{"id": "r", "tail": "a", "head": "b", **relation}],
        "anchors": [{"id": "other", "node": "b", "value": "{{ other }}", **check}],
    }
    table = [{"no": str(i), "truth": 10.0 + i, "other": 10.0 + i + (5.0 if check else 0.0)} for i in range(30)]
    answers = [{"id": row["no"], "node": node, "value": row["truth"]} for row in table for node in "ab"]
    dataset = rrf.dataset(recipe_from_document(recipe), table)
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, ("a", "b"))
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.5)
    truths = [truth for row in sheet.rows if (truth := read_truth(row.item.gold, row.parser, rule)) is not None]
    found = measured(sheet, truths, dataset.recipe, 0.95)
    (entry,) = found["relations"]
    assert (entry["known"], entry["faults"]) == (known, faults)
    assert (entry["bound"] is None) is (faults is None)
    assert not any(words.startswith("check 'other'") for words in found["proposals"]) or not check
