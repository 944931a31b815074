"""pilot, and what is measured or foreseen without one."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rrf_design.cli.estimate import _shown
from rrf_design.cli.pilot import _describe_forecast, _describe_pilot, _expected, _in_figures

Run = Any


@pytest.fixture
def world(make_world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = make_world(
        items=300, wrong=0.05, extra="\n[promise]\nrisk = 0.1\npilot = 100\naudit = 60\nbudget = 900.0\n"
    )
    monkeypatch.chdir(found.folder)
    return found


@pytest.fixture
def small_world(make_world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = make_world(items=120, wrong=0.03, extra="\n[promise]\nrisk = 0.2\npilot = 30\naudit = 20\n")
    monkeypatch.chdir(found.folder)
    return found


def test_the_whole_way(run: Any, world: Any) -> None:
    pilot = run("pilot", "--responses", "answers.jsonl", "-o", "policy.json", "--json")
    assert pilot.code == 0
    wanted = "policy risk confidence statement bound cost_per_item delivered_share wrong_answers policies drawn"
    assert set(wanted.split()) <= set(pilot.json)
    assert len(pilot.json["drawn"]) == 100
    assert run("verify", "policy.json").code == 0
    acquire = run("acquire", "--policy", "policy.json", "--responses", "answers.jsonl", "-o", "delivered.csv", "--json")
    assert acquire.json["budget"] == 900.0
    assert acquire.code == (0 if acquire.json["waiting"] == 0 else 1)
    rows = list(csv.DictReader(Path("delivered.csv").read_text().splitlines()))
    assert [row["no"] for row in rows] == [f"i{n}" for n in range(300)]
    assert {"answer", "raw", "verdict", "assumes", "bound", "changed", "cost", "reason", "rank"} <= set(rows[0])
    audit = run("audit", "delivered.csv", "--recipe", "rrf.toml", "--risk", "0.3", "-o", "audit.json", "--json")
    assert audit.code == 0
    assert {"population", "drawn", "wrong", "bound", "confidence"} <= set(audit.json)
    assert audit.json["drawn"] == 60
    verified = run("verify", "audit.json", "--json")
    assert (verified.code, verified.json["valid"]) == (0, True)
    more = run(
        "audit", "delivered.csv", "--recipe", "rrf.toml", "--labels", "90", "--resume", "-o", "audit.json", "--json"
    )
    assert more.json["items"][:60] == audit.json["items"]


def test_an_audit_of_a_run_by_any_of_its_names(run: Any, small_world: Any) -> None:
    """The table, the document of the run, a run in the journal; a second audit goes on, another
    seed after a look is refused.
    """
    run("pilot", "--responses", "answers.jsonl", "-o", "policy.json")
    run("acquire", "--policy", "policy.json", "--responses", "answers.jsonl", "-o", "delivered.csv", "-o", "run.json")
    options = ("--recipe", "rrf.toml", "--labels", "20", "--json")
    table = run("audit", "delivered.csv", *options)
    document = run("audit", "run.json", *options, "-o", "audit.json")
    assert [document.json[key] for key in ("items", "bound")] == [table.json[key] for key in ("items", "bound")]
    more = run("audit", "run.json", "--recipe", "rrf.toml", "--labels", "35", "-o", "audit.json", "--json")
    assert (more.json["drawn"], more.json["items"][:20]) == (35, document.json["items"])
    other = run("audit", "run.json", *options, "--seed", "3", "-o", "audit.json")
    assert (other.code, "audited already" in other.err) == (2, True)
    assert run("acquire", "rrf.toml", "--responses", "answers.jsonl", "--budget", "0", "--store", "j.sqlite").code in (
        0,
        1,
    )
    live = run("audit", "last", *options, "--store", "j.sqlite")
    assert live.json["drawn"] == 20
    assert "give --recipe" in run("audit", "last", "--gold", "booked").err


def test_a_forged_file_is_refused(run: Any, world: Any) -> None:
    run("pilot", "--responses", "answers.jsonl", "-o", "policy.json")
    data = json.loads(Path("policy.json").read_text())
    Path("forged.json").write_text(json.dumps({**data, "risk": 0.01}))
    result = run("verify", "forged.json", "--json")
    assert (result.code, result.json["valid"]) == (1, False)
    assert "0.01" in result.json["reason"]


def test_a_changed_recipe_is_refused_in_one_line(run: Any, world: Any) -> None:
    run("pilot", "--responses", "answers.jsonl", "-o", "policy.json")
    world.recipe.write_text(world.recipe.read_text().replace("{{ text }}", "{{ text }}?", 1))
    result = run("acquire", "--policy", "policy.json", "--responses", "answers.jsonl")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "recipe has changed" in result.err


def test_a_second_look_is_refused(run: Any, world: Any) -> None:
    run("pilot", "--responses", "answers.jsonl", "-o", "policy.json")
    result = run("pilot", "--responses", "answers.jsonl", "--labels", "150", "-o", "policy.json")
    assert result.code == 2
    assert "piloted already" in result.err


def test_people_say_the_truth(run: Any, world: Any) -> None:
    text = world.recipe.read_text()
    world.recipe.write_text(text.replace('gold = "booked"\n', ""))
    asked = run("pilot", "--responses", "answers.jsonl", "--review-file", "review.csv", "--json")
    assert (asked.code, asked.json["waiting"]) == (1, 100)
    truth = {item.id: item.cells["booked"] for item in world.dataset.items_in_order()}
    rows = list(csv.DictReader(Path("review.csv").read_text().splitlines()))
    assert rows[0]["question"] == f"Total of {rows[0]['id']}?"

    def fill(count: int) -> None:
        with Path("review.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows({**row, "value": truth[row["id"]] if at < count else ""} for at, row in enumerate(rows))

    fill(60)
    half = run("pilot", "--responses", "answers.jsonl", "--review-file", "review.csv", "--resume", "--json")
    assert (half.code, half.json["waiting"]) == (1, 40)
    fill(100)
    done = run("pilot", "--responses", "answers.jsonl", "--review-file", "review.csv", "--resume", "--json")
    assert done.code == 0
    assert done.json["truth"] == "100 reviews"


def test_a_forecast_needs_no_truth(run: Any, world: Any) -> None:
    found = run("pilot", "--responses", "answers.jsonl", "--forecast", "--json")
    assert found.json["least_labels"] == 29
    assert "labels" in run("pilot", "--responses", "answers.jsonl", "--forecast").out


def test_messages(run: Any, world: Any) -> None:
    small = run("pilot", "--responses", "answers.jsonl", "--labels", "20")
    assert small.code == 2
    assert "at best" in small.err
    world.recipe.write_text(world.recipe.read_text().replace('gold = "booked"\n', ""))
    blind = run("pilot", "--responses", "answers.jsonl")
    assert blind.code == 2
    assert "have no truth" in blind.err
    assert run("acquire", "--policy", "none.json", "--responses", "answers.jsonl").code == 2
    assert "whose word is the truth" in run("audit", "table.jsonl").err


def test_live_from_the_pilot_to_the_delivery(run: Any, small_world: Any) -> None:
    """A pilot that grows until more would not pay, its policy run live, and who may not run it."""
    model = ("--model", f"scripted:{small_world.script}", "--store", "journal.sqlite")
    first = run("pilot", *model, "--sequential", "--labels", "60", "-o", "policy.json", "--json")
    assert first.code == 0
    assert len(first.json["drawn"]) < 60
    assert "more labels cost" in first.json["stopped_because"]
    assert run("verify", "policy.json").code == 0
    again = run("pilot", *model, "--sequential", "--labels", "60", "-o", "policy.json", "--json")
    assert (again.json["drawn"], again.json["runs"]) == (first.json["drawn"], first.json["runs"])
    delivered = run("acquire", "--policy", "policy.json", *model, "-o", "delivered.csv", "--json")
    assert delivered.json["policy"] == first.json["policy"]
    other = run(
        "acquire", "--policy", "policy.json", "--model", "other=scripted:script.json", "--store", "journal.sqlite"
    )
    assert (other.code, "models have changed" in other.err) == (2, True)
    both = run("pilot", *model, "--responses", "answers.jsonl")
    assert (both.code, "not both" in both.err) == (2, True)
    assert run("pilot", *model, "--forecast", "--json").json["expected_from"] == "nothing: bounds only"


def test_an_exact_check_is_truth_enough(run: Any, world: Any) -> None:
    text = world.recipe.read_text().replace('gold = "booked"\n', "")
    world.recipe.write_text(
        text + '\n[[check]]\nid = "book"\nof = "total"\nby = { value = "{{ booked }}" }\ncost = 5.0\n'
    )
    found = run("pilot", "--responses", "answers.jsonl", "--json")
    assert found.code == 0
    assert found.json["truth"] == "the recipe's exact checks"


def test_k_in_the_certificate(run: Any, small_world: Any) -> None:
    pilot = run("pilot", "--responses", "answers.jsonl", "-o", "policy.json", "--json")
    outside = next(name for name in small_world.dataset if name not in pilot.json["drawn"])
    made = run("certify", "rrf.toml", "--item", outside, "--pilot", "policy.json", "-o", "certificate.json")
    assert "items drawn from table.jsonl (120 items)" in made.out
    assert run("verify", "certificate.json").code == 0
    inside = run("certify", "rrf.toml", "--item", pilot.json["drawn"][0], "--pilot", "policy.json", "-o", "c.json")
    assert (inside.code, "no evidence for itself" in inside.err) == (2, True)
    whole = run("certify", "rrf.toml", "--pilot", "policy.json", "-o", "c.json")
    assert (whole.code, "fail the premise" in whole.out) == (0, True)


def test_what_is_no_policy_is_not_written_over(run: Run, small_world: Any) -> None:
    """An audit, a run, a list: whatever is there stays there, and one line says so."""
    for text in ('{"format": "rrf-audit", "version": 1, "population": 3}', "[1]", "3", '{"format": "rrf-policy-run"}'):
        Path("there.json").write_text(text)
        found = run("pilot", "--responses", "answers.jsonl", "-o", "there.json")
        assert (found.code, Path("there.json").read_text()) == (2, text)
        assert "there.json: not a policy" in found.err
        assert found.err.count("\n") == 1


def test_an_earlier_policy_that_does_not_prove_itself_is_not_gone_on_with(run: Run, small_world: Any) -> None:
    run("pilot", "--responses", "answers.jsonl", "-o", "policy.json")
    document = json.loads(Path("policy.json").read_text())
    for change in ({"choice": "x"}, {"programs": None}, {"drawn": 5}):
        Path("policy.json").write_text(json.dumps({**document, **change}))
        found = run("pilot", "--responses", "answers.jsonl", "-o", "policy.json")
        assert (found.code, found.err.count("\n")) == (2, 1)
        assert "can't be gone on with" in found.err
    older = {key: value for key, value in document.items() if key != "programs"}
    Path("policy.json").write_text(json.dumps(older))
    for verb in (("verify", "policy.json"), ("acquire", "--policy", "policy.json", "--responses", "answers.jsonl")):
        found = run(*verb)
        assert found.code in (1, 2)
        assert "if another version of rrf-design wrote it, make it anew" in found.out + found.err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--stratify", "nosuch"), "no row has a column 'nosuch' to stratify by"),
        (("--aside", "-3"), "--aside -3"),
        (("--money", "3"), "--money limits what is bought, and nothing is bought with --responses"),
        (("--base-url", "http://x"), "--base-url is for models that are asked"),
        (("--forecast", "-o", "x.json"), "--forecast buys, labels and writes nothing"),
        (("--review-file", "r.xlsx"), "review files end in"),
        (("--confidence", "0.999999999999"), "(confidence 99.9999999999 %)"),
    ],
)
def test_nothing_is_ignored_in_silence(run: Run, small_world: Any, more: tuple[str, ...], words: str) -> None:
    found = run("pilot", "--responses", "answers.jsonl", *more)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert words in found.err


def test_the_runs_of_a_live_pilot_say_what_they_were(run: Run, small_world: Any) -> None:
    run("pilot", "--model", f"scripted:{small_world.script}", "-o", "policy.json")
    runs = run("runs", "--json").json["runs"]
    assert {entry["stopped_because"] for entry in runs} == {"schedule complete"}


def test_nothing_is_bought_for_a_pilot_without_truth(run: Run, small_world: Any) -> None:
    """A gold column that is misspelt or can't be read is told before anybody is asked."""
    pilot = ("pilot", "--model", f"scripted:{small_world.script}", "-o", "policy.json")
    text = small_world.recipe.read_text()
    small_world.recipe.write_text(text.replace('gold = "booked"', 'gold = "bokked"'))
    found = run(*pilot)
    assert (found.code, "fill in the gold column 'bokked'" in found.err) == (2, True)
    small_world.recipe.write_text(text)
    table = Path("table.jsonl")
    rows = [{**json.loads(line), "booked": "n.a."} for line in table.read_text().splitlines()]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = run(*pilot)
    assert (found.code, "no answer to the parser" in found.err) == (2, True)
    assert not Path("rrf-runs.sqlite").exists()


