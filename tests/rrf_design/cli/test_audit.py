"""acquire under a policy, and its audit."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rrf_design.promises._audits import _delta

Run = Callable[..., Any]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """40 delivered rows, two of them wrong, three without an answer."""
    monkeypatch.chdir(tmp_path)
    with Path("delivered.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["no", "text", "booked", "answer", "verdict"])
        for number in range(40):
            said = "" if number >= 37 else str(100 + number + (number in (3, 8)))
            writer.writerow([f"i{number}", f"text {number}", str(100 + number), said, "consistent"])
    return tmp_path


OPTIONS = ("delivered.csv", "--id", "no", "--gold", "booked")


def test_all_of_it_is_exact(run: Run, table: Path) -> None:
    found = run("audit", *OPTIONS, "--labels", "37", "--risk", "0.1", "--json")
    assert (found.code, found.json["population"], found.json["drawn"], found.json["wrong"]) == (0, 37, 37, 2)
    assert sorted(found.json["wrong_items"]) == ["i3", "i8"]
    assert found.json["bound"] == 2
    assert found.json["waiting"] == 0
    tight = run("audit", *OPTIONS, "--labels", "37", "--risk", "0.01")
    assert tight.code == 1
    assert "does not hold: 2 of 37 are known to be wrong" in tight.out
    assert "Wrong: " in tight.out
    assert "Wrong: " not in run("audit", *OPTIONS, "--labels", "37", "--risk", "0.1", "--quiet").out


def test_a_tolerance_decides_what_is_right(run: Run, table: Path) -> None:
    found = run("audit", *OPTIONS, "--labels", "37", "--tolerance", "1.5", "--json")
    assert found.json["wrong"] == 0
    assert found.json["truth"] == "gold column 'booked', right within 1.5"
    assert run("audit", *OPTIONS, "--labels", "37", "--json").json["holds"] is None


def test_people_say_the_truth(run: Run, table: Path) -> None:
    asked = run("audit", "delivered.csv", "--id", "no", "--review-file", "r.csv", "--labels", "6", "--json")
    assert (asked.code, asked.json["waiting"]) == (1, 6)
    rows = list(csv.DictReader(Path("r.csv").read_text().splitlines()))
    assert len(rows) == 6
    assert all(row["value"] == "" for row in rows)
    with Path("r.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "value": str(100 + int(row["id"][1:]))} for row in rows)
    done = run("audit", "delivered.csv", "--id", "no", "--review-file", "r.csv", "--labels", "6", "--resume", "--json")
    assert (done.code, done.json["waiting"], done.json["drawn"]) == (0, 0, 6)
    assert done.json["truth"] == "6 reviews"
    waits = run("audit", "delivered.csv", "--id", "no", "--review-file", "r2.csv", "--labels", "6")
    assert "6 drawn items wait for their truth: fill in the column value in r2.csv" in waits.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("delivered.csv",), "whose word is the truth?"),
        (("run.json", "--gold", "booked"), "give --recipe"),
        (("last", "--gold", "booked"), "give --recipe"),
        (("delivered.csv", "--gold", "nothing"), "nothing"),
        (("gone.csv", "--gold", "booked"), "gone.csv"),
        ((*OPTIONS, "--risk", "2"), "risk is 2, and should lie strictly between 0 and 1"),
        ((*OPTIONS, "--risk", "-1"), "risk is -1"),
        ((*OPTIONS, "--tolerance", "-1"), "a tolerance of -1.0 for the truth"),
        ((*OPTIONS, "--tolerance", "inf"), "a tolerance of inf"),
        ((*OPTIONS, "--tolerance", "nan"), "a tolerance of nan"),
        (("delivered.csv", "--gold", "answer"), "column 'answer' was delivered, and is no truth"),
        ((*OPTIONS, "--resume"), "name the file with --review"),
        ((*OPTIONS, "--resume", "--review-file", "none.csv"), "none.csv: no such file"),
        ((*OPTIONS, "--review-file", "none.xlsx"), "review files end in .csv or .jsonl"),
        ((*OPTIONS, "--data", "table.csv"), "delivered.csv is a table itself"),
        ((*OPTIONS, "--store", "j.sqlite"), "--store names the journal of a run"),
    ],
)
def test_wrong_calls_are_one_line(run: Run, table: Path, arguments: tuple[str, ...], words: str) -> None:
    found = run("audit", *arguments)
    assert found.code == 2
    assert words in found.err
    assert found.err.count("\n") == 1


def test_a_missing_truth_is_asked_of_people(run: Run, table: Path) -> None:
    path = Path("delivered.csv")
    path.write_text(path.read_text().replace(",105,", ",,"))
    found = run("audit", *OPTIONS, "--labels", "37")
    assert found.code == 2
    assert "1 drawn items have no truth in column 'booked', 'i5' among them; ask people with --review" in found.err


def test_a_certificate_is_written_and_gone_on_with(run: Run, table: Path) -> None:
    first = run("audit", *OPTIONS, "--labels", "10", "-o", "audit.json", "--json")
    assert json.loads(Path("audit.json").read_text())["items"] == first.json["items"]
    more = run("audit", *OPTIONS, "--labels", "20", "-o", "audit.json", "--json")
    assert more.json["items"][:10] == first.json["items"]


@pytest.mark.parametrize(
    ("long", "delta"),
    [({"problem": {"delta": 2}}, 2.0), ({"problem": {"delta": "{{ d }}"}}, None), ({"problem": {"delta": True}}, None), ({"problem": 5}, None), (None, None), ({}, None)],
)  # fmt: skip
def test_the_tolerance_of_a_recipe_is_a_number_for_all_rows(long: Any, delta: float | None) -> None:
    assert _delta(long) == delta


def test_verify_notices_a_file_that_was_changed_after_its_audit(run: Run, table: Path) -> None:
    assert run("audit", *OPTIONS, "--labels", "20", "-o", "audit.json").code in (0, 1)
    beside = run("verify", "audit.json", "--json")
    assert (beside.code, beside.json["delivered"]) == (0, "same")
    assert "delivered table is the one" not in beside.json["taken_on_trust"]
    assert "delivered.csv is what was audited" in run("verify", "audit.json", "--delivered", "delivered.csv").out
    text = Path("delivered.csv").read_text()
    Path("delivered.csv").write_text(text.replace(",130,consistent", ",131,consistent"))
    noticed = run("verify", "audit.json")
    assert noticed.code == 0  # the audit is what it was; the file beside it is another one
    assert "is not what was audited" in noticed.err
    assert run("verify", "audit.json", "--json").json["delivered"] == "changed"
    refused = run("verify", "audit.json", "--delivered", "delivered.csv", "--json")
    assert (refused.code, refused.json["valid"]) == (1, False)
    assert "an id or an answer has changed since the audit" in refused.json["reason"]
    Path("delivered.csv").unlink()
    gone = run("verify", "audit.json", "--json")
    assert (gone.code, gone.json["delivered"]) == (0, None)
    assert "delivered table is the one" in gone.json["taken_on_trust"]
    assert run("verify", "audit.json", "--delivered", "delivered.csv").code == 2


def test_the_last_delivery_is_audited(run: Run, table: Path) -> None:
    """A table that was delivered twice, or that came with a column of that name: what stands behind
    all of the input's columns was delivered.
    """
    rows = list(csv.DictReader(Path("delivered.csv").read_text().splitlines()))
    for own in ("rrf_answer", "answer"):
        late = {"rrf_answer": "answer", "answer": "rrf_answer"}[own]
        with Path("twice.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, ["no", "booked", own, "cost", late, "verdict", "rrf_cost"])
            writer.writeheader()
            for row in rows:
                kept = {"no": row["no"], "booked": row["booked"], own: "0", "cost": "12", "rrf_cost": "3"}
                writer.writerow({**kept, late: row["answer"], "verdict": "consistent"})
        found = run("audit", "twice.csv", "--id", "no", "--gold", "booked", "--labels", "37", "--json").json
        assert (found["population"], found["wrong"], found["columns"]["answer"]) == (37, 2, late)
        run("audit", "twice.csv", "--id", "no", "--labels", "3", "--review-file", f"{own}.csv")
        shown = next(csv.DictReader(Path(f"{own}.csv").read_text().splitlines()))["text"]
        assert f"{own}: 0; cost: 12" in shown
        assert "rrf_cost: 3" not in shown


def test_reviews_of_nothing_that_was_delivered_are_refused(run: Run, table: Path) -> None:
    Path("r.csv").write_text("id,value\n1,101\n")
    found = run("audit", "delivered.csv", "--id", "no", "--review-file", "r.csv", "--resume", "--labels", "5")
    assert (found.code, "item '1' was not asked about" in found.err) == (2, True)


def test_a_document_with_other_items_than_the_table_is_refused(run: Run, table: Path) -> None:
    from rrf_design.documents import sealed

    Path("rrf.toml").write_text(
        '[data]\ntable = "t.csv"\nid = "no"\ngold = "booked"\n[answer]\nof = "a"\n[[ask]]\nid = "a"\nprompt = "{{ no'
        ' }}?"\n'
    )
    Path("t.csv").write_text("no,booked\nx,1\ny,2\n")
    items = [{"id": name, "answer": 1} for name in ("x", "y", "z")]
    Path("run.json").write_text(json.dumps(sealed("rrf-delivery", {"items": items})))
    found = run("audit", "run.json", "--recipe", "rrf.toml")
    assert (found.code, "it has 3 items, and the table 2" in found.err) == (2, True)


def test_labels_behind_a_gap_are_explained(run: Run, table: Path) -> None:
    """Nothing is claimed of 0 draws; what is filled in behind a gap waits for it; the recipe's own
    question is asked.
    """
    Path("table.csv").write_text("no,text\n" + "".join(f"i{n},text {n}\n" for n in range(40)))
    Path("rrf.toml").write_text(
        '[data]\ntable = "table.csv"\nid = "no"\n[answer]\nof = "t"\nk = 1\n[[ask]]\nid = "t"\nprompt = "{{ text }}"\n'
        '[[check]]\nid = "clerk"\nof = "t"\nby = { person = "Total of {{ no }}?" }\ncost = 1\n'
    )
    call = (
        "audit",
        "delivered.csv",
        "--recipe",
        "rrf.toml",
        "--labels",
        "5",
        "--risk",
        "0.5",
        "--review-file",
        "r.csv",
    )
    asked = run(*call)
    assert asked.code == 1
    assert "any number may be wrong: no drawn item has a label that counts yet." in asked.out
    rows = list(csv.DictReader(Path("r.csv").read_text().splitlines()))
    assert rows[0]["question"] == f"Total of {rows[0]['id']}?"
    assert "answer" not in rows[0]["text"]
    with Path("r.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            {**row, "value": "" if at == 0 else str(100 + int(row["id"][1:]))} for at, row in enumerate(rows)
        )
    again = run(*call, "--resume")
    assert (
        "1 drawn item waits for its truth (labels count in the order of the draw: 4 behind it are not counted"
        in again.out
    )
    assert "is not proven yet: it takes more labels, or it is larger" in again.out


@pytest.mark.parametrize("items", [None, "x", [1], [{"id": "x"}]])
def test_a_damaged_document_of_a_run_is_one_line(run: Run, table: Path, items: Any) -> None:
    from rrf_design.documents import sealed

    Path("rrf.toml").write_text(
        '[data]\ntable = "t.csv"\nid = "no"\n[answer]\nof = "a"\n[[ask]]\nid = "a"\nprompt = "{{ no }}?"\n'
    )
    Path("t.csv").write_text("no\nx\n")
    Path("run.json").write_text(json.dumps(sealed("rrf-policy-run", {} if items is None else {"items": items})))
    found = run("audit", "run.json", "--recipe", "rrf.toml", "--review-file", "r.csv")
    assert (found.code, "no items with an id and an answer" in found.err) == (2, True)


def test_a_table_without_rows_says_so(run: Run, table: Path) -> None:
    Path("empty.csv").write_text("no,booked,answer\n")
    assert "no row has an answer" in run("audit", "empty.csv", "--gold", "booked").err


@pytest.mark.parametrize(("output", "code"), [("/dev/null", 0), ("folder", 2)])
def test_an_output_that_is_no_file_is_not_read(run: Run, table: Path, output: str, code: int) -> None:
    """A pipe would be waited for, and /dev/full has no end."""
    Path("folder").mkdir()
    found = run("audit", *OPTIONS, "--labels", "12", "-o", output)
    assert (found.code, "can't be written" in found.err) == (code, code == 2)


def test_an_exact_check_of_the_recipe_is_the_truth(run: Run, table: Path) -> None:
    """As it is for a pilot. Where the check does not know all of them, people are asked."""
    recipe = """[data]
