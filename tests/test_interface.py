"""What scripts rely on stays: verbs, options, keys of the JSON, names of Python.

Names may be added, and none may go.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.cli import main
from rrf_design.cli.app import VERBS

FILE = """
[problem]
name = "triangle and isolate"
k = 1
budget = 3.0
epsilon = 0.02
delta = 0.5
[[nodes]]
id = "original"
prompt = "one"
[[nodes]]
id = "paraphrase"
dim = 1
prompt = "one"
range = [0.0, 100.0]
[[nodes]]
id = "third"
prompt = "one"
[[nodes]]
id = "isolate"
prompt = "seven"
[[relations]]
id = "r01"
tail = "original"
head = "paraphrase"
transport = "identity"
offset = 0.0
weight = 1.0
family = "paraphrase"
[[relations]]
id = "r12"
tail = "paraphrase"
head = "third"
transport = { scale = 1.0 }
[[relations]]
id = "r02"
tail = "original"
head = "third"
[[anchors]]
id = "a0"
node = "original"
rows = "identity"
value = 1.0
cost = 1.0
[[anchors]]
id = "a3"
node = "isolate"
value = [17.0]
cost = 2.0
"""

KEYS = {
    "margin": "k gamma lower upper status support witness method",
    "plan": "selected cost gamma upper_bound gap status trajectory",
    "frontier": "points",
    "certify": "gamma_lower gamma_upper robust_lower error_bound regime certificate",
    "verify": "valid gamma_lower reason",
    "repair": "repaired support residual gamma error_bound method verdict assumes",
    "acquire": "run stopped_because spent gamma_lower purchases repaired verdict verdicts",
}
ITEM = "verdict assumes asked unasked unread"

OPTIONS = {
    "margin": "--k --select --all --json --jobs --time-limit --data --item --limit --sample --seed",
    "explain": "--json --data --item --limit --sample --seed",
    "plan": "--budget --target --method --json --seed --jobs --time-limit --data --item --limit --sample",
    "frontier": "--json --jobs --time-limit",
    "certify": "--select --plan -o --json --data --item --limit --sample --seed",
    "verify": "--json",
    "repair": "--responses --method --json --data --item --limit --sample --seed -o --require-share",
    "acquire": (
        "--model --budget --store --resume --json --data --item --limit --sample --seed -o --require-share"
        " --responses --policy --cache --slots --max-concurrency --prices"
    ),
    "estimate": "--json --data --item --limit --sample --seed --model",
    "report": "-o --data --item --limit --sample",
    "pilot": "--data --labels --risk --confidence -o --resume --forecast --responses --json",
    "audit": "--labels --risk -o --json",
    "import": "--from --item --node --answer -o",
    "compile": "--item",
}


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> dict[str, Any]:
        """Exactly one JSON object on standard output, and nothing else there."""
        assert self.out.count("\n") == 1, self.err
        found: dict[str, Any] = json.loads(self.out)
        return found


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """The command in an empty folder with one problem file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RRF_CACHE", "off")
    Path("problem.toml").write_text(FILE, encoding="utf-8")
    answers = {"original": 1, "paraphrase": 1, "third": 1, "isolate": 17}
    Path("answers.json").write_text(json.dumps(answers), encoding="utf-8")
    rules = [{"prompt": "one", "text": "1"}, {"prompt": "seven", "text": "17"}]
    Path("model.json").write_text(json.dumps({"rules": rules}), encoding="utf-8")

    def run(*arguments: str) -> Ran:
        from rrf_design.cli.output import _console

        _console.cache_clear()  # a console holds on to the stream it was made with
        with pytest.raises(SystemExit) as caught:
            main(list(arguments))
        told = capsys.readouterr()
        return Ran(int(caught.value.code or 0), told.out, told.err)

    return run


def test_every_verb_is_there() -> None:
    wanted = (
        "margin plan frontier certify verify repair acquire runs show report scenario demo compile estimate import"
        " cache pilot audit"
    )
    assert set(wanted.split()) <= set(VERBS)


def command_of(verb: str) -> Any:
    import typer

    from rrf_design.cli.app import app

    return typer.main.get_command(app).get_command(None, verb)  # type: ignore[attr-defined,arg-type]


def options_of(command: Any) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_json_and_every_option_is_there(verb: str) -> None:
    command = command_of(verb)
    for part in getattr(command, "commands", {"": command}).values():
        assert "--json" in options_of(part)
    assert set(OPTIONS.get(verb, "").split()) <= options_of(command)


