"""Attackers who let the questions show their answers: by name, by a copy, by a transform, by an
example.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rrf_design.errors import InputError, Refused
from rrf_design.promises import PilotSettings
from rrf_design.promises._pilot_analysis import _is, _readings
from rrf_design.promises._truths import GoldRule, read_truth
from rrf_design.responses.worded import ChoiceParser

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
