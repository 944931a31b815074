"""acquire --policy: one source of answers, outputs checked before anything is read, and who waits
for a person.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def world(make_world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """60 items, of which a pilot of 30 has seen its part; clerks are on sale."""
    found = make_world(items=60, wrong=0.1, extra="\n[promise]\nrisk = 0.25\npilot = 30\n")
    monkeypatch.chdir(found.folder)
    return found


@pytest.fixture
def policy(run: Run, world: Any) -> Path:
    assert run("pilot", "--responses", "answers.jsonl", "-o", "policy.json").code in (0, 1)
    return Path("policy.json")


OPTIONS = ("acquire", "rrf.toml", "--policy", "policy.json", "--responses", "answers.jsonl")


def test_every_output_says_the_same(run: Run, policy: Path) -> None:
    found = run(*OPTIONS, "-o", "run.json", "-o", "out.csv", "-o", "out.jsonl", "--json")
    assert json.loads(Path("run.json").read_text()) == found.json
    table = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["no"] for row in table] == [row["no"] for row in lines] == [f"i{n}" for n in range(60)]
    assert found.code == (0 if found.json["waiting"] == 0 else 1)


def test_people_are_asked_and_read_back(run: Run, policy: Path) -> None:
    asked = run(*OPTIONS, "--review-file", "review.csv")
    rows = list(csv.DictReader(Path("review.csv").read_text().splitlines()))
    if not rows:
        assert asked.code == 0
        return
    assert asked.code == 1
    assert f"{len(rows)} items wait for a person: in review.csv" in asked.out
    assert f"{len(rows)} items wait for a person: they are in review.csv, read back with --reviews" in asked.out
    table = [json.loads(line) for line in Path("table.jsonl").read_text().splitlines()]
    truth = {row["no"]: row["booked"] for row in table}
    with Path("filled.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "value": truth[row["id"]]} for row in rows)
    done = run(*OPTIONS, "--reviews", "filled.csv", "--json")
    assert done.json["waiting"] == 0
    assert done.code == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--model", "embedded"), "give --responses or --model, not both"),
        (("-o", "out.xlsx"), "-o ends in .json"),
        (("--budget", "1"), "--budget limits what is bought, and nothing is bought with --responses"),
        (("--max-calls", "3"), "--max-calls limits what is bought"),
        (("--money", "3"), "--money limits what is bought"),
        (("--slots", "3"), "--slots is for models that are asked, and none is with --responses"),
        (("--prices", "p.toml"), "--prices is for models that are asked"),
        (("--report", "out.xlsx"), "--report does nothing beside --policy: write the page with -o PAGE.html"),
        (("--limit", "5"), "--limit does nothing beside --policy: it runs on all items"),
        (("--require-share", "0.5"), "--require-share does nothing beside --policy"),
        (("--seed", "5"), "--seed does nothing beside --policy: the policy has the seed"),
        (("--resume", "last"), "--resume does nothing beside --policy: repeat the command"),
        (("other.toml",), "2 files are named"),
        (("-o", "table.jsonl"), "table.jsonl: is read by this call, and would be written over"),
        (("-o", "./policy.json"), "policy.json: is read by this call"),
        (("--review-file", "r.txt"), "review files end in .csv or .jsonl"),
        (("--budget", "nan"), "--budget nan: should be a number that is 0 or more"),
    ],
)
def test_wrong_calls_are_one_line_and_change_nothing(run: Run, policy: Path, more: tuple[str, ...], words: str) -> None:
    found = run(*OPTIONS, *more)
    assert found.code == 2
    assert words in found.err
    assert found.err.count("\n") == 1
    assert not Path("out.xlsx").exists()


def test_a_file_that_is_no_policy(run: Run, world: Any) -> None:
    for text in ("{}", "[", '{"format": "rrf-plan", "version": 2}'):
        Path("policy.json").write_text(text)
        found = run(*OPTIONS)
        assert found.code == 2
        assert "policy.json: not a" in found.err


def test_the_reviews_of_pilot_and_run_are_read_together(run: Run, world: Any) -> None:
    """Where people said the truths of the pilot, the run needs their file beside its own, and says
    so.
    """
    world.recipe.write_text(world.recipe.read_text().replace('gold = "booked"\n', ""))
    table = [json.loads(line) for line in Path("table.jsonl").read_text().splitlines()]
    Path("all.csv").write_text("id,value\n" + "".join(f"{row['no']},{row['booked']}\n" for row in table))
    pilot = ("pilot", "--responses", "answers.jsonl", "--review-file", "asked.csv", "-o", "policy.json")
    assert run(*pilot).code == 1
    rows = list(csv.DictReader(Path("asked.csv").read_text().splitlines()))
    truth = {row["no"]: row["booked"] for row in table}
    Path("asked.csv").write_text("id,value\n" + "".join(f"{row['id']},{truth[row['id']]}\n" for row in rows))
    assert run(*pilot, "--resume").code in (0, 1)
    alone = run(*OPTIONS, "--review-file", "open.csv")
    assert alone.code == 1
    assert "30 rows of the pilot wait for the truth it had: give its review file with --reviews too" in alone.out
    rest = list(csv.DictReader(Path("open.csv").read_text().splitlines()))
    Path("open.csv").write_text("id,value\n" + "".join(f"{row['id']},{truth[row['id']]}\n" for row in rest))
    both = run(*OPTIONS, "--reviews", "asked.csv", "--reviews", "open.csv", "--json")
    assert (both.code, both.json["waiting"], both.json["pilot_without_truth"]) == (0, 0, 0)
    refused = run("acquire", "rrf.toml", "--responses", "answers.jsonl", "--reviews", "a.csv", "--reviews", "b.csv")
    assert (refused.code, "several are for runs under a --policy" in refused.err) == (2, True)


def test_a_seed_that_somebody_chose_is_named(run: Run, world: Any) -> None:
    for seed, words in (("0", "seed 0, the default"), ("7", "seed 7, which somebody chose")):
        run("pilot", "--responses", "answers.jsonl", "-o", f"p{seed}.json", "--seed", seed)
        assert words in run("verify", f"p{seed}.json").out


def test_the_page_of_a_refused_policy_says_so(run: Run, policy: Path) -> None:
    document = json.loads(policy.read_text())
    assert run("report", "policy.json", "-o", "true.html").code == 0
    Path("lie.json").write_text(json.dumps({**document, "confidence": 0.999}))
    assert run("report", "lie.json", "-o", "lie.html").code == 0
    assert "REFUSED" not in Path("true.html").read_text()
    assert "REFUSED: confidence 0.999 is claimed" in Path("lie.html").read_text()
    assert "callout good" not in Path("lie.html").read_text()


def test_nothing_that_people_wrote_is_lost(run: Run, world: Any) -> None:
    """One review file for everything: the pilot's truths, and what the run asks, with a column of
    the reviewer's own.
    """
    world.recipe.write_text(world.recipe.read_text().replace('gold = "booked"\n', ""))
    pilot = ("pilot", "--responses", "answers.jsonl", "--review-file", "r.csv", "-o", "policy.json")
    assert run(*pilot).code == 1
    truth = {row["no"]: row["booked"] for row in map(json.loads, Path("table.jsonl").read_text().splitlines())}
    rows = list(csv.DictReader(Path("r.csv").read_text().splitlines()))
    with Path("r.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*rows[0], "who"])
        writer.writeheader()
        writer.writerows({**row, "value": truth[row["id"]], "who": "Ann"} for row in rows)
    assert run(*pilot, "--resume").code in (0, 1)
    run(*OPTIONS, "--reviews", "r.csv", "--review-file", "r.csv")
    kept = {row["id"]: row for row in csv.DictReader(Path("r.csv").read_text().splitlines())}
    for row in rows:
        assert (kept[row["id"]]["value"], kept[row["id"]]["who"]) == (str(truth[row["id"]]), "Ann")
        assert kept[row["id"]]["question"] == row["question"]


def test_the_page_of_a_run_is_ticked_by_whoever_proved_it(run: Run, policy: Path) -> None:
    """`acquire --policy` redoes the policy's tests; a document that was read, and may have been
    edited, carries no proof.
    """
    run(*OPTIONS, "-o", "run.json", "-o", "fresh.html")
    document = json.loads(Path("run.json").read_text())
    Path("run.json").write_text(json.dumps({**document, "sentence": "Nothing is wrong, ever."}))
    assert run("report", "run.json", "-o", "read.html").code == 0
    assert "carries no proof of its own" in Path("read.html").read_text()
    assert "carries no proof of its own" not in Path("fresh.html").read_text()


def test_every_review_is_heard(run: Run, policy: Path) -> None:
    """One of an item that nobody knows, one that can't be read, one that denies what the policy
    delivers by itself.
    """
    outside = next(f"i{n}" for n in range(60) if f"i{n}" not in json.loads(policy.read_text())["drawn"])
    for name, value, words in (
        ("zzz", "3", "item 'zzz' was not asked about"),
        (outside, "abc", f"item '{outside}': the truth"),
    ):
        Path("r.csv").write_text(f"id,value\n{name},{value}\n")
        found = run(*OPTIONS, "--reviews", "r.csv")
        assert (found.code, words in found.err) == (2, True)
    rows = {row["id"]: row for row in run(*OPTIONS, "--json").json["items"]}
    given = next(name for name, row in rows.items() if row["reason"].startswith("delivered under"))
    Path("r.csv").write_text(f"id,value\n{given},-1\n")
    found = run(*OPTIONS, "--reviews", "r.csv", "--json").json
    assert found["disputed"] == [given]
    assert (
        "Reviews say something else than what the policy delivers without a person, which stays as the policy says:"
        f" {given}" in (run(*OPTIONS, "--reviews", "r.csv").out)
    )