def test_every_key_is_there_and_exit_codes_say_yes_no_or_wrong_call(call: Callable[..., Ran]) -> None:
    ran = {
        "margin": call("margin", "problem.toml", "--all", "--json"),
        "plan": call("plan", "problem.toml", "--budget", "3", "-o", "plan.json", "--json"),
        "frontier": call("frontier", "problem.toml", "--json"),
        "certify": call("certify", "problem.toml", "--plan", "plan.json", "-o", "cert.json", "--json"),
        "verify": call("verify", "cert.json", "--json"),
        "repair": call("repair", "problem.toml", "--responses", "answers.json", "--select", "a0,a3", "--json"),
        "acquire": call(
            "acquire", "problem.toml", "--model", "scripted:model.json", "--store", "runs.sqlite", "--json"
        ),
    }
    for verb, keys in KEYS.items():
        assert set(keys.split()) <= set(ran[verb].document), verb
        assert ran[verb].code == 0, verb
    assert ran["margin"].document["status"] in ("exact", "bounded")
    assert ran["plan"].document["status"] in ("optimal", "feasible", "infeasible")
    assert ran["certify"].document["regime"] in ("information", "noise", "computation")
    assert all(set(step) >= {"block", "cost", "gamma", "support"} for step in ran["plan"].document["trajectory"])
    assert all(set(point) >= {"cost", "gamma", "selected", "status"} for point in ran["frontier"].document["points"])
    assert all(set(ITEM.split()) <= set(item) for item in ran["acquire"].document["items"])
    witness = ran["margin"].document["witness"]
    assert sum(x * x for part in witness.values() for x in part) == pytest.approx(1.0)
    assert set(ran["acquire"].document["verdicts"]) == {
        "checked",
        "consistent",
        "ambiguous",
        "incomplete",
        "contradicted",
    }

    assert call("repair", "problem.toml", "--responses", "answers.json", "--json").code == 1
    assert call("plan", "problem.toml", "--target", "99", "--json").code == 1
    run = ran["acquire"].document["run"]
    for verb in (("runs",), ("show", run), ("show", "last"), ("report", run, "-o", "run.html")):
        assert call(*verb, "--store", "runs.sqlite").code == 0
    for document in ("plan.json", "cert.json"):
        assert call("report", document, "-o", "page.html").code == 0
    assert Path("run.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_a_wrong_key_is_one_line_that_names_it_and_the_nearest(call: Callable[..., Ran]) -> None:
    Path("problem.toml").write_text(FILE.replace("offset = 0.0", "ofset = 0.0"), encoding="utf-8")
    ran = call("margin", "problem.toml", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert all(words in ran.err for words in ("problem.toml", "r01", "ofset", "offset"))


def test_every_name_of_python_is_exported() -> None:
    promised = (
        "margin explain plan portfolio frontier certify verify repair acquire pilot audit measure estimate dataset load save"
        " Problem Node Relation Anchor Rule Tier Transport Noise from_graph from_matrix risk testing"
        " RRFError InputError BudgetError RetryLater MissingDependency Refused"
        " DesignMargin Explanation Plan DatasetPlan Portfolio Frontier Certificate Verification Repair Delivery"
        " Acquisition Pilot Audit Measurement Estimate Dataset ByStructure"
        " loads dumps digest component_criterion save_operator load_operator Operator"
    )
    assert set(promised.split()) <= set(rrf.__all__)


def test_names_of_python(call: Callable[..., Ran]) -> None:
    from rrf_design.risk import AuditSequence, bound, choose
    from solvers import margin

    found = margin(np.array([[1.0, -1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 2.0]]), [1, 1, 1], k=1)
    assert found.lower <= found.value <= found.upper
    assert found.status == "exact"
    assert np.linalg.norm(found.direction) == pytest.approx(1.0)
    assert all(isinstance(i, int | np.integer) for i in found.support)
    assert {"n_jobs", "time_limit", "method"} <= set(inspect.signature(margin).parameters)

    problem = rrf.load("problem.toml")
    assert problem.margin(select=["a3"]).k == problem.k
    assert {"n_jobs", "time_limit"} <= set(inspect.signature(rrf.plan).parameters)
    plan = rrf.plan(problem, budget=3.0)
    certificate = rrf.certify(problem, plan.selected)
    assert rrf.verify(certificate).valid
    fixed = rrf.repair(problem, {"original": 1, "paraphrase": 1, "third": 5, "isolate": 17}, select=plan.selected)
    assert fixed.support == ("third",)
    run = rrf.acquire(problem, model="scripted:model.json", store="runs.sqlite", budget=3.0)
    results = {"plan": plan, "certify": certificate, "repair": fixed, "acquire": run}
    for verb, result in results.items():
        missing = [key for key in KEYS[verb].split() if not hasattr(result, key)]
        assert missing in ([], ["certificate"]), verb  # the certificate is the object itself
    assert callable(rrf.dataset)
    assert bound(100, 10, 0, 0.95) >= 1
    sequence = AuditSequence(100, 0.95)
    sequence.observe(False)
    assert sequence.bound <= 100
    assert {"order", "population", "statement"} <= set(inspect.signature(choose).parameters)


RECIPE = """
[data]
id = "no"
[answer]
of = "total"
tolerance = 0.005
k = 1
fails_together = "ask"
[[ask]]
id = "total"
prompt = "total of {{ text }}"
parse = "decimal"
[[ask]]
id = "reworded"
like = "total"
prompt = "what must be paid of {{ text }}"
parse = "decimal"
[[ask]]
id = "third"
like = "total"
prompt = "third {{ text }}"
parse = "decimal"
"""


def test_a_table_in_and_a_table_out(call: Callable[..., Ran]) -> None:
    Path("recipe.toml").write_text(RECIPE, encoding="utf-8")
    Path("table.csv").write_text("no,text,answer\n007,x,5\n008,y,6\n", encoding="utf-8")
    model = {
        "rules": [{"pattern": "third y", "text": "9"}, {"pattern": "x$", "text": "3"}, {"pattern": "y$", "text": "4"}]
    }
    Path("model.json").write_text(json.dumps(model), encoding="utf-8")
    data = ("recipe.toml", "--data", "table.csv")
    told = call("estimate", *data, "--model", "scripted:model.json", "--json").document
    assert {"calls", "tokens", "money", "items", "structures"} <= set(told)
    assert all({"expected", "most"} <= set(told[name]) for name in ("calls", "tokens", "money"))
    planned = call("plan", *data, "--budget", "3", "--json").document
    assert {"items", "cost", "value", "status"} <= set(planned)
    assert all({"selected", "cost", "gamma"} <= set(share) for share in planned["items"].values())
    assert set(planned["items"]) == {"007", "008"}
    outputs = [
        part for ending in ("json", "csv", "jsonl", "parquet", "html", "xml") for part in ("-o", f"out.{ending}")
    ]
    ran = call("acquire", *data, "--model", "scripted:model.json", "--store", "runs.sqlite", *outputs, "--json")
    assert ran.code == 0, ran.err
    assert Path("out.xml").read_text(encoding="utf-8").lstrip().startswith("<")
    lines = Path("out.csv").read_text(encoding="utf-8-sig").splitlines()
    added = "raw verdict assumes bound changed cost reason rank"
    assert lines[0].split(",")[:4] == ["no", "text", "answer", "rrf_answer"]  # a name that is taken gets the prefix
    assert set(added.split()) <= {name.removeprefix("rrf_") for name in lines[0].split(",")}
    assert [line.split(",")[0] for line in lines[1:]] == ["007", "008"]
    assert call("acquire", *data, "--model", "scripted:model.json", "--require-share", "1", "--json").code == 0


PROMISE = """
[promise]
risk = 0.2
confidence = 0.9
pilot = 40
audit = 20
budget = 400.0
"""


def recorded(items: int = 100) -> None:
    """A table with its truth, and answers that exist already: every tenth total is wrong, the
    others agree.
    """
    Path("recipe.toml").write_text(RECIPE.replace('id = "no"', 'id = "no"\ngold = "booked"', 1) + PROMISE, "utf-8")
    rows = [f"i{i},text {i},{100 + i}" for i in range(items)]
    Path("table.csv").write_text("\n".join(["no,text,booked", *rows]) + "\n", encoding="utf-8")
    long = [
        {"id": f"i{i}", "node": node, "value": 100 + i + (node == "total" and i % 10 == 0)}
        for i in range(items)
        for node in ("total", "reworded", "third")
    ]
    Path("long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in long), encoding="utf-8")


def test_promises_about_a_whole_data_set(call: Callable[..., Ran]) -> None:
    """pilot, acquire --policy, audit and verify, from recorded answers: every key, and a policy for
    another recipe is refused.
    """
    recorded()
    data, answers = ("recipe.toml", "--data", "table.csv"), ("--responses", "long.jsonl")
    piloted = call("pilot", *data, *answers, "-o", "policy.json", "--json")
    keys = "policy risk confidence statement bound cost_per_item delivered_share wrong_answers policies drawn"
    assert set(keys.split()) <= set(piloted.document)
    assert (piloted.code, piloted.document["risk"], len(piloted.document["drawn"])) == (0, 0.2, 40)
    forecast = call("pilot", *data, *answers, "--forecast", "--json")
    assert forecast.code in (0, 1)
    assert forecast.document
    assert call("verify", "policy.json", "--json").document["valid"] is True
    ran = call("acquire", *data, *answers, "--policy", "policy.json", "-o", "delivered.csv", "--json")
    assert ran.code in (0, 1), ran.err
    assert Path("delivered.csv").read_text(encoding="utf-8-sig").count("\n") == 101
    audit = call("audit", "delivered.csv", "--recipe", "recipe.toml", "--labels", "20", "-o", "audit.json", "--json")
    assert {"population", "drawn", "wrong", "bound", "confidence"} <= set(audit.document)
    assert audit.document["drawn"] == 20
    assert call("verify", "audit.json", "--json").document["valid"] is True
    Path("recipe.toml").write_text(Path("recipe.toml").read_text().replace("third {{", "thirdly {{"), "utf-8")
    changed = call("acquire", *data, *answers, "--policy", "policy.json", "--json")
    assert (changed.code, changed.out) == (2, "")


def test_answers_that_exist_already(call: Callable[..., Ran]) -> None:
    """A log by its own paths, and the long form it becomes; no call is made."""
    recorded(4)
    for node in ("total", "reworded", "third"):
        said = [{"choices": [{"message": {"content": str(100 + i)}}]} for i in range(4)]
        log = [{"custom_id": f"i{i}", "response": {"status_code": 200, "body": said[i]}} for i in range(4)]
        Path(f"{node}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log), encoding="utf-8")
        paths = ("--item", "custom_id", "--node", f"={node}")
        made = call("import", f"{node}.jsonl", "--from", "openai-batch", *paths, "-o", f"made-{node}.jsonl")
        assert made.code == 0, made.err
    texts = [Path(f"made-{node}.jsonl").read_text(encoding="utf-8") for node in ("total", "reworded", "third")]
    Path("made.jsonl").write_text("".join(texts), encoding="utf-8")
    assert {"id", "node"} <= set(json.loads(texts[0].splitlines()[0]))
    fixed = call("repair", "recipe.toml", "--data", "table.csv", "--responses", "made.jsonl", "-o", "out.csv", "--json")
    assert fixed.document["verdicts"]["consistent"] == 4, fixed.err
    for tool in ("inspect", "promptfoo", "lm-eval", "openai-batch"):
        refused = call("import", "table.csv", "--from", tool, "-o", "x.jsonl")
        assert (refused.code, len(refused.err.splitlines())) == (2, 1), tool
    compiled = call("compile", "recipe.toml", "--data", "table.csv", "--item", "i0")
    assert compiled.code == 0
    assert "[[relations]]" in compiled.out
    Path("kept").mkdir()
    assert call("cache", "list", "--cache", "kept", "--json").code == 0
    assert call("cache", "clear", "--cache", "kept", "--yes", "--json").code in (0, 2)


def test_a_data_set_in_python(call: Callable[..., Ran]) -> None:
    recorded(4)
    found = rrf.dataset("recipe.toml", "table.csv")
    assert list(found) == ["i0", "i1", "i2", "i3"]
    assert isinstance(found["i0"], rrf.Problem)
    delivery = rrf.repair(found, "long.jsonl")
    assert list(delivery.to_frame()["no"]) == ["i0", "i1", "i2", "i3"]
    assert "<table>" in delivery._repr_html_()
    plain = rrf.dataset("recipe.toml", [{"no": "007", "text": "x", "booked": 1}])
    assert list(plain) == ["007"]


def test_parts_of_anybodys_by_entry_points(
    call: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package that names a planner is found by its name, in Python and by the
    command.
    """
    import sys

    (tmp_path / "plugged.py").write_text(
        "from rrf_design.planning import planner\n\n"
        "class Thrifty:\n    name = 'thrifty'\n\n"
        "    def plan(self, evaluator, goal):\n        return planner('greedy').plan(evaluator, goal)\n",
        encoding="utf-8",
    )
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n", encoding="utf-8")
    groups = "[rrf_design.planners]\nthrifty = plugged:Thrifty\n"
    (info / "entry_points.txt").write_text(groups, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    from rrf_design.planning import registry

    registry._offered.cache_clear()  # what is installed is looked up once in a process
    try:
        found = rrf.plan(rrf.load("problem.toml"), budget=3.0, method="thrifty")
        assert found.cost <= 3.0
        assert call("plan", "problem.toml", "--budget", "3", "--method", "thrifty", "--json").code == 0
    finally:
        registry._offered.cache_clear()
