"""Logs of other tools: who wrote them, what they share, and each tool's own form."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tool_logs import batch, chat, lines_in, rows

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.responses.imports import TOOLS, node_names, read_logs, recognise, row_line
from rrf_design.responses.imports import _records as records
from rrf_design.responses.imports._records import (
    ImportedRow,
    RecordPaths,
    _lines,
    at,
    first_record,
    money,
    name_at,
    parse,
    text_of,
    whole,
)
from rrf_design.verdict import Verdict


def test_one_answer_twice_is_refused_across_files(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(json.dumps(batch("007::total", chat("1"))))
    with pytest.raises(
        InputError, match=r"b.jsonl: a second answer of item '007', node 'total', repeat 1 \(the first is in .*a.jsonl"
    ):
        rows(tmp_path / "a.jsonl", tmp_path / "b.jsonl")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a": ' + b"9" * 9000 + b"}", b'{"samples": [3], "results": {"results": [3]}, "custom_id": [1], "resps": {}, "doc_id": null}', b'{"samples": 3, "results": [], "custom_id": {}, "resps": [[]], "doc_id": true}'],
    ids=range(10),
)  # fmt: skip
@pytest.mark.parametrize("ending", [".json", ".jsonl", ".eval"])
def test_hostile_files_are_one_line(tmp_path: Path, tool: str, content: bytes, ending: str) -> None:
    path = tmp_path / f"log{ending}"
    path.write_bytes(content)
    if content == b"" and (
        tool in ("lm-eval", "openai-batch", "rrf-design") or (tool == "promptfoo" and ending == ".jsonl")
    ):
        assert rows(path, tool=tool) == []
        return
    with pytest.raises(InputError) as caught:
        rows(path, tool=tool)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < 400


def test_who_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"hello": 1}')
    with pytest.raises(InputError, match="no log of a known tool"):
        recognise(path)
    with pytest.raises(InputError, match="'inspekt' is unknown; did you mean 'inspect'"):
        rows(path, tool="inspekt")


def test_a_line_of_json(tmp_path: Path) -> None:
    assert (
        row_line(ImportedRow("007", "total", 1, None, "é"))
        == '{"id": "007", "node": "total", "repeat": 1, "text": "é"}'
    )
    assert (
        row_line(ImportedRow("007", "total", 1, None, "\ud800")).encode()
        == b'{"id": "007", "node": "total", "repeat": 1, "text": "\\ud800"}'
    )


LOGS = Path(__file__).parent / "logs"
INSPECT = RecordPaths(item="metadata.invoice", node="metadata.wording")
PROMPTFOO = RecordPaths(item="vars.no")
LM_EVAL = RecordPaths(item="doc.no")
TOTALS = {"007": "11.90", "008": "47.60", "009": "67.41"}
SAID = {
    (no, node): f"The total is {'48.60' if (no, node) == ('008', 'reworded') else total}."
    for no, total in TOTALS.items()
    for node in ("total", "reworded")
}


@pytest.mark.parametrize(
    ("names", "tool", "where", "repeats"),
    [
        (["inspect.eval"], "inspect", INSPECT, 2),
        (["inspect.json"], "inspect", INSPECT, 1),
        (["promptfoo.json"], "promptfoo", PROMPTFOO, 2),
        (["promptfoo.jsonl"], "promptfoo", PROMPTFOO, 2),
        ([path.name for path in sorted(LOGS.glob("samples_*.jsonl"))], "lm-eval", LM_EVAL, 1),
    ],
)
def test_what_the_tools_wrote(names: list[str], tool: str, where: RecordPaths, repeats: int) -> None:
    paths = [LOGS / name for name in names]
    assert {recognise(path) for path in paths} == {tool}
    rows = list(read_logs(paths, where=where))
    wanted = {key: text for key, text in SAID.items() if names != ["inspect.json"] or key[0] == "007"}
    assert {(row.id, row.node, row.repeat) for row in rows} == {(*key, n + 1) for key in wanted for n in range(repeats)}
    assert {(row.id, row.node): row.text for row in rows} == wanted
    assert all(row.status is None for row in rows)


def test_import_then_repair(tmp_path: Path) -> None:
    """Two repeats of two wordings: the wrong one is outvoted by what its total says, without one
    call.
    """
    (tmp_path / "answers.jsonl").write_text(
        "".join(row_line(row) + "\n" for row in read_logs([LOGS / "promptfoo.json"], where=PROMPTFOO))
    )
    asks = [
        {"id": "total", "prompt": "Total of {{ no }}?", "repeat": 2},
        {"id": "reworded", "like": "total", "prompt": "To pay for {{ no }}?", "repeat": 2},
    ]
    answer = {"of": "total", "tolerance": 0.005, "k": 1}
    recipe = {"data": {"id": "no"}, "answer": answer, "ask": asks}
    found = rrf.repair(rrf.dataset(recipe, [{"no": no} for no in TOTALS]), tmp_path / "answers.jsonl")
    assert (found["007"].answer, found["007"].verdict) == (11.9, Verdict.CONSISTENT)
    assert found["008"].verdict is not Verdict.CONSISTENT  # two against two
    assert found["008"].answer is None


@pytest.mark.parametrize(
    ("path", "found"),
    [("a", [{"b": 1}, 2]), ("a.0.b", 1), ("a.1", 2), ("a.2", None), ("a.-1", None), ("a.0.b.c", None), ("x.y", None)],
)
def test_a_dotted_path(path: str, found: Any) -> None:
    assert at({"a": [{"b": 1}, 2]}, path) == found


def test_names_are_texts_or_whole_numbers() -> None:
    record = {"text": " 007 ", "number": 7, "truth": True, "float": 1.5, "blank": "  ", "long": "x" * 1001}
    assert name_at(record, "text", "item") == " 007 "
    assert name_at(record, "number", "item") == "7"
    assert name_at(record, "=total", "node") == "total"
    for path in ("truth", "float", "blank", "gone", "="):
        with pytest.raises(InputError, match=f"no item at '{path}': .*text or a whole number is needed"):
            name_at(record, path, "item")
    with pytest.raises(InputError, match="more than 1000 characters"):
        name_at(record, "long", "item")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, None),
        ("", ""),
        ([{"text": "a"}, {"type": "image"}, {"text": "b"}], "ab"),
        ([{"type": "image"}], '[{"type": "image"}]'),
        ([], "[]"),
        ({"é": 1}, '{"é": 1}'),
        (3, "3"),
        (False, "false"),
    ],
)
def test_an_answer_as_text(found: Any, text: str | None) -> None:
    assert text_of(found) == text


@pytest.mark.parametrize(
    ("found", "cost"),
    [(0, 0.0), (2, 2.0), (0.5, 0.5), (-0.1, None), (True, None), ("1", None), (None, None), (10**400, None), (-(10**400), None), (float("inf"), None), (float("nan"), None)],
)  # fmt: skip
def test_a_cost_is_a_finite_number_from_zero_on(found: Any, cost: float | None) -> None:
    assert money(found) == cost


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xff", "here: not UTF-8 text"),
        ("[" * 100_000, "here: nested too deeply"),
        ("{", "here: not valid JSON"),
        ("9" * 5000, "here: not valid JSON"),
    ],
)
def test_bad_json_is_one_line(text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse(text, "here")
    assert "\n" not in str(caught.value)


def test_the_first_record_and_scores_that_are_no_number(tmp_path: Path) -> None:
    assert parse("[NaN, Infinity, 1]", "here") == [None, None, 1]
    path = tmp_path / "x.json"
    path.write_text("\ufeff" + json.dumps({"a": 1}))
    assert first_record(path) == {"a": 1}
    path.write_text("[1]")
    assert first_record(path) == {}


def test_lines_and_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n\n  \n{"a": 2}')
    assert list(_lines(path)) == [(1, {"a": 1}), (4, {"a": 2})]
    assert first_record(path) == {"a": 1}
    path.write_text("{}\n[1]")
    with pytest.raises(InputError, match="line 2: must be an object, not list"):
        list(_lines(path))
    path.write_text("")
    assert first_record(path) == {}
    with pytest.raises(InputError, match="can't be read"):
        list(_lines(tmp_path / "gone.jsonl"))


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = lines_in(tmp_path / "x.jsonl", {"a": "x" * 100})
    monkeypatch.setattr(records, "LONGEST_LINE", 50)
    with pytest.raises(InputError, match="line 1: longer than"):
        list(_lines(path))
    monkeypatch.setattr(records, "LARGEST_FILE", 50)
    with pytest.raises(InputError, match="larger than"):
        whole(path)
    with pytest.raises(InputError, match="can't be read"):
        whole(tmp_path / "gone.json")


def lm_eval(doc: int, texts: Any, filter_name: str = "none", **more: Any) -> dict[str, Any]:
    return {"doc_id": doc, "doc": {"no": f"00{doc}"}, "target": "5", "resps": [texts], "filtered_resps": ["5"], "filter": filter_name,
            "doc_hash": f"h{doc}", "prompt_hash": "p", **more}  # fmt: skip


def test_lm_eval_drops_the_doubles_of_its_filters(tmp_path: Path) -> None:
    path = tmp_path / "samples_gsm8k_cot_2026-01-02T03-04-05.678901.jsonl"
    lines = [lm_eval(0, ["a", "b"], name) for name in ("strict", "flexible")] + [lm_eval(1, ["c"])]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert rows(path) == [
        ImportedRow("0", "gsm8k_cot", 1, None, "a"), ImportedRow("0", "gsm8k_cot", 2, None, "b"), ImportedRow("1", "gsm8k_cot", 1, None, "c"),
    ]  # fmt: skip
    assert rows(path, item="doc.no")[0].id == "000"
    path.write_text("".join(json.dumps(line) + "\n" for line in (lm_eval(0, ["a"]), lm_eval(0, ["other"]))))
    with pytest.raises(InputError, match="line 2: a second document '0' with other answers"):
        rows(path)
    lines_in(path, lm_eval(0, [["-1.5", "False"]]))
    with pytest.raises(InputError, match="line 1: its answers are log-likelihoods"):
        rows(path)


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("samples_a_b_2026-01-02T03-04-05.678901.jsonl", "a_b"),
        ("samples_plain.jsonl", "plain"),
        ("other.jsonl", "other"),
    ],
)
def test_the_task_stands_in_the_file_name(tmp_path: Path, name: str, task: str) -> None:
    path = lines_in(tmp_path / name, lm_eval(0, ["a"]))
    assert rows(path) == [ImportedRow("0", task, 1, None, "a")]
    assert rows(path, node="target")[0].node == "5"


def test_an_answer_at_a_path_of_its_own(tmp_path: Path) -> None:
    path = lines_in(tmp_path / "samples_t.jsonl", lm_eval(0, ["a", "b"]))
    assert rows(path, answer="filtered_resps.0") == [ImportedRow("0", "t", 1, None, "5")]
    assert rows(path, answer="nowhere") == [ImportedRow("0", "t", 1, None, None, "missing")]


@pytest.mark.parametrize("resps", [None, [], [[]], "text", [5]])
def test_a_file_of_something_else(tmp_path: Path, resps: Any) -> None:
    path = lines_in(tmp_path / "samples_t.jsonl", {**lm_eval(0, []), "resps": resps})
    with pytest.raises(InputError, match="line 1: no resps in it"):
        rows(path, tool="lm-eval")


def test_bodies_are_what_the_client_calls_a_completion() -> None:
    """The provider's own client knows every field of the bodies that `init documents` writes, and
    misses none.
    """
    completion = pytest.importorskip("openai.types.chat").ChatCompletion
    lines = (files("rrf_design") / "templates" / "documents" / "batch.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        assert set(line) == {"id", "custom_id", "response", "error"}
        if line["error"] is None:
            assert set(line["response"]) == {"status_code", "request_id", "body"}
            read = completion.model_validate(line["response"]["body"])
            assert not read.model_extra
            assert read.choices[0].message.content


def test_openai_batches(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    output = {
        "model": "gpt-y",
        "output": [
            {"type": "reasoning"},
            {
                "type": "message",
                "content": [{"type": "output_text", "text": "x"}, {"type": "output_text", "text": "y"}],
            },
        ],
    }
    refused = {"model": "gpt-y", "output": [{"content": [{"type": "refusal", "refusal": "no"}]}]}
    lines = [
        batch("007::total::2", chat("119")),
        batch("007::total", chat("118")),
        batch("008::total", output),
        batch("009::total", chat(None, refusal="no")),
        batch("010::total", {"error": {"message": "x"}}, 429),
        batch("011::total", chat("1", "2")),
        batch("012::total", refused),
        {"id": "b", "custom_id": "013::total", "response": None, "error": {"code": "batch_expired"}},
    ]
    path.write_text("\ufeff" + "\n".join(json.dumps(line) for line in lines))
    assert [(row.id, row.repeat, row.model, row.text, row.status) for row in rows(path)] == [
        ("007", 2, "gpt-x", "119", None),
        ("007", 1, "gpt-x", "118", None),
        ("008", 1, "gpt-y", "xy", None),
        ("009", 1, "gpt-x", None, "refusal"),
        ("010", 1, None, None, "error"),
        ("011", 1, "gpt-x", "1", None),
        ("011", 2, "gpt-x", "2", None),
        ("012", 1, "gpt-y", None, "refusal"),
        ("013", 1, None, None, "error"),
    ]
    lines_in(path, batch("only-an-id", chat("1")))
    with pytest.raises(InputError, match="custom_id 'only-an-id' is not ITEM::NODE"):
        rows(path)
    assert rows(path, node="=total")[0] == ImportedRow("only-an-id", "total", 1, "gpt-x", "1")


@pytest.mark.parametrize("custom", ["a::b::0", "a::b::-1", "a::b::x", "a::b::1000001", "a::b::99999999999999999999"])
def test_a_repeat_counts_from_one(tmp_path: Path, custom: str) -> None:
    path = lines_in(tmp_path / "out.jsonl", batch(custom, chat("1")))
    with pytest.raises(InputError, match=r"line 1: .*its repeat must be a whole number from 1 on"):
        rows(path)


@pytest.mark.parametrize("custom", ["a", "a::b::1::2", "::b", "a::", None, 5])
def test_an_id_that_names_nothing(tmp_path: Path, custom: Any) -> None:
    path = lines_in(tmp_path / "out.jsonl", batch(custom, chat("1")))
    with pytest.raises(InputError, match=r"^[^\n]*line 1: "):
        rows(path)


@pytest.mark.parametrize("content", [5, "text", {"text": "x"}, None, [5], [{"type": "output_text", "text": 5}]])
def test_output_that_says_nothing_is_missing(tmp_path: Path, content: Any) -> None:
    path = lines_in(tmp_path / "out.jsonl", batch("a::b", {"model": 7, "output": [{"content": content}, 3]}))
    assert rows(path) == [ImportedRow("a", "b", 1, None, None, "missing")]


def test_a_body_of_neither_format(tmp_path: Path) -> None:
    path = lines_in(tmp_path / "out.jsonl", batch("a::b", {"text": "1"}))
    with pytest.raises(InputError, match="line 1: neither choices nor output in its body"):
        rows(path)
    assert rows(path, answer="response.body.text") == [ImportedRow("a", "b", 1, None, "1")]
    lines_in(path, batch("a::b", {"choices": []}))
    assert rows(path) == [ImportedRow("a", "b", 1, None, None, "missing")]


def promptfoo(no: str, prompt: int, provider: Any, **more: Any) -> dict[str, Any]:
    return {
        "promptIdx": prompt,
        "testIdx": 17,
        "vars": {"no": no, "text": "..."},
        "testCase": {"vars": {"no": no}, "metadata": {"row": no}, "assert": []},
        "prompt": {"raw": "Total?\n...", "label": "Total?\n{{ text }}" if prompt else "short"},
        "provider": provider,
        "response": {"output": f"answer {no}"},
        "success": False,
        "failureReason": 1,
        "cost": 0.5,
        **more,
    }


def test_promptfoo(tmp_path: Path) -> None:
    results = [
        promptfoo("007", 0, {"id": "openai:gpt-4.1", "label": "mini"}),
        promptfoo("007", 0, {"id": "openai:gpt-4.1", "label": "mini"}),
        promptfoo("007", 1, {"id": "openai:gpt-4.1", "label": ""}, response={"output": {"total": 3}}),
        promptfoo("008", 0, "echo", error="API error", failureReason=2),
        promptfoo("009", 0, "echo", response={}),
        promptfoo("010", 0, "echo", error="Expected output to equal 3", response={"output": "4"}),
    ]
    expected = [
        ImportedRow("007", "short", 1, "mini", "answer 007", None, 0.5),
        ImportedRow("007", "short", 2, "mini", "answer 007", None, 0.5),
        ImportedRow("007", "prompt-2", 1, "openai:gpt-4.1", '{"total": 3}', None, 0.5),
        ImportedRow("008", "short", 1, "echo", None, "error", 0.5),
        ImportedRow("009", "short", 1, "echo", None, "missing", 0.5),
        ImportedRow("010", "short", 1, "echo", "4", None, 0.5),
    ]
    one = tmp_path / "out.json"
    one.write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": results}, "config": {}}))
    many = tmp_path / "out.jsonl"
    many.write_text("".join(json.dumps(result) + "\n" for result in results))
    assert rows(one, item="vars.no") == rows(many, item="vars.no") == expected
    assert rows(one, item="testCase.metadata.row", node="=total")[0].node == "total"
    with pytest.raises(
        InputError, match=r"which variable names the item\? Say so with --item \(there are: vars.no, vars.text\)"
    ):
        rows(one)


@pytest.mark.parametrize("given", [5, "text", ["a"], None])
def test_variables_that_are_none(tmp_path: Path, given: Any) -> None:
    path = lines_in(tmp_path / "out.jsonl", promptfoo("7", 0, "echo", vars=given))
    with pytest.raises(InputError, match=r"line 1: which variable names the item\? Say so with --item$"):
        rows(path)


def test_the_item_is_found_under_its_usual_names(tmp_path: Path) -> None:
    path = lines_in(tmp_path / "out.jsonl", promptfoo("7", 0, None, vars={"id": "v"}, metadata={"id": "m"}))
    assert rows(path) == [ImportedRow("v", "short", 1, None, "answer 7", None, 0.5)]
    lines_in(path, promptfoo("7", 0, None, metadata={"id": "m"}))
    assert rows(path)[0].id == "m"


@pytest.mark.parametrize("label", ["", "  ", "two\nlines", "{{ text }}", "x" * 81, 5])
def test_a_wording_without_a_plain_label_is_numbered(tmp_path: Path, label: Any) -> None:
    path = lines_in(tmp_path / "out.jsonl", promptfoo("7", 3, "echo") | {"prompt": {"label": label}})
    assert rows(path, item="vars.no")[0].node == "prompt-4"
    lines_in(path, promptfoo("7", True, "echo") | {"prompt": {"label": label}})
    with pytest.raises(InputError, match="say with --node what tells the wordings apart"):
        rows(path, tool="promptfoo", item="vars.no")


def test_nodes_get_other_names(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    label = "file://prompts/total.txt: Total, in EUR"
    results = [promptfoo("7", 0, "echo") | {"prompt": {"label": label}}, promptfoo("7", 1, "echo")]
    path.write_text("".join(json.dumps(result) + "\n" for result in results))
    names = node_names([f"{label}=total,prompt-2=cents"])
    found = read_logs([path], where=RecordPaths("vars.no"), names=names)
    assert [row.node for row in found] == ["total", "cents"]
    with pytest.raises(
        InputError, match=r"no node 'prompt-3'; did you mean 'prompt-2'\? \(there are: file.*prompt-2\)"
    ):
        list(read_logs([path], where=RecordPaths("vars.no"), names={"prompt-3": "total"}))
    with pytest.raises(InputError, match="a second answer of item '7', node 'total'"):
        list(read_logs([path], where=RecordPaths("vars.no"), names=dict.fromkeys((label, "prompt-2"), "total")))


@pytest.mark.parametrize("given", ["a", "a=", "=b", "a=b,c", "a=b,a=c"])
def test_names_that_are_none(given: str) -> None:
    with pytest.raises(InputError, match=r"--node-names '[abc=]*': write old=new"):
        node_names([given])
    assert node_names(["a=b,c=d", "x=1: e=f,"]) == {"a": "b", "c": "d", "x=1: e": "f"}
