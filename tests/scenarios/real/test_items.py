"""The log of a model's answers: one model's, kept once each, the same bytes for the same
answers.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from rrf_design.errors import InputError
from rrf_design.models import Reply, Request, Usage
from rrf_design.models.base import Outcome
from scenarios.real_model import arithmetic, catalogue, hidden, logs, programs
from scenarios.real_model.answers import Log


def test_128_items_sixteen_per_family_in_turn() -> None:
    items = arithmetic.items()
    assert len(items) == 128
    assert set(Counter(item.family for item in items).values()) == {16}
    assert [item.family for item in items[:8]] == list(arithmetic.FAMILIES)
    assert items[:8] == arithmetic.items(8)
    assert items != arithmetic.items(seed=1)


@pytest.mark.parametrize(
    "item", [*arithmetic.items(), *arithmetic.our_items(), *arithmetic.printed_items()], ids=lambda item: item.id
)
def test_answers_are_those_of_integer_arithmetic(item: arithmetic.AskedExpression) -> None:
    assert re.fullmatch(r"[\d\s+*/()-]+", item.text)
    value = eval(item.text)
    assert value == item.answer
    assert float(value).is_integer()


@pytest.mark.parametrize("printed", arithmetic.printed_items(), ids=lambda item: item.id)
def test_the_printed_catalogue_could_have_been_drawn(printed: arithmetic.AskedExpression) -> None:
    text = printed.text
    assert printed.family == list(arithmetic.FAMILIES)[(printed.printed or 0) % 8]
    assert printed.scale in arithmetic.SCALES
    assert printed.shift in arithmetic.SHIFTS
    drawn = [item for item in arithmetic.items(1024) if item.family == printed.family]
    shape = re.sub(r"\d+", "n", text)
    assert {re.sub(r"\d+", "n", item.text) for item in drawn} == {shape}
    places = [[int(n) for n in re.findall(r"\d+", item.text)] for item in drawn]
    for position, number in enumerate(int(n) for n in re.findall(r"\d+", text)):
        low, high = min(p[position] for p in places), max(p[position] for p in places)
        slack = 0.1 * (high - low) + 1
        assert low - slack <= number <= high + slack


def test_four_typed_ways_of_asking() -> None:
    item = arithmetic.items(4)[3]
    queries = arithmetic.query(item)
    truths = [query.scale * item.answer + query.shift for query in queries]
    assert truths == [item.answer, item.answer, item.scale * item.answer, item.answer + item.shift]
    assert [query.back(value) for query, value in zip(queries, truths, strict=True)] == pytest.approx([item.answer] * 4)
    prompts = [query.request.prompt for query in queries]
    assert all(item.text in prompt for prompt in prompts)
    assert all(str(item.answer) not in prompt for prompt in prompts)
    assert queries[0].request.max_tokens == 24
    assert len(set(prompts)) == 4


def test_our_items_differ_and_swap_their_operands() -> None:
    items = arithmetic.our_items()
    assert len({item.text for item in items}) == 64
    queries = arithmetic.query(items[0])
    left, sign, right = items[0].text.split()
    assert f"{right} {sign} {left}" in queries[2].request.prompt


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


def test_every_answer_is_the_value_of_its_expression() -> None:
    table = catalogue.expressions([*arithmetic.items(16), *programs.items(1)])
    assert table.columns == ("item", "family", "expression", "answer", "scale", "shift")
    assert len(table.rows) == 16
    for _, _, expression, answer, _, _ in table.rows:
        assert eval(str(expression)) == answer


def test_references_agree_with_their_tests() -> None:
    item = programs.items(1)[0]
    (content,) = catalogue.programs_file([item, *arithmetic.items(1)]).values()
    line = json.loads(gzip.decompress(content))
    assert [item.family.reference(*arguments) for arguments in line["hidden"]] == line["hidden_reference"]
    assert len(line["public"]) == programs.PUBLIC_TESTS
    assert set(line["prompts"]) == set(programs.VARIANTS)


def test_nothing_is_written_where_there_is_nothing() -> None:
    assert catalogue.programs_file(arithmetic.items(1)) == {}
    assert catalogue.expressions(programs.items(1)).rows == ()


def reply(text: str, **identity: object) -> Reply:
    known = {"adapter": "embedded", "sha256": "ab", **identity}
    return Reply(text, Outcome.ANSWERED, Usage(), known, {}, {}, 0.0, 1)


def test_a_request_keeps_its_first_answer() -> None:
    log = Log()
    log.add(Request("2 + 2"), reply("4"))
    log.add(Request("2 + 2"), reply("5"))
    assert (len(log), log.text(Request("2 + 2"))) == (1, "4")


def test_answers_of_two_models_are_never_mixed() -> None:
    log = Log()
    log.add(Request("2 + 2"), reply("4"))
    with pytest.raises(InputError, match="never mixed"):
        log.add(Request("3 + 3"), reply("6", sha256="cd"))


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    log = Log(spec="embedded")
    log.add(Request("2 + 2"), reply("4"), at="noon")
    (tmp_path / "log.gz").write_bytes(log.dumps())
    again = Log.read(tmp_path / "log.gz")
    assert again.dumps() == log.dumps()
    assert again.same_words(log) == 1


def test_a_log_that_counted_slots_goes_on_with_any_number_of_them(tmp_path: Path) -> None:
    """Version 0.1 wrote slots into the identity: such a log is still that model's."""
    header = {
        "format": "rrf-scenario-answers",
        "version": 1,
        "model": "embedded",
        "identity": {"adapter": "embedded", "sha256": "ab", "slots": 1},
    }
    (tmp_path / "old.gz").write_bytes(gzip.compress((json.dumps(header) + "\n").encode()))
    log = Log.read(tmp_path / "old.gz")
    log.add(Request("2 + 2"), reply("4"))
    assert len(log) == 1


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(b""), gzip.compress(b'{"format": "x"}\n')],
    ids=["no gzip", "empty", "another format"],  # without names the clock in gzip's header would name the cases
)
def test_what_is_no_log_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.gz").write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.gz"):
        Log.read(tmp_path / "bad.gz")


REPORTS = Path(__file__).parents[3] / "reports"


def test_published_logs_are_found_beside_the_page() -> None:
    found = logs.paths(None, REPORTS / "error-directions", "x")
    assert [path.parent.name for path in found] == ["real-model", "real-model-coder"]
    assert len({logs.model(path) for path in found}) == 2


def test_no_log_and_one_model_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--set logs="):
        logs.paths(None, tmp_path / "x", "x")
    one = REPORTS / "real-model" / "answers.jsonl.gz"
    with pytest.raises(InputError, match="one log per model"):
        logs.paths(f"{one}, {one}", tmp_path, "x")


def test_only_items_with_every_answer_are_covered() -> None:
    log = logs.read(REPORTS / "real-model-coder" / "answers.jsonl.gz")
    assert len(logs.covered(log, "mathematics", seed=0)) == 128
    assert len(logs.covered(log, "mathematics", seed=0, most=3)) == 3
    assert logs.covered(log, "mathematics", seed=5) == []