table = "delivered.csv"
id = "no"

[answer]
of = "a"
k = 1

[[ask]]
id = "a"
prompt = "{{ text }}?"

[[check]]
id = "ledger"
of = "a"
by = { value = "{{ booked }}" }
when = "{{ booked }}"
cost = 5.0
"""
    Path("rrf.toml").write_text(recipe)
    found = run("audit", "delivered.csv", "--recipe", "rrf.toml", "--labels", "37", "-o", "audit.json", "--json")
    assert (found.code, found.json["truth"]) == (0, "the recipe's exact checks")
    assert sorted(json.loads(Path("audit.json").read_text())["wrong_items"]) == ["i3", "i8"]
    assert "37 draws redone: at most 2 of 37 are wrong, confidence 95 %" in run("verify", "audit.json").out
    rows = Path("delivered.csv").read_text().replace("text 5,105,", "text 5,,")
    Path("delivered.csv").write_text(rows)
    some = ("audit", "delivered.csv", "--recipe", "rrf.toml", "--labels", "37")
    refused = run(*some)
    assert refused.code == 2
    assert "no exact check of the recipe knows the value of 'i5': whose word is the truth?" in refused.err
    assert run(*some, "--review-file", "r.csv").code == 1
    assert [row["id"] for row in csv.DictReader(Path("r.csv").read_text().splitlines())] == ["i5"]


def test_an_audit_in_the_words_of_an_earlier_version_says_what_to_do(run: Run, table: Path) -> None:
    """Its sentence wrote 9.00% where this one writes 9.00 %; the same draw in another file has the
    same labels.
    """
    assert run("audit", *OPTIONS, "--labels", "20", "-o", "old.json").code == 0
    document = json.loads(Path("old.json").read_text())
    changed = {**document, "sentence": document["sentence"].replace(" %)", "%)")}
    assert changed != document
    Path("old.json").write_text(json.dumps(changed))
    refused = run("verify", "old.json")
    assert (refused.code, "where an earlier one wrote it, audit into another file with the same" in refused.out) == (
        1,
        True,
    )
    assert run("audit", *OPTIONS, "--labels", "20", "-o", "old.json").err.count("\n") == 1
    assert run("audit", *OPTIONS, "--labels", "20", "-o", "new.json").code == 0
    assert json.loads(Path("new.json").read_text()) == document


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


OPTIONS_UNDER_POLICY = ("acquire", "rrf.toml", "--policy", "policy.json", "--responses", "answers.jsonl")


def test_every_output_says_the_same(run: Run, policy: Path) -> None:
    found = run(*OPTIONS_UNDER_POLICY, "-o", "run.json", "-o", "out.csv", "-o", "out.jsonl", "--json")
    assert json.loads(Path("run.json").read_text()) == found.json
    table = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["no"] for row in table] == [row["no"] for row in lines] == [f"i{n}" for n in range(60)]
    assert found.code == (0 if found.json["waiting"] == 0 else 1)


def test_people_are_asked_and_read_back(run: Run, policy: Path) -> None:
    asked = run(*OPTIONS_UNDER_POLICY, "--review-file", "review.csv")
    rows = list(csv.DictReader(Path("review.csv").read_text().splitlines()))
    if not rows:
        assert asked.code == 0
        return
    assert asked.code == 1
    assert f"{len(rows)} items wait for a person: they are in review.csv, read back with --reviews" in asked.out
    table = [json.loads(line) for line in Path("table.jsonl").read_text().splitlines()]
    truth = {row["no"]: row["booked"] for row in table}
    with Path("filled.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "value": truth[row["id"]]} for row in rows)
    done = run(*OPTIONS_UNDER_POLICY, "--reviews", "filled.csv", "--json")
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
    found = run(*OPTIONS_UNDER_POLICY, *more)
    assert found.code == 2
    assert words in found.err
    assert found.err.count("\n") == 1
    assert not Path("out.xlsx").exists()


def test_a_file_that_is_no_policy(run: Run, world: Any) -> None:
    for text in ("{}", "[", '{"format": "rrf-plan", "version": 2}'):
        Path("policy.json").write_text(text)
        found = run(*OPTIONS_UNDER_POLICY)
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
    alone = run(*OPTIONS_UNDER_POLICY, "--review-file", "open.csv")
    assert alone.code == 1
    assert "30 rows of the pilot wait for the truth it had: give its review file with --reviews too" in alone.out
    rest = list(csv.DictReader(Path("open.csv").read_text().splitlines()))
    Path("open.csv").write_text("id,value\n" + "".join(f"{row['id']},{truth[row['id']]}\n" for row in rest))
    both = run(*OPTIONS_UNDER_POLICY, "--reviews", "asked.csv", "--reviews", "open.csv", "--json")
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
    run(*OPTIONS_UNDER_POLICY, "--reviews", "r.csv", "--review-file", "r.csv")
    kept = {row["id"]: row for row in csv.DictReader(Path("r.csv").read_text().splitlines())}
    for row in rows:
        assert (kept[row["id"]]["value"], kept[row["id"]]["who"]) == (str(truth[row["id"]]), "Ann")
        assert kept[row["id"]]["question"] == row["question"]


def test_the_page_of_a_run_is_ticked_by_whoever_proved_it(run: Run, policy: Path) -> None:
    """`acquire --policy` redoes the policy's tests; a document that was read, and may have been
    edited, carries no proof.
    """
    run(*OPTIONS_UNDER_POLICY, "-o", "run.json", "-o", "fresh.html")
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
        found = run(*OPTIONS_UNDER_POLICY, "--reviews", "r.csv")
        assert (found.code, words in found.err) == (2, True)
    rows = {row["id"]: row for row in run(*OPTIONS_UNDER_POLICY, "--json").json["items"]}
    given = next(name for name, row in rows.items() if row["reason"].startswith("delivered under"))
    Path("r.csv").write_text(f"id,value\n{given},-1\n")
    found = run(*OPTIONS_UNDER_POLICY, "--reviews", "r.csv", "--json").json
    assert found["disputed"] == [given]
    assert (
        "Reviews say something else than what the policy delivers without a person, which stays as the policy says:"
        f" {given}" in (run(*OPTIONS_UNDER_POLICY, "--reviews", "r.csv").out)
    )
