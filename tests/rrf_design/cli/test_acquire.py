"""acquire, and the consent that it wants."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from loopback_model import model_server

import rrf_design as rrf
from rrf_design.cli import main

PROBLEM = """
[problem]
name = "capital sums"
k = 1
budget = 3.0
{extra}
[[nodes]]
id = "x"
prompt = "x?"
[[nodes]]
id = "y"
prompt = "y?"
[[nodes]]
id = "z"
prompt = "z?"
[[relations]]
id = "xy"
tail = "x"
head = "y"
[[relations]]
id = "yz"
tail = "y"
head = "z"
cost = 1.0
[[anchors]]
id = "a"
node = "x"
value = 7.0
cost = 1.0
[[anchors]]
id = "b"
node = "z"
source = "expression: 3 + 4"
cost = 1.0
"""
SCRIPT = {"rules": [{"prompt": "y?", "text": "It is 8."}], "default": "7"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RRF_STORE", raising=False)
    Path("p.toml").write_text(PROBLEM.format(extra="target = 0.3"))
    Path("s.json").write_text(json.dumps(SCRIPT))
    return tmp_path


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    return int(caught.value.code or 0)


def test_json_is_one_object_with_the_promised_keys(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("acquire", "p.toml", "--model", "scripted:s.json", "--method", "witness", "--json") == 0
    out = capsys.readouterr().out
    document: dict[str, Any] = json.loads(out)
    assert {"run", "stopped_because", "spent", "gamma_lower", "purchases", "repaired"} <= set(document)
    assert document["stopped_because"] == "target reached"
    assert document["repaired"]["y"] == pytest.approx([7.0])
    assert out.count("\n") == 1
    assert (here / "rrf-runs.sqlite").exists()


def test_a_missed_target_is_exit_code_one(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.toml").write_text(PROBLEM.format(extra="target = 9.0"))
    assert call("acquire", "p.toml", "--model", "scripted:s.json", "--method", "witness", "--budget", "1") == 1
    captured = capsys.readouterr()
    assert "certified margin" in captured.out
    assert "answered = 7" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["acquire"], "name a FILE, or write one with rrf-design init"),
        (["acquire", "missing.toml"], "no such file"),
        (["acquire", "p.toml", "--model", "nonsense"], "unknown model 'nonsense'"),
        (["acquire", "p.toml", "--model", "scripted:s.json", "--store", "mysql://x"], "use a path, sqlite:///PATH"),
        (["acquire", "--resume", "zzz"], "no journal of runs"),
        (["acquire", "p.toml", "p.toml", "--model", "scripted:s.json"], "two problem files are called 'p'"),
        (["show", "zzz"], "no journal of runs"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_two(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert call(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_several_files_are_a_data_set(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.toml").write_text(PROBLEM.format(extra=""))
    given = [
        "acquire",
        "p.toml",
        "q.toml",
        "--model",
        "scripted:s.json",
        "--method",
        "witness",
        "--budget",
        "4",
        "--json",
    ]
    assert call(*given) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document["repaired"]) == {"p", "q"}
    assert document["spent"] <= 4


def test_resume_needs_only_the_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["--method", "witness", "--json"]
    call("acquire", "p.toml", "--model", "scripted:s.json", *base)
    first = json.loads(capsys.readouterr().out)
    assert call("acquire", "--resume", first["run"], "--json") == 0
    second = json.loads(capsys.readouterr().out)
    assert second["purchases"] == first["purchases"]


def test_commands_run_only_when_allowed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PROBLEM.format(extra="").replace('source = "expression: 3 + 4"', 'source = { command = ["echo", "7"] }')
    Path("c.toml").write_text(text)
    given = ["acquire", "c.toml", "--model", "scripted:s.json", "--method", "witness", "--budget", "3", "--json"]
    assert call(*given) == 2
    assert "--allow-commands" in capsys.readouterr().err
    assert call(*given, "--allow-commands") == 0
    values = {p["name"]: p["value"] for p in json.loads(capsys.readouterr().out)["purchases"]}
    assert values["b"] == [7.0]


def test_documents_are_written(here: Path) -> None:
    call("acquire", "p.toml", "--model", "scripted:s.json", "--method", "witness", "-q", "-o", "run.json")
    assert json.loads(Path("run.json").read_text())["format"] == "rrf-run"
    assert rrf.load("p.toml").name == "capital sums"


def test_looking_for_a_run_makes_no_journal(here: Path) -> None:
    assert call("acquire", "--resume", "last") == 2
    assert not (here / "rrf-runs.sqlite").exists()


def test_resuming_the_last_run_needs_nothing_else(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("prices.json").write_text(json.dumps({"scripted": {"call": 0.01}}))
    given = ["acquire", "p.toml", "--model", "scripted:s.json", "--method", "witness", "--prices", "prices.json"]
    assert call(*given, "--money", "1", "--max-calls", "2", "--json") == 1
    assert json.loads(capsys.readouterr().out)["calls"] == 2
    Path("prices.json").unlink()
    assert call("acquire", "--resume", "last", "--json", "--slots", "3", "--max-calls", "9") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["calls"] == 3
    assert captured.out.count("\n") == 1


def test_a_stopped_run_says_how_to_go_on(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os
    import signal

    from rrf_design.models.scripted import ScriptedModel

    answer = ScriptedModel.attempt

    def interrupted(self: ScriptedModel, request: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return answer(self, request)

    with monkeypatch.context() as patch:
        patch.setattr(ScriptedModel, "attempt", interrupted)
        given = ["acquire", "p.toml", "--model", "scripted:s.json", "--method", "witness", "--store", "x.sqlite"]
        assert call(*given) == 130
        out = capsys.readouterr().out
        assert call(*given, "--json") == 130
        captured = capsys.readouterr()
        assert json.loads(captured.out)["detail"] == "interrupted"
        assert "Go on with: rrf-design acquire --resume 2" in captured.err
    assert "Go on with: rrf-design acquire --resume 2" in out
    command = out.split("Go on with: rrf-design ")[1].split()
    assert call(*command) == 0
    command = captured.err.split("Go on with: rrf-design ")[1].split()
    assert call(*command) == 0
    assert "in doubt" not in capsys.readouterr().err


def test_broken_unicode_is_printed(here: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("s.json").write_text(json.dumps({"default": "half \ud83d, NUL \x00: 7"}))
    assert call("acquire", "p.toml", "--model", "scripted:s.json", "--method", "witness", "--json", "-o", "r.json") == 0
    json.loads(capsysbinary.readouterr().out.decode())
    assert call("show", "last", "-o", "s.json", "--answers", "a.jsonl") == 0
    texts = {json.loads(line)["reply"]["text"] for line in Path("a.jsonl").read_text().splitlines()}
    assert texts == {"half \ud83d, NUL \x00: 7"}


def test_junit_fails_where_a_field_is_not_certified(here: Path) -> None:
    from xml.etree import ElementTree

    given = ["acquire", "p.toml", "--model", "scripted:s.json", "--method", "witness", "--junit", "j.xml"]
    assert call(*given) == 0
    assert ElementTree.parse("j.xml").getroot().get("failures") == "0"
    Path("p.toml").write_text(PROBLEM.format(extra="target = 9.0"))
    assert call(*given) == 1
    failure = ElementTree.parse("j.xml").getroot().find(".//failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("incomplete: ")


def test_the_page_of_a_run_has_its_questions_and_raw_answers(here: Path) -> None:
    call("acquire", "p.toml", "--model", "scripted:s.json", "--method", "witness", "--report", "r.html")
    made = Path("r.html").read_text(encoding="utf-8")
    assert "It is 8." in made
    assert made.index("The answers are consistent") < made.index("<h2>")


def test_what_belongs_to_a_table_names_what_is_missing_on_resume(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["-o", "out.csv"]
    given = ["--model", "scripted:s.json", "--method", "witness"]
    assert call("acquire", "p.toml", *given, "--json") == 0
    capsys.readouterr()
    assert call("acquire", "--resume", "last", *more) == 2
    said = capsys.readouterr().err
    assert f"{more[1]}: a run is resumed from its journal, which has no table" in said
    assert "rrf.toml" not in said


@pytest.mark.parametrize(
    ("name", "remedy"), [("x.csv", ".json"), ("x.html", "rrf-design report"), ("x.xml", "--junit")]
)
def test_a_single_problem_has_one_document(
    name: str, remedy: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON under the name of a table or a page would be believed by the next program."""
    assert call("acquire", "p.toml", "--model", "scripted:s.json", "-o", name) == 2
    said = capsys.readouterr().err
    assert f"{name}: of a single problem -o is its JSON document; end it in .json" in said
    assert remedy in said
    assert not Path(name).exists()


