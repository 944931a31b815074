"""The verb deliver: gold, review files, the terminal, exit codes and the proof."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rrf_design.cli.app import app

RECIPE = """
[data]
table = "t.csv"
id = "no"
{gold}
[answer]
of = "a"
k = 1
[[ask]]
id = "a"
prompt = "{{{{ text }}}}"
cost = 1.0
[[ask]]
id = "b"
like = "a"
prompt = "Again: {{{{ text }}}}"
cost = 1.0
[[ask]]
id = "c"
like = "a"
prompt = "And again: {{{{ text }}}}"
cost = 1.0
[[check]]
id = "clerk"
of = "a"
by = {{ person = "How much is {{{{ text }}}}?" }}
cost = 10.0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold.toml").write_text(RECIPE.format(gold='gold = "truth"'))
    (tmp_path / "r.toml").write_text(RECIPE.format(gold=""))
    rows, said = ["no,text,truth"], ["id,node,value"]
    for number in range(40):
        rows.append(f"r{number},sum {number},{number}")
        for place, node in enumerate("abc"):
            wrong = number % 9 == place or number % 13 == 0
            said.append(f"r{number},{node},{number + 1 if wrong else number}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "said.csv").write_text("\n".join(said) + "\n")
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["deliver", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout


def verify(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify", *words])
    return done.exit_code, done.stdout


BASE = ("--responses", "said.csv", "--risk", "10%")


def test_from_a_table_to_one_to_hand_over_with_its_proof(folder: Path) -> None:
    code, out = run("gold.toml", *BASE, "-o", "d.csv", "-o", "x.json")
    assert code == 0
    assert re.match(r"At most \d+ of these 40 rows are wrong \(confidence 95 %\): 40 rows, \d+ looked at, ", out)
    assert "labels at 10" in out
    code, told = verify("x.json", "--delivered", "d.csv")
    assert code == 0, told
    assert "random draws redone; d.csv is the table that was handed over: At most" in told
    first, *others = (folder / "d.csv").read_text().splitlines()
    place = first.split(",").index("answer")
    cells = others[-1].split(",")
    cells[place] = "77"
    (folder / "d.csv").write_text("\n".join([first, *others[:-1], ",".join(cells)]) + "\n")
    code, told = verify("x.json", "--delivered", "d.csv")
    assert code == 1
    assert "REFUSED" in told


def test_the_first_rows_alone_are_handed_over(folder: Path) -> None:
    """--limit: the promise is about these rows, and the others' answers are left alone."""
    code, out = run("gold.toml", *BASE, "--limit", "9", "-o", "d.csv", "-o", "x.json")
    assert code == 0
    assert "these 9 rows" in out
    assert "-0" not in out
    assert len((folder / "d.csv").read_text().splitlines()) == 10
    assert verify("x.json", "--delivered", "d.csv")[0] == 0
    gone = CliRunner().invoke(app, ["verify", "gone.json", "--delivered", "d.csv"])
    assert str(gone.exception) == "gone.json: no such file"


def test_pages_and_show_say_the_proven_sentence_first(folder: Path) -> None:
    """On the table's page, on its proof's and in show: never a count of verdicts before it."""
    _, out = run("gold.toml", *BASE, "-o", "d.html", "-o", "x.json")
    sentence, cost = out.splitlines()[:2]
    assert sentence.startswith("At most 4 of these 40 rows are wrong (confidence 95 %)")
    call = CliRunner()
    assert call.invoke(app, ["report", "x.json", "-o", "p.html"]).exit_code == 0
    for name in ("d.html", "p.html"):
        page = (folder / name).read_text()
        first = re.search(r'class="callout good">.*?<p>(.*?)</p>', page, re.DOTALL)
        assert first is not None
        assert first[1] == sentence
        assert "40 rows:" not in page
    assert "The random rows" in (folder / "p.html").read_text()
    assert call.invoke(app, ["show", "x.json"]).stdout.splitlines() == [sentence, cost]
    told = json.loads(call.invoke(app, ["show", "x.json", "--json"]).stdout)
    assert told["sentence"] == sentence
    run("r.toml", *BASE, "--review", "look.csv", "-o", "open.html")
    assert 'class="callout plain">' in (folder / "open.html").read_text()
    assert "Not proven yet that at most 4 of these 40 rows are wrong" in (folder / "open.html").read_text()


def test_a_page_shows_no_proof_that_the_checker_refuses(folder: Path) -> None:
    run("gold.toml", *BASE, "-o", "x.json")
    forged = {**json.loads((folder / "x.json").read_text()), "risk": 0.2}
    (folder / "x.json").write_text(json.dumps(forged))
    assert CliRunner().invoke(app, ["report", "x.json", "-o", "p.html"]).exit_code == 0
    page = (folder / "p.html").read_text()
    assert "REFUSED: the seal is not that of the document" in page
    assert "At most" not in page.partition("<script")[0].partition("<body")[2]


def test_json_is_one_object_with_the_promised_keys(folder: Path) -> None:
    code, out = run("gold.toml", *BASE, "--json")
    told = json.loads(out)
    assert code == 0
    keys = "run rows labels wrong_found remaining bound risk confidence reached spent verdicts next"
    assert set(keys.split()) <= set(told)
    assert told["reached"] is True
    assert told["next"] == []


def fill(path: Path, *, most: int | None = None) -> int:
    """Fill in so many of the open lines of a review file."""
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    done = 0
    for row in rows:
        if not row["value"] and (most is None or done < most):
            row["value"] = row["id"].removeprefix("r")
            done += 1
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return done


def test_people_answer_in_a_review_file_as_often_as_it_takes(folder: Path) -> None:
    outputs = ("-o", "d.csv", "-o", "x.json")
    code, out = run("r.toml", *BASE, "--review", "look.csv", *outputs)
    assert code == 1
    assert "Not proven yet" in out
    assert "repeat with --resume" in out
    for most in (1, 2, 3, *[None] * 40):
        assert fill(folder / "look.csv", most=most)
        code, out = run("r.toml", *BASE, "--review", "look.csv", "--resume", *outputs)
        if code == 0:
            break
    assert code == 0, out
    assert verify("x.json", "--delivered", "d.csv")[0] == 0


def test_the_review_file_never_shows_an_answer(folder: Path) -> None:
    run("r.toml", *BASE, "--review", "look.csv")
    header, *rows = csv.reader((folder / "look.csv").read_text().splitlines())
    assert header == ["id", "question", "text", "value"]
    assert rows[0][1] == f"How much is sum {rows[0][0].removeprefix('r')}?"


def test_a_run_that_was_begun_is_gone_on_with_only_when_asked(folder: Path) -> None:
    run("r.toml", *BASE, "--review", "look.csv")
    code, _ = _failing("r.toml", *BASE, "--review", "look.csv")
    assert code == 2
    code, told = _failing("r.toml", *BASE, "--review", "look.csv", "--resume", "deliver-none")
    assert code == 2
    assert "--resume deliver-none" in told
    code, told = _failing("gold.toml", *BASE, "--resume")
    assert code == 2
    assert "nothing to go on with" in told


def _failing(*words: str) -> tuple[int, str]:
    from rrf_design.errors import RRFError

    done = CliRunner().invoke(app, ["deliver", *words])
    if isinstance(done.exception, RRFError):
        return done.exception.exit_code, str(done.exception)
    return done.exit_code, done.output


def test_wrong_calls_are_refused_in_one_line(folder: Path) -> None:
    for words, part in (
        (("gold.toml", "--responses", "said.csv", "--risk", "many"), "should be a share"),
        (("gold.toml", "--responses", "said.csv"), "no risk to keep"),
        (("gold.toml", *BASE, "--review", "look.txt"), "review files end in"),
        (("gold.toml", *BASE, "-o", "t.csv"), "would be written over"),
        (("gold.toml", *BASE, "-o", "d.txt"), "an output ends in"),
        (("gold.toml", *BASE, "--model", "embedded"), "not both"),
    ):
        code, told = _failing(*words)
        assert code == 2, told
        assert part in told


def test_a_forecast_says_what_to_expect_and_reads_no_truth(folder: Path) -> None:
    code, out = run("r.toml", "--responses", "said.csv", "--forecast", "--risk", "20%", "--json")
    told = json.loads(out)
    assert code in (0, 1)
    assert [one["risk"] for one in told["risks"]] == [0.01, 0.02, 0.05, 0.1, 0.2]
    looks = [one["looks"] for one in told["risks"]]
    assert looks == sorted(looks, reverse=True)
    assert all(one["looks"] <= 40 for one in told["risks"])
    code, out = run("r.toml", "--forecast")
    assert "looks, at least" in out


def test_a_budget_that_is_gone_is_said(folder: Path) -> None:
    code, out = run("gold.toml", *BASE, "--budget", "150")
    assert code == 1
    assert "The budget is gone before the risk is proven" in out


def test_somebody_types_at_the_terminal_stops_and_goes_on(folder: Path) -> None:
    first = _typing(folder, [], stop_after=4)
    assert "Doubtful rows, worst first" in first
    assert "How much is sum" in first
    assert "/1" in first
    second = _typing(folder, ["--resume"], stop_after=None)
    assert "At most 4 of these 40 rows are wrong" in second
    assert verify("x.json", "--delivered", "d.csv")[0] == 0


def _typing(folder: Path, more: list[str], *, stop_after: int | None) -> str:
    """A person at a terminal, who answers what is asked."""
    code = "from rrf_design.cli import main; main()"
    words = [sys.executable, "-c", code, "deliver", "r.toml", *BASE, "-o", "d.csv", "-o", "x.json", *more]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execv(sys.executable, words)
    text, answered = "", 0
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        text += part.decode("utf-8", "replace")
        asked = re.findall(r"How much is sum (\d+)\?", text)
        if len(asked) > answered and text.rstrip().endswith(">"):
            line = "/q" if answered == stop_after else asked[-1]
            answered += 1
            os.write(terminal, f"{line}\n".encode())
    os.waitpid(child, 0)
    os.close(terminal)
    return text
