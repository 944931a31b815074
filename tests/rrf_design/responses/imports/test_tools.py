"""Every tool's log, written here the way that tool writes it, and read back."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from rrf_design.errors import InputError
from rrf_design.responses.imports import TOOLS, archive, read_logs, recognise, row_line
from rrf_design.responses.imports.records import ImportedRow, RecordPaths


def eval_file(path: Path, members: dict[str, Any], *, method: int = 93, lie: int | None = None) -> Path:
    """A zip as Inspect writes it: members compressed by zstd (method 93), which the standard library can't write."""
    directory, body = b"", b""
    for name, content in members.items():
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        packed = zstd.compress(data) if method == 93 else data
        size = len(data) if lie is None else lie
        common = struct.pack(
            "<HHHHHIIIHH", 20, 0, method, 0, 0, zlib.crc32(data), len(packed), size, len(name.encode()), 0
        )
        head = b"PK\x03\x04" + common + name.encode()
        directory += b"PK\x01\x02\x14\x00" + common + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        body += head + packed
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path


HEADER = {"version": 2, "status": "success", "eval": {"task": "invoices", "model": "openai/gpt-4.1-mini"}}


def sample(number: int, epoch: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": epoch,
        "metadata": {"invoice": f"00{number}", "wording": "total"},
        "output": {
            "model": "gpt",
            "choices": [{"message": {"role": "assistant", "content": f"old {number}"}}],
            "completion": f"{number}.50",
        },
        "scores": {"match": {"value": float("nan")}},
        "model_usage": {"openai/gpt-4.1-mini": {"input_tokens": 5, "total_cost": 0.25}},
        **more,
    }


def rows(*paths: Path, tool: str = "auto", **where: str) -> list[ImportedRow]:
    return list(read_logs(paths, tool, where=RecordPaths(**where)))


MODEL = "openai/gpt-4.1-mini"


@pytest.mark.parametrize("method", [93, 8, 0])
def test_inspect_archives(tmp_path: Path, method: int) -> None:
    members = {
        "header.json": HEADER,
        "summaries.json": [],
        "samples/1_epoch_1.json": sample(1),
        "samples/1_epoch_2.json": sample(1, 2),
        "samples/../../evil_epoch_1/sample.json": sample(2),
        "reductions.json": [],
    }
    path = tmp_path / "log.eval"
    if method == 8:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            for name, content in members.items():
                made.writestr(name, json.dumps(content))
    else:
        eval_file(path, members, method=method)
    expected = [
        ImportedRow("1", "invoices", 1, MODEL, "1.50", None, 0.25),
        ImportedRow("1", "invoices", 2, MODEL, "1.50", None, 0.25),
        ImportedRow("2", "invoices", 1, MODEL, "2.50", None, 0.25),
    ]
    assert rows(path) == expected
    named = rows(path, item="metadata.invoice", node="metadata.wording", answer="output.choices.0.message.content")
    assert named[0] == ImportedRow("001", "total", 1, MODEL, "old 1", None, 0.25)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["log.eval"]  # nothing is unpacked to disk


def test_inspect_json_and_its_failures(tmp_path: Path) -> None:
    samples = [
        sample(
            1,
            output={
                "choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}]
            },
        ),
        sample(2, output={"completion": "attachment://x1"}, attachments={"x1": "long text"}),
        sample(3, error={"message": "boom"}),
        sample(4, limit={"type": "time", "limit": 5}),
        sample(5, limit={"type": "token", "limit": 5}),
        sample(6, output={"completion": "attachment://gone"}),
        sample(7, output=None, model_usage=[3]),
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": samples}))
    found = rows(path)
    assert [(row.text, row.status) for row in found] == [
        ("ab", None), ("long text", None), (None, "error"), (None, "timeout"), (None, "error"), (None, "missing"), (None, "missing"),
    ]  # fmt: skip
    assert found[-1].cost is None


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
    path.write_text(json.dumps(lm_eval(0, [["-1.5", "False"]])))
    with pytest.raises(InputError, match="line 1: its answers are log-likelihoods"):
        rows(path)


def batch(custom: Any, body: Any, code: int = 200, error: Any = None) -> dict[str, Any]:
    return {
        "id": "batch_req_1",
        "custom_id": custom,
        "response": {"status_code": code, "request_id": "r", "body": body},
        "error": error,
    }


def chat(*texts: str | None, refusal: str | None = None) -> dict[str, Any]:
    choices = [
        {"index": i, "message": {"role": "assistant", "content": text, "refusal": refusal}}
        for i, text in enumerate(texts)
    ]
    return {"object": "chat.completion", "model": "gpt-x", "choices": choices, "usage": {"total_tokens": 3}}


def test_batch_bodies_are_what_the_client_calls_a_completion() -> None:
    """The provider's own client knows every field of the bodies that `init documents` writes, and misses none."""
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
    path.write_text(json.dumps(batch("only-an-id", chat("1"))))
    with pytest.raises(InputError, match="custom_id 'only-an-id' is not ITEM::NODE"):
        rows(path)
    assert rows(path, node="=total")[0] == ImportedRow("only-an-id", "total", 1, "gpt-x", "1")


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
    if content == b"" and (tool in ("lm-eval", "openai-batch") or (tool == "promptfoo" and ending == ".jsonl")):
        assert rows(path, tool=tool) == []
        return
    with pytest.raises(InputError) as caught:
        rows(path, tool=tool)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < 400


def test_a_bomb_is_refused_before_it_goes_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LARGEST_MEMBER", 10_000)
    members = {"header.json": HEADER, "samples/1_epoch_1.json": b"0" * 20_000}
    with pytest.raises(InputError, match="unpacks to more than"):
        rows(eval_file(tmp_path / "large.eval", members))
    with pytest.raises(InputError, match="damaged"):  # says that it is small
        rows(eval_file(tmp_path / "liar.eval", members, lie=100))
    monkeypatch.setattr(archive, "LARGEST_SUM", 300)
    with pytest.raises(InputError, match="unpacks to more than"):
        rows(eval_file(tmp_path / "many.eval", {f"samples/{i}_epoch_1.json": sample(i) for i in range(9)}))


def test_damaged_archives(tmp_path: Path) -> None:
    path = eval_file(tmp_path / "log.eval", {"header.json": HEADER, "samples/1_epoch_1.json": sample(1)})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(zstd.compress(json.dumps(sample(1)).encode())[8:20], b"\0" * 12))
    with pytest.raises(InputError, match="damaged"):
        rows(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not a zip archive"):
        rows(path)
    buffer = io.BytesIO(whole)
    assert zipfile.ZipFile(buffer).infolist()[0].compress_type == 93  # the test writes what Inspect writes


@pytest.mark.parametrize(
    "bad",
    [sample(1, id=None), sample(1, id=[1]), sample(1, id="x" * 2000), sample(1, epoch=0), sample(1, epoch=True), [1]],
)
def test_wrong_types_in_a_sample(tmp_path: Path, bad: Any) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": [sample(9), bad]}))
    with pytest.raises(InputError, match="sample 2: "):
        rows(path)


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
