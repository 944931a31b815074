from __future__ import annotations

import json
from pathlib import Path

import pytest

from rrf_design.errors import InputError
from rrf_design.problem import Problem
from rrf_design.promises._sheets import PolicyTemplate, read_sheet
from rrf_design.questions import dataset
from rrf_design.questions.answers import RecordedAnswers


def shape(**changes: object) -> PolicyTemplate:
    parts: dict[str, object] = {
        "name": "field",
        "deliver": ["a"],
        "nodes": [{"id": "a"}, {"id": "b", "cost": 2.0}, {"id": "c"}, {"id": "parts", "dim": 2}],
        "relations": [
            {"id": "ab", "tail": "a", "head": "b", "transport": {"scale": 2.0}, "offset": 1.0},
            {"id": "cb", "tail": "c", "head": "b"},
        ],
        "anchors": [{"id": "sum", "nodes": ["parts", "a"], "rows": [[1.0, 1.0, -1.0]], "value": 0.0}],
        **changes,
    }
    return PolicyTemplate(Problem(**parts))


def test_answers_are_carried_to_the_delivered_value_along_any_path() -> None:
    found = shape()
    assert found.implied("a", (5.0,), {}) == (5.0,)
    assert found.implied("b", (11.0,), {}) == (5.0,)
    assert found.implied("c", (11.0,), {}) == (5.0,)  # through b
    assert found.implied("b", (13.0,), {"ab": 3.0}) == (5.0,)  # the row's own offset
    assert found.implied("parts", (2.0, 3.0), {}) is None  # only its sum says something
    assert found.implied("c", None, {}) is None
    assert found.prices == {"a": 0.0, "b": 2.0, "c": 0.0, "parts": 0.0}


def test_a_permutation_is_undone() -> None:
    found = PolicyTemplate(
        Problem(
            name="order",
            nodes=[{"id": "ab", "dim": 3}, {"id": "ba", "dim": 3}],
            relations=[{"id": "swap", "tail": "ab", "head": "ba", "transport": {"permute": [2, 0, 1]}}],
        )
    )
    # z_ba[i] = z_ab[permute[i]]
    assert found.implied("ba", (30.0, 10.0, 20.0), {}) == (10.0, 20.0, 30.0)


def test_camps_decide_only_where_every_node_is_a_voice_and_nothing_is_noisy() -> None:
    plain = {
        "nodes": [{"id": "a"}, {"id": "b"}],
        "relations": [{"id": "ab", "tail": "a", "head": "b"}],
        "anchors": [],
    }
    assert shape(**plain).identity
    assert not shape().identity
    assert not shape(**plain, epsilon=0.1).identity
    assert not shape(**plain, target=0.4).identity
    assert not shape(**{**plain, "anchors": [{"id": "x", "node": "a", "value": 1.0}]}).identity
    assert not shape(**{**plain, "relations": [{"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.1}]}).identity


def test_a_person_without_a_price_is_refused() -> None:
    with pytest.raises(InputError, match="give the check a cost"):
        shape(anchors=[{"id": "clerk", "node": "a", "source": {"person": "?"}}])


def test_equal_answers_share_a_code(tmp_path: Path) -> None:
    (tmp_path / "rrf.toml").write_text(
        '[data]\nid = "no"\n[answer]\nof = "a"\n[[ask]]\nid = "a"\nprompt = "{{ no }}"\n'
        '[[ask]]\nid = "b"\nprompt = "{{ no }}"\nlike = "a"\nchange = { scale = 3 }\n'
        '[[ask]]\nid = "c"\nprompt = "{{ no }}"\nlike = "a"\n'
    )
    (tmp_path / "t.csv").write_text("no\n1\n2\n")
    rows = [
        ("1", "a", "5"),
        ("1", "b", "15"),
        ("1", "c", "6"),
        ("2", "a", "none"),
        ("2", "c", "0.1"),
        ("2", "b", "0.3"),
    ]
    lines = [json.dumps({"id": i, "node": n, "text": t, "cost": 0.5}) for i, n, t in rows]
    (tmp_path / "long.jsonl").write_text("\n".join(lines))
    data = dataset(tmp_path / "rrf.toml", tmp_path / "t.csv")
    with RecordedAnswers(data, tmp_path / "long.jsonl") as answers:
        sheet = read_sheet(data, answers, ["a", "b", "c"])
    assert sheet.codes.tolist() == [[0, 0, 2], [-1, 1, 1]]  # 0.3 / 3 is 0.1 up to rounding
    assert sheet.costs.tolist() == [[0.5] * 3] * 2
    assert sheet.rows[1].invalid == {"a": "parse failure"}
    assert sheet.rows[0].answers(["a", "c"]).invalid == {"b": "missing"}


def test_answers_are_read_as_a_repair_reads_them(tmp_path: Path) -> None:
    """Any words may be a class, but a refusal is none: three models that refuse in the same words
    agree on nothing.
    """
    asks = "".join(
        f'[[ask]]\nid = "{name}"\nprompt = "{{{{ text }}}} {name}"\nparse = "label"\n' + ('like = "a"\n' if at else "")
        for at, name in enumerate("ab")
    )
    (tmp_path / "rrf.toml").write_text(
        '[data]\ntable = "t.jsonl"\nid = "no"\n[answer]\nof = "a"\nk = 1\n' + asks,
    )
    (tmp_path / "t.jsonl").write_text('{"no": "x", "text": "Which city?"}\n')
    rows = [{"id": "x", "node": name, "text": "I cannot answer that."} for name in "ab"]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = dataset(tmp_path / "rrf.toml")
    with RecordedAnswers(data, tmp_path / "answers.jsonl") as answers:
        sheet = read_sheet(data, answers, ["a", "b"])
    assert sheet.codes.tolist() == [[-1, -1]]
    assert sheet.rows[0].invalid == {"a": "refusal", "b": "refusal"}