RECIPE = """[data]
table = "t.csv"
id = "no"
[answer]
of = "total"
tolerance = 0.005
[[ask]]
id = "total"
prompt = "Total of {{ no }}?"
[[ask]]
id = "reworded"
like = "total"
prompt = "To pay for {{ no }}?"
[[ask]]
id = "again"
like = "total"
prompt = "Sum of {{ no }}?"
[[check]]
id = "clerk"
of = "total"
by = { person = "Total of {{ no }}" }
cost = 5
"""
SAID = {"a": (10, 10, 10), "b": (11, 12, 11), "c": (1, 2, 3)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "rrf.toml").write_text(RECIPE)
    (tmp_path / "t.csv").write_text("no\n" + "".join(f"{name}\n" for name in SAID))
    rows = [
        {"id": name, "node": node, "text": f"It is {value}"}
        for name, values in SAID.items()
        for node, value in zip(("total", "reworded", "again"), values, strict=True)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_over_a_table_and_back(run, folder):
    ran = run("acquire", "--responses", "a.jsonl", "-o", "d.csv", "-o", "r.json", "--review", "q.csv", "-q", "--json")
    assert ran.code == 1  # a person is waited for
    document = json.loads(ran.out)
    assert document["verdict"] == "contradicted"
    assert document["verdicts"] == {"checked": 0, "consistent": 2, "ambiguous": 0, "incomplete": 0, "contradicted": 1}
    assert json.loads((folder / "r.json").read_text())["run"] == document["run"]
    by_item = {item["item"]: item for item in document["items"]}
    assert {"verdict", "assumes", "asked", "unasked", "unread"} <= by_item["c"].keys()
    assert "a,10,It is 10,consistent" in (folder / "d.csv").read_text()
    listed = (folder / "q.csv").read_text().splitlines()
    assert len(listed) == 2
    (folder / "q.csv").write_text("\n".join([listed[0], listed[1] + "3"]) + "\n")
    ran = run(
        "acquire", "--responses", "a.jsonl", "--resume", "last", "--reviews", "q.csv", "-o", "d.csv", "-q",
        "--require-share", "1",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "c,3,It is 1,checked,clerk is right,0.0,true,5.0" in (folder / "d.csv").read_text()


def test_a_required_share_that_is_missed(run, folder):
    assert run("acquire", "--responses", "a.jsonl", "--budget", "0", "-q").code == 0
    assert run("acquire", "--responses", "a.jsonl", "--budget", "0", "-q", "--require-share", "0.7").code == 1


def test_estimate(run, folder):
    document = json.loads(run("estimate", "--model", "openai:gpt-4.1-mini", "--json").out)
    assert document["calls"]["expected"] == 9
    assert document["items"] == 3
    assert 0 < document["money"]["expected"] < document["money"]["most"]
    assert "at most" in run("estimate", "--model", "embedded").out
    refused = run("estimate")
    assert refused.code == 2
    assert "--model" in refused.err


def test_everything_that_is_asked_for_is_written(run, folder):
    names = ["r.json", "p.html", "d.jsonl", "x.xml"]
    more = ["--junit", "j.xml", "--report", "q.html", "--certificate", "proofs"]
    ran = run(
        "acquire", "--responses", "a.jsonl", "--budget", "0", *(part for name in names for part in ("-o", name)), *more
    )
    assert all(f"written to {name}" in ran.err for name in names)
    assert all((folder / name).stat().st_size for name in [*names, "j.xml", "q.html"])
    assert len(list((folder / "proofs").iterdir())) == 3
    assert "3 rows: 2 consistent" in (folder / "p.html").read_text()


TWO = """[data]
table = "t.csv"
id = "no"
[models]
mini = { use = "scripted:ten.json", temperature = 0.7 }
other = "scripted:ten.json"
[answer]
of = "total"
tolerance = 0.005
[[ask]]
id = "total"
model = ["mini", "other"]
prompt = "Total of {{ no }}?"
[[ask]]
id = "reworded"
like = "total"
model = "other"
prompt = "To pay for {{ no }}?"
"""


def test_several_models_of_a_recipe_in_one_run(run, folder):
    (folder / "rrf.toml").write_text(TWO)
    (folder / "ten.json").write_text('{"default": "10"}')
    (folder / "eleven.json").write_text('{"default": "11"}')
    ran = run("acquire", "-q", "--json")
    assert ran.code == 0, ran.err
    used = ran.json["models"]
    assert {name: entry["answers"] for name, entry in used.items()} == {"mini": 3, "other": 6}
    assert set(ran.json["header"]["models"]) == {"mini", "other"}
    # One of them is replaced on the command line, and disagrees now: two of three answers are the
    # other's.
    ran = run("acquire", "-q", "--json", "--model", "other=scripted:eleven.json")
    item = ran.json["items"][0]
    assert item["answers"] == {"total": [10.0], "total@other": [11.0], "reworded": [11.0]}
    ran = run("acquire", "-q", "--model", "scripted:eleven.json")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "several models (mini, other); say which is meant, as in --model mini=scripted:eleven.json" in ran.err


def test_what_show_writes_of_the_answers_is_read_again(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.json").write_text(json.dumps({"rules": [{"prompt": "z?", "outcome": "refused"}], "default": "It is 7."}))
    call("acquire", "p.toml", "--model", "scripted:s.json", "--method", "witness")
    assert call("show", "last", "--answers", "a.jsonl") == 0
    capsys.readouterr()
    call("repair", "p.toml", "--responses", "a.jsonl", "--json")
    repaired = json.loads(capsys.readouterr().out)
    assert repaired["erased"] == {"z": "refusal"}
    assert call("import", "a.jsonl", "--item", "=1", "-o", "b.jsonl") == 0
    rows = [json.loads(line) for line in Path("b.jsonl").read_text().splitlines()]
    assert [(row["node"], row.get("text"), row.get("status")) for row in rows] == [
        ("x", "It is 7.", None),
        ("y", "It is 7.", None),
        ("z", None, "refusal"),
    ]


PROBLEM_CONSENT = """[[nodes]]
id = "a"
prompt = "6 * 7?"
[[anchors]]
id = "x"
node = "a"
value = 42.0
"""
MINI = ("acquire", "p.toml", "--model", "openai:gpt-4.1-mini", "--cache", "off")


@pytest.fixture
def consent_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobodys-key-123456")
    for name in ("RRF_OPENAI_BASE_URL", "OPENAI_BASE_URL", "RRF_OPENAI_API_KEY", "RRF_STORE"):
        monkeypatch.delenv(name, raising=False)
    Path("p.toml").write_text(PROBLEM_CONSENT)
    return tmp_path


def test_without_a_terminal_the_limit_must_be_said(run, consent_here):
    ran = run(*MINI)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "nobody said how much it may (1 calls expected, at most 4;" in ran.err
    assert "--money or --budget, or agree with --yes" in ran.err
    assert not Path("rrf-runs.sqlite").exists() or "no runs yet" in run("runs").out


def test_what_costs_nothing_or_was_limited_is_not_asked_about(run, consent_here, server):
    Path("s.json").write_text('{"default": "42"}')
    assert run("acquire", "p.toml", "--model", "scripted:s.json").code == 0
    own = ("acquire", "p.toml", "--model", "openai:m", "--base-url", server, "--json")
    ran = run(*own)
    assert (ran.code, ran.json["money"]) == (0, 0.0)
    assert 'no price is known of openai:m, so what it costs is not counted; write [model."openai:m"]' in ran.err
    assert ran.json["header"]["prices"] == {"openai:m": None}
    Path("prices.toml").write_text('[model."openai:m"]\ninput = 1e-6\noutput = 2e-6\n')
    priced = (*own, "--prices", "prices.toml")
    assert run(*priced).code == 2
    for said in (("--yes",), ("--budget", "5"), ("--money", "1"), ("--max-calls", "9")):
        ran = run(*priced, *said)
        assert ran.json["money"] == 6e-5, said
        assert ran.json["header"]["prices"]["openai:m"] == {"input": 1e-6, "output": 2e-6, "call": 0.0}


@pytest.fixture
def server():
    with model_server(lambda prompt: "42") as address:
        yield address


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="left out: the question at a terminal, for want of one")
def test_at_a_terminal_it_asks(consent_here):
    keyboard, terminal = os.openpty()
    program = "import sys; from rrf_design.cli import main; main(sys.argv[1:])"
    root = str(Path(__file__).resolve().parents[3])
    with subprocess.Popen(
        [sys.executable, "-c", program, *MINI],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "PYTHONPATH": root},
    ) as process:
        os.write(keyboard, b"n\n")
        assert process.wait(timeout=60) == 2
    os.close(terminal)
    said = b""
    try:
        while part := os.read(keyboard, 4096):
            said += part
    except OSError:
        pass  # how a terminal says that nobody is there any more
    os.close(keyboard)
    assert b"1 calls expected, at most 4;" in said
    assert b"Go on? [y/N]" in said
    assert b"nothing was asked and nothing was spent" in said