def told(**changes: Any) -> dict[str, Any]:
    size = {"labels": 300, "allowed_wrong": -1, "pilot_cost": 10.0, "least_cost": 20.0, "expected_cost": None}
    found = {
        "population": 1319,
        "risk": 0.01,
        "confidence": 0.95,
        "least_labels": 299,
        "labels": 254,
        "best_risk": 0.0117,
        "last": "person",
        "check_everything": 39570.0,
        "sizes": [{**size, "chance": None}],
        "with_random_checks": None,
        "expected_from": "nothing: bounds only",
        "advice": "a pilot could pay",
        "agreed_wrong": None,
        "pays_up_to": None,
    }
    return {**found, **changes}


def test_without_answers_nothing_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    _describe_forecast(told())
    out = capsys.readouterr().out
    assert out.startswith("Advice: a pilot could pay.")
    assert "?" in out
    assert "too few" in out
    assert "guessed" not in out
    assert "Checking everything costs 39,570.00" in " ".join(out.split())
    _describe_forecast(told(last="withheld"))
    assert "Withholding everything counts as 39,570.00" in " ".join(capsys.readouterr().out.split())


def test_a_guess_is_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"labels": 300, "allowed_wrong": 0, "pilot_cost": 1.0, "least_cost": 2.0, "expected_cost": 3.0}
    sizes = [{**entry, "chance": 0.25}]
    _describe_forecast(told(sizes=sizes, with_random_checks=sizes, agreed_wrong=0.01, pays_up_to=0.002))
    out = " ".join(capsys.readouterr().out.split())
    assert "25 %" in out
    assert "with --random-checks" in out
    assert (
        "1.0 % of what all answers agree on is wrong (--agreed-wrong); as expected, a pilot pays up to a guess of 0.2 %"
        in out
    )
    _describe_forecast(told(sizes=sizes, agreed_wrong=0.0))
    assert "would not pay even if none were" in " ".join(capsys.readouterr().out.split())


def test_the_first_screen_is_for_whoever_decides(
    proven_policy: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    _describe_pilot(proven_policy, quiet=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == proven_policy["sentence"]
    cost = 200 * proven_policy["cost_per_item"]
    assert f"The other 200 items are expected to cost about {cost:,.2f}, against 6,000.00 for checking all." in lines
    _describe_pilot(proven_policy, budget=1.0)
    out = capsys.readouterr().out
    assert "more than the budget of 1.00" in out
    assert "with confidence 95 %):" in out


def test_what_is_checked_at_random_is_not_delivered_without_a_person(proven_policy: dict[str, Any]) -> None:
    ladder = {**proven_policy["ladder"], "random_checks": 0.5}
    said = _in_figures({**proven_policy, "ladder": ladder, "delivered_share": 0.8, "cost_per_item": 17.5})
    assert said.startswith("On the pilot it delivers 40.0 % without a person, for 17.5 an item; a check by a person")


def test_nobody_is_asked_where_the_rest_is_withheld(proven_policy: dict[str, Any]) -> None:
    withheld = {**proven_policy, "ladder": {**proven_policy["ladder"], "last": "withheld"}}
    assert "person" not in _in_figures(withheld)
    assert _expected(withheld, None) == []
    everything = {**proven_policy, "ladder": None, "cost_per_item": 30.0}
    assert _in_figures(everything) == "A person checks every item, for 30 each."
    assert _expected(everything, None) == []


def test_one_is_not_many(proven_policy: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    measured = {**proven_policy["measured"], "disputed_gold": ["i7"]}
    leak = {"column": "c", "how": "as it is", "items": ["i1"]}
    _describe_pilot({**proven_policy, "measured": measured, "twins": ["i9"], "leaks": [leak]})
    told = capsys.readouterr()
    assert "1 truth is disputed by strong agreement of the answers; look again at i7" in told.out
    assert "1 item outside the pilot asks what" in told.err
    assert "the truth of 1 item of the pilot" in told.err


measure_Run = Callable[..., Any]

RECIPE = """
[data]
table = "t.csv"
id = "no"
gold = "truth"
[answer]
of = "a"
tolerance = 0.001
[[ask]]
id = "a"
prompt = "How many? {{ no }}"
[[ask]]
id = "b"
like = "a"
prompt = "Say how many. {{ no }}"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE)
    Path("t.csv").write_text("no,truth\n1,7\n2,8\n3,\n")
    said = [("1", "a", 7), ("1", "b", 7), ("2", "a", 8), ("2", "b", 9), ("3", "a", 1)]
    lines = [json.dumps({"id": i, "node": n, "value": v}) for i, n, v in said]
    Path("r.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_answers_and_relations(here: Path, run: measure_Run) -> None:
    ran = run("measure", "--responses", "r.jsonl", "--json")
    assert ran.code == 0
    found = ran.json
    assert (found["format"], found["items"]) == ("rrf-measurement", 2)
    assert [entry["wrong"] for entry in found["wrong_answers"]["nodes"]] == [0, 1]
    assert found["relations"][0]["broken"] == found["relations"][0]["one_right"] == 1
    ran = run("measure", "--responses", "r.jsonl")
    assert ran.code == 0
    assert "b like a" in ran.out


def test_judges(here: Path, run: measure_Run) -> None:
    Path("j.csv").write_text("id,judge,value,truth\n1,x,yes,yes\n2,x,no,yes\n1,y,yes,yes\n")
    ran = run("measure", "--judgements", "j.csv")
    assert ran.code == 0
    out = ran.out
    assert "x and y agree in 1 of 1 items" in out
    assert "rate = " in out


def test_verifiers_of_a_run(here: Path, run: measure_Run) -> None:
    """Both items are asked, and a judge says what is right: it is wrong about the second."""
    judge = (
        '[[check]]\nid = "judge"\nof = "a"\nsigma = 1.0\nby = { verifier = "scripted:j.json", prompt = "Is it {{ answer'
        ' }}?" }\n'
    )
    Path("rrf.toml").write_text(RECIPE + judge)
    Path("s.json").write_text(json.dumps({"default": "7"}))
    Path("j.json").write_text(json.dumps({"default": "7"}))
    run("acquire", "--model", "scripted:s.json", "--mode", "agnostic", "-q")
    ran = run("measure", "--run", "last", "--json")
    assert ran.code == 0
    (found,) = ran.json["judges"]
    assert (found["judge"], found["judged"], found["right"]) == ("judge", 2, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "give --responses or --run with a recipe"),
        (["--responses", "r.jsonl", "--confidence", "1"], "between 0 and 1"),
    ],
)
def test_bad_calls_are_one_line(here: Path, run: measure_Run, given: list[str], message: str) -> None:
    ran = run("measure", *given)
    assert ran.code == 2
    said = ran.err
    assert message in said
    assert said.count("\n") == 1


estimate_Run = Callable[..., Any]
RECIPE_ESTIMATE = """[data]
table = "table.csv"
id = "no"

[answer]
of = "total"
tolerance = 0.5

[models]
mini = { use = "openai:mini", max_tokens = 20 }

[[ask]]
id = "total"
prompt = "Total of {{ no }}?"

[[ask]]
id = "again"
like = "total"
prompt = "And again?"
cost = 0.5
buy = "if needed"
"""
PRICES = '["openai:mini"]\ninput = 1.0\noutput = 2.0\n'


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE_ESTIMATE)
    Path("table.csv").write_text("no\n" + "".join(f"{n}\n" for n in range(7)))
    return tmp_path


def test_calls_tokens_and_money(run: estimate_Run, recipe: Path) -> None:
    found = run("estimate", "rrf.toml", "--json")
    assert found.code == 0
    assert (found.json["items"], found.json["structures"]) == (7, 1)
    for key in ("calls", "tokens", "money"):
        assert set(found.json[key]) >= {"expected", "most"}
    assert found.json["calls"]["expected"] >= 7
    assert found.json["calls"]["most"] >= 14


def test_part_of_the_table(run: estimate_Run, recipe: Path) -> None:
    assert run("estimate", "rrf.toml", "--limit", "2", "--json").json["items"] == 2
    assert run("estimate", "rrf.toml", "--item", "3", "--json").json["items"] == 1
    some = [run("estimate", "rrf.toml", "--sample", "4", "--seed", "1", "--json").json for _ in range(2)]
    assert some[0] == some[1]
    assert some[0]["items"] == 4


def test_in_words(run: estimate_Run, recipe: Path) -> None:
    loud = run("estimate", "rrf.toml")
    assert loud.out.startswith("7 items of 1 structure\n")
    assert "at most" in loud.out
    assert "unknown" in loud.out  # nobody has said what openai:mini costs
    quiet = run("estimate", "rrf.toml", "--quiet")
    assert len(quiet.out + quiet.err) <= len(loud.out + loud.err)


def test_another_model_is_another_price(run: estimate_Run, recipe: Path) -> None:
    free = run("estimate", "rrf.toml", "--model", "mini=embedded", "--json")
    assert free.json["money"]["most"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gone.toml",), "gone.toml"),
        (("rrf.toml", "--item", "99"), "99"),
        (("rrf.toml", "--prices", "gone.toml"), "gone.toml"),
        (("rrf.toml", "--model", "embedded", "--model", "openai:x"), "several models need names"),
    ],
)
def test_wrong_calls_are_one_line(run: estimate_Run, recipe: Path, arguments: tuple[str, ...], words: str) -> None:
    found = run("estimate", *arguments)
    assert found.code == 2
    assert words in found.err
    assert found.err.count("\n") == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "unknown"), (0.0, "0"), (12.0, "12"), (0.123456789, "0.123457"), (1234.5, "1,234.5"), (2345678.0, "2,345,678")],
)  # fmt: skip
def test_amounts_are_written_for_people(value: float | None, shown: str) -> None:
    assert _shown(value) == shown


def test_the_json_is_strict(run: estimate_Run, recipe: Path) -> None:
    json.loads(run("estimate", "rrf.toml", "--json").out, parse_constant=lambda name: pytest.fail(name))


def test_questions_that_are_asked_again_are_counted() -> None:
    """A node with repeats is asked so often; one whose further asks are on sale up to its most."""
    import rrf_design as rrf

    nodes = [
        {"id": "a", "prompt": "{{ x }}?", "price": 0.5},
        {"id": "b", "prompt": "{{ x }}, is it?", "sigma": 1.0, "repeats": 2, "again": 0.25, "most_repeats": 4},
        {"id": "c", "prompt": "{{ x }} it is?", "cost": 0.75, "sigma": 1.0, "repeats": 3},
    ]
    relations = [{"id": "r", "tail": "a", "head": "b"}, {"id": "s", "tail": "b", "head": "c"}]
    data = rrf.dataset({"nodes": nodes, "relations": relations}, [{"x": 1}, {"x": 2}])
    found = rrf.estimate(data, "embedded", attempts=1)
    assert (found.calls.expected, found.calls.most) == (6.0, 16.0)
    assert (found.cost.expected, found.cost.most) == (1.0, 2 * (0.5 + 0.75 + 2 * 0.25))


def test_a_judge_that_answers_the_questions_too_is_named() -> None:
    import rrf_design as rrf

    judge = {"verifier": "other", "prompt": "Is it {{ answer }}?"}
    content = {
        "models": {"first": "scripted:a.json", "other": "scripted:b.json"},
        "nodes": [{"id": "a", "prompt": "{{ x }}?"}],
        "anchors": [{"id": "judge", "node": "a", "sigma": 1.0, "source": judge, "cost": 1.0}],
    }
    apart = rrf.estimate(rrf.dataset(content, [{"x": 1}]))
    assert not any("is judged by" in note for note in apart.notes)
    content["nodes"] = [{"id": "a", "prompt": "{{ x }}?", "model": "other"}]
    (words,) = [note for note in rrf.estimate(rrf.dataset(content, [{"x": 1}])).notes if "is judged by" in note]
    assert words.startswith("judge is judged by scripted:b.json, which answers the questions too")
