"""certify and report, and the agreement of all verbs."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from agreeing import SIGNS, generated, live, page_words, true_field

import rrf_design as rrf
from rrf_design.cli.init import _template
from rrf_design.cli.output import ceiling, floor
from rrf_design.goal import Goal

from .conftest import field_text

TEXT = field_text(
    'name = "triangle and isolate"\nk = 1\nepsilon = 0.02',
    "a b c isolate",
    "a>b b>c c>a",
    '[[anchors]]\nid = "fix"\nnode = "isolate"\ncost = 2.0\n',
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "problem.toml"
    path.write_text(TEXT)
    return path


def test_what_was_written_is_re_proved_at_once(run: Any, file: Path, tmp_path: Path, monkeypatch: Any) -> None:
    arguments = ("certify", file, "--select", "fix", "-o", tmp_path / "c.json", "--check")
    assert "Re-proved from what was written." in run(*arguments).out
    told = run(*arguments, "--json")
    assert (told.code, told.json["verified"], told.json["refused"]) == (0, True, None)
    assert "verified" not in run(*arguments[:-1], "--json").json
    monkeypatch.setattr("rrf_design.checker.verifier.MOST_BYTES", 100)
    found = run(*arguments, "--json")
    assert found.code == 1
    assert not found.json["verified"]
    assert "the file is larger than 100 bytes" in found.json["refused"]


def test_json(run: Any, file: Path, tmp_path: Path) -> None:
    result = run("certify", file, "--select", "fix", "-o", tmp_path / "c.json", "--json")
    assert result.code == 0
    document = result.json
    assert {"gamma_lower", "gamma_upper", "robust_lower", "error_bound", "regime", "certificate"} <= set(document)
    assert document["certificate"] == str(tmp_path / "c.json")
    assert document["gamma_lower"] == pytest.approx(1.0, rel=1e-8)
    assert rrf.verify(tmp_path / "c.json").valid


def test_a_missed_requirement_sets_the_exit_code_and_the_report(run: Any, file: Path, tmp_path: Path) -> None:
    made = tmp_path / "c.json"
    assert run("certify", file, "--all", "-o", made, "--require", 0.4).code == 0
    missed = run("certify", file, "-o", made, "--require", 0.4, "--junit", tmp_path / "out.xml")
    assert missed.code == 1
    assert "MISSED" in missed.out
    assert "Indistinguishable" in missed.out
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert root.get("failures") == "1"
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert "required 0.4" in failure.get("message", "")


def test_text_for_people(run: Any, file: Path, tmp_path: Path) -> None:
    result = run("certify", file, "--select", "fix", "-o", tmp_path / "c.json", "--support", "a,b")
    assert result.code == 0
    assert "γ_1 ≥ 0.999999999, proven" in result.out
    assert "on the listed supports only" in result.out
    assert "rrf-design verify" in result.out


def test_what_is_printed_as_proven_is_not_rounded_up() -> None:
    assert floor(0.99999999995) == "0.999999999"
    assert floor(0.0) == ceiling(0.0) == "0"
    assert float(ceiling(1.0000000000000002)) > 1.0
    assert float(floor(1.23456789987e-7)) <= 1.23456789987e-7


def test_calibration_data_set_the_radii(run: Any, file: Path, tmp_path: Path) -> None:
    data = tmp_path / "calibration.csv"
    data.write_text("block,errors,trials,effect\nab,1,100,0.5\nfix,0,100,0.5\n")
    made = tmp_path / "c.json"
    arguments = ("certify", file, "--select", "fix", "-o", made, "--calibration", data, "--json")
    result = run(*arguments, "--calibration-confidence", 0.9)
    assert result.code == 0
    assert result.json["robust_lower"] < result.json["gamma_lower"]
    section = json.loads(made.read_text())["uncertainty"]
    assert section["confidence"] == 0.9
    assert "Clopper" in section["source"]
    assert rrf.verify(made).valid
    assert run(*arguments, "--require", 0.99).code == 1
    data.write_text("block,errors,trials,effect\nabc,1,100,0.5\n")
    wrong = run(*arguments)
    assert wrong.code == 2
    assert wrong.err.count("\n") == 1
    assert "there is no block 'abc'" in wrong.err


def test_a_plan_is_certified_if_it_is_for_this_problem(run: Any, file: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert run("plan", file, "--target", 0.9, "-o", plan).code == 0
    assert run("certify", file, "--plan", plan, "-o", tmp_path / "c.json", "--require", 0.9).code == 0
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "digest": "0" * 64}))
    result = run("certify", file, "--plan", plan, "-o", tmp_path / "c.json")
    assert result.code == 2
    assert "plan again" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "fix", "--all"], "not several"),
        (["--plan", "none.json"], "no such file"),
        (["--rung", "best"], "rung: 'best'"),
        (["--select", "fxi"], "did you mean 'fix'"),
        (["--budgets", "two"], "not a list of whole numbers"),
        (["--epsilon", "-1"], "epsilon must be"),
        (["--front-end", "magic", "--rung", "mixed-integer"], "magic"),
    ],
)
def test_wrong_calls_are_one_line(run: Any, file: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    result = run("certify", file, "-o", tmp_path / "c.json", *arguments)
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "c.json").exists()


def test_something_else_is_no_plan(run: Any, file: Path, tmp_path: Path) -> None:
    for content in ("[]", "{}", "no json"):
        (tmp_path / "p.json").write_text(content)
        assert run("certify", file, "--plan", tmp_path / "p.json", "-o", tmp_path / "c.json").code == 2


def test_ctrl_c_tells_what_is_proven_and_writes_nothing(
    run: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rrf_design.certificates._issue.budget_sections", stop)
    result = run("certify", file, "--select", "fix", "-o", tmp_path / "c.json", "--json")
    assert result.code == 130
    assert result.out == ""
    assert "margin: so far proven between 0.999999999 and 1.00000001" in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["problem.toml"]


def test_ctrl_c_while_a_larger_budget_is_searched_tells_the_margin_that_was_asked_for(
    run: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rrf_design.certificates import _sections as sections
    from solvers import Interrupted

    whole = sections.climb

    def climb(record: Any, k: int, **options: Any) -> Any:
        found = whole(record, k, **options)
        if k == 2:
            from solvers import margin

            raise Interrupted(margin(record.matrix, k=2))
        return found

    monkeypatch.setattr(sections, "climb", climb)
    result = run("certify", file, "--select", "fix", "--budgets", 2, "-o", tmp_path / "c.json")
    assert result.code == 130
    assert "margin: so far proven between 0.999999999 and 1.00000001" in result.err


def test_a_fixed_selection_is_certified_with_its_joint_noise(run, tmp_path):
    text = "".join(
        f"[[nodes]]\nid = '{x}'\n[[anchors]]\nid = 'label {x}'\nnode = '{x}'\nvalue = 1.0\nsigma = 1.0\n" for x in "ab"
    )
    text += "[[relations]]\nid = 'r'\ntail = 'a'\nhead = 'b'\ntransport = { scale = -1.0 }\n"
    text += "[[noise]]\nid = 'annotator'\nblocks = ['label a', 'label b']\ncovariance = [[1.0, 0.6], [0.6, 1.0]]\n"
    (tmp_path / "p.toml").write_text(text)
    bound, itself = (
        run("certify", tmp_path / "p.toml", "-o", tmp_path / "c.json", *more) for more in ((), ("--jointly",))
    )
    assert "γ_1 ≥ 0.79" in bound.out
    assert "γ_1 ≥ 1.58" in itself.out


def test_a_margin_with_shared_noise_is_called_a_bound(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is said once the blocks are whitened together."""
    labels = [{"id": f"label {x}", "node": x, "sigma": 1.0, "value": 1.0} for x in "ab"]
    shared = {"id": "annotator", "blocks": ["label a", "label b"], "covariance": [[1.0, 0.6], [0.6, 1.0]]}
    problem = rrf.Problem(name="two", nodes=[{"id": "a"}, {"id": "b"}], anchors=labels, noise=[shared])
    monkeypatch.chdir(tmp_path)
    rrf.save(problem, "two.json")
    words = "share noise (annotator)"
    assert words in run("margin", "two.json").out
    assert words in run("certify", "two.json", "-o", "c.json").out
    assert words in run("certify", "two.json", "-o", "c.json", "--json").json["shared_noise"]
    assert words not in run("certify", "two.json", "--jointly", "-o", "c.json").out


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(1.9, ""), (2.0, " (about 2 s)"), (12.3, " (about 20 s)"), (20.0, " (about 20 s)"), (340.0, " (about 400 s)")],
)
def test_what_verifying_takes_is_said_in_seconds(seconds: float, said: str) -> None:
    from rrf_design.cli.certify import _takes

    assert _takes(seconds) == said


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    problem = rrf.Problem(
        name="pair",
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "x", "node": "a"}],
    )
    rrf.certify(problem).save(tmp_path / "c.json")
    return tmp_path / "c.json"


def test_a_true_certificate(run: Any, certificate: Path) -> None:
    result = run("verify", certificate, "--json")
    assert result.code == 0
    assert result.json["valid"] is True
    assert result.json["gamma_lower"] == pytest.approx(0.618, abs=1e-3)
    assert "re-proved" in run("verify", certificate).out


def test_an_altered_certificate(run: Any, certificate: Path, tmp_path: Path) -> None:
    certificate.write_text(certificate.read_text().replace('"pair"', '"peer"'))
    result = run("verify", certificate, "--json", "--junit", tmp_path / "v.xml")
    assert result.code == 1
    assert result.json == {**result.json, "valid": False, "gamma_lower": None}
    assert "altered" in result.json["reason"]
    assert ElementTree.parse(tmp_path / "v.xml").getroot().get("failures") == "1"
    assert "REFUSED" in run("verify", certificate).out


def test_a_requirement(run: Any, certificate: Path, tmp_path: Path) -> None:
    assert run("verify", certificate, "--require", 0.6, "--junit", tmp_path / "v.xml").code == 0
    assert ElementTree.parse(tmp_path / "v.xml").getroot().get("failures") == "0"
    result = run("verify", certificate, "--require", 0.7, "--json")
    assert result.code == 1
    assert "required 0.7" in result.json["reason"]


def test_no_such_file(run: Any, tmp_path: Path) -> None:
    result = run("verify", tmp_path / "none.json")
    assert result.code == 2
    assert "no such file" in result.err


def test_ctrl_c_tells_what_was_re_proved(run: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, progress: Any, **__: Any) -> None:
        progress(0.5)
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("rrf_design.checker._steps"), "prove_floor", stopped)
    result = run("verify", certificate, "--json")
    assert result.code == 130
    assert result.out == ""
    assert "verification: so far proven between 0 and 0.618" in result.err


def test_what_carries_no_proof_is_told_where_one_is(run: Any, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": "rrf-policy-run", "version": 1}')
    result = run("verify", tmp_path / "run.json")
    assert (result.code, result.out) == (2, "")
    assert "verify its policy, or an audit of it" in result.err


@pytest.mark.parametrize(
    "content", [b"{}", b"[]", b"hello", b"\xff\xfe", b"", b'{"format": "rrf-plan", "version": 2}', b"[" * 10_000]
)
def test_what_is_no_document_is_a_wrong_call(run: Any, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    result = run("verify", tmp_path / "x.json", "--json")
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert "verify takes certificates, policies, audits and deliveries" in result.err


def test_a_damaged_certificate_is_refused(run: Any, certificate: Path) -> None:
    certificate.write_text(certificate.read_text()[:-40])
    assert run("verify", certificate).code == 1


Run = Callable[..., Any]


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.toml"
    path.write_text(_template("code"), encoding="utf-8")
    return path


def test_a_design(run: Run, problem: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    made = run("report", problem, "--select", "all-tests", "-o", out)
    assert made.code == 0
    assert "Wrote" in made.out
    text = out.read_text(encoding="utf-8")
    assert "code with tests" in text
    assert "1 bought" in text


def test_json_of_report(run: Run, problem: Path, tmp_path: Path) -> None:
    made = run("report", problem, "-o", tmp_path / "x.html", "--json")
    assert made.json["kind"] == "problem"
    assert made.json["bytes"] == (tmp_path / "x.html").stat().st_size


def test_what_explain_printed_has_the_page_of_the_problem(run: Run, problem: Path, tmp_path: Path) -> None:
    saved, out = tmp_path / "why.json", tmp_path / "x.html"
    saved.write_text(run("explain", problem, "--json").out, encoding="utf-8")
    made = run("report", saved, "--problem", problem, "-o", out, "--json")
    assert made.json["kind"] == "rrf-explanation"
    sentence = "This design is not"
    assert sentence in out.read_text(encoding="utf-8")
    assert run("report", problem, "-o", out).code == 0
    assert sentence in out.read_text(encoding="utf-8")


def test_an_operator_file(run: Run, problem: Path, tmp_path: Path) -> None:
    import rrf_design as rrf

    rrf.save_operator(rrf.load(problem).operator("all"), tmp_path / "b.npz")
    assert run("report", tmp_path / "b.npz", "-o", tmp_path / "x.html", "--json").json["kind"] == "problem"


def test_many_repairs(run: Run, problem: Path, tmp_path: Path) -> None:
    fields = [{"field": name, "responses": {"original": 1}} for name in ("first", "second")]
    path, batch = tmp_path / "p.toml", tmp_path / "batch.json"
    path.write_text('[[nodes]]\nid = "original"\n[[anchors]]\nid = "a"\nnode = "original"\nvalue = 1.0\n')
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, fields)))
    run("repair", path, "--responses", tmp_path / "r.jsonl", "-o", batch)
    made = run("report", batch, "-o", tmp_path / "x.html", "--json")
    assert made.json["kind"] == "rrf-repair-batch"
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "2 fields: 2 checked" in text
    assert ">second<" in text


def test_two_designs_of_one_file(run: Run, problem: Path, tmp_path: Path) -> None:
    made = run("report", problem, "--compare-select", "all-tests", "-o", tmp_path / "x.html", "--json")
    assert made.json["kind"] == "comparison"
    assert "owned only against all-tests" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_two_files(run: Run, problem: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(_template("paraphrase"), encoding="utf-8")
    made = run("report", problem, "--compare", other, "-o", tmp_path / "x.html", "--json")
    assert made.code == 0
    assert "problem against other" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_a_plan_and_a_certificate_set_side_by_side(run: Run, problem: Path, tmp_path: Path) -> None:
    plan, certificate, out = tmp_path / "plan.json", tmp_path / "certificate.json", tmp_path / "x.html"
    assert run("plan", problem, "--target", 0.5, "-o", plan).code == 0
    assert run("certify", problem, "--select", "first-test", "-o", certificate).code == 1  # its target is missed
    assert "--problem" in run("report", plan, "-o", out).err
    assert run("report", plan, "--problem", problem, "-o", out, "--json").json["kind"] == "rrf-plan"
    made = run("report", plan, "--compare", certificate, "--problem", problem, "-o", out, "--json")
    assert made.json["kind"] == "comparison"
    assert "plan against certificate" in out.read_text(encoding="utf-8")
    assert run("report", plan, "--select", "all-tests", "-o", out).code == 2


def test_a_run_by_its_name(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no journal of runs" in run("report", "last", "-o", "x.html").err
    Path("p.toml").write_text(_template("paraphrase"), encoding="utf-8")
    Path("script.json").write_text('{"rules": [{"pattern": ".*", "text": "42"}]}')
    assert run("acquire", "p.toml", "--model", "scripted:script.json", "--quiet").code == 0
    made = run("report", "last", "-o", "x.html", "--json")
    assert made.json["kind"] == "rrf-run"
    assert "data-nodes=" in Path("x.html").read_text(encoding="utf-8")
    assert run("report", "nonsense", "-o", "x.html").code == 2


def test_wrong_calls_are_one_line_of_report(run: Run, problem: Path, tmp_path: Path) -> None:
    for arguments in (
        ("report", tmp_path / "none.json", "-o", tmp_path / "x.html"),
        ("report", problem, "--select", "nonsense", "-o", tmp_path / "x.html"),
        ("report", problem, "-o", tmp_path / "missing" / "x.html"),
        ("report", problem),
    ):
        made = run(*arguments)
        assert made.code == 2
        assert made.err.count("\n") == 1
        assert "Traceback" not in made.err


BUDGET = 4.25


def close(first: float | None, second: float | None) -> bool:
    return first == second or (first is not None and second is not None and first == pytest.approx(second, rel=1e-6))


def test_the_command_line_says_the_same(run: Any, tmp_path: Path) -> None:
    problem = rrf.Problem(
        k=1,
        target=0.1,
        epsilon=0.1,
        delta=0.5,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c"}],
        anchors=[
            {"id": "x", "node": "a", "value": 1.0, "cost": 5.0},
            {"id": "y", "node": "c", "value": 1.0, "cost": 5.0},
        ],
        tiers=[{"id": "t", "blocks": ["x", "y"], "prices": [5.0, 2.0]}],
    )
    path = tmp_path / "problem.json"
    rrf.save(problem, path)
    plan = run("plan", path, "--json").json
    told = run("explain", path, "--select", ",".join(plan["selected"]), "--json").json
    written = run("certify", path, "--select", ",".join(plan["selected"]), "-o", tmp_path / "c.json", "--json").json
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"a": 1.0, "b": 1.0, "c": 9.0}), encoding="utf-8")
    fixed = run("repair", path, "-r", answers, "--select", ",".join(plan["selected"]), "--json").json
    for found in (plan, told, written, fixed):
        assert found["wanted"] == pytest.approx(0.4)
        assert found["epsilon"] == pytest.approx(0.1)
    assert plan["reached"] == told["reached"] == written["reached"]
    assert (fixed["verdict"] == "consistent") == plan["reached"]


@pytest.mark.parametrize("seed", range(0, 60, 5))
def test_every_verb_says_the_same_of_a_generated_file(run: Any, tmp_path: Path, seed: int) -> None:
    """A run with one wrong answer in three; then plan, explain, certify, repair and the pages are
    asked about what it bought.
    """
    problem = live(generated(seed))
    path, answers, model = tmp_path / "problem.json", tmp_path / "answers.json", tmp_path / "model.json"
    rrf.save(problem, path)
    truth = true_field(problem) | ({"n1": 9.0} if seed % 3 == 0 else {})
    model.write_text(json.dumps({"rules": [{"prompt": n, "text": f"{v}"} for n, v in truth.items()]}), encoding="utf-8")
    store = ("--store", tmp_path / "runs.sqlite")
    ran = run("acquire", path, "--model", f"scripted:{model}", "--budget", BUDGET, *store, "--json")
    (item,) = ran.json["items"]
    held = ",".join(item["selected"])
    told = run("explain", path, "--select", held, "--json")
    written = run("certify", path, "--select", held, "-o", tmp_path / "c.json", "--json")
    answers.write_text(json.dumps(item["answers"]), encoding="utf-8")
    fixed = run("repair", path, "-r", answers, "--select", held, "-o", tmp_path / "repair.json", "--json")

    repair, documents = item["repair"], (told.json, written.json)
    assert all(close(found["wanted"], item["goal"]) for found in documents)
    assert close(fixed.json["wanted"], repair["wanted"])
    assert all(close(found["epsilon"], told.json["epsilon"]) for found in documents)
    assert close(fixed.json["epsilon"], repair["epsilon"])
    assert all(close(found["robust_lower"], item["robust_lower"]) for found in (*documents, fixed.json))
    assert told.json["reached"] == written.json["reached"] == item["reached"]
    assert close(told.json["cost"], ran.json["spent"])
    assert ran.json["spent"] <= BUDGET
    assert (item["verdict"], item["assumes"]) == (fixed.json["verdict"], fixed.json["assumes"])
    passes = item["verdict"] in ("checked", "consistent")
    assert (ran.code, fixed.code) == (0 if passes else 1,) * 2
    assert told.code == (0 if told.json["reached"] else 1)
    assert written.code == (0 if written.json["reached"] or not Goal.of(problem).named else 1)
    assert ran.json["repaired"] == fixed.json["repaired"]

    for number, shown in enumerate((ran.json["run"], tmp_path / "repair.json")):
        page = tmp_path / f"{number}.html"
        assert run("report", shown, "-o", page, *(store if number == 0 else ())).code == 0
        words = page_words(page)
        assert f"{SIGNS[item['verdict']]}{item['verdict']}" in words
        assert ("The answers are consistent" in words) == (item["verdict"] == "consistent")


@pytest.mark.parametrize("seed", range(1, 60, 5))
def test_a_plan_within_its_money_stands_where_the_other_verbs_say(run: Any, tmp_path: Path, seed: int) -> None:
    path = tmp_path / "problem.json"
    rrf.save(generated(seed), path)
    plan = run("plan", path, "--budget", BUDGET, "-o", tmp_path / "plan.json", "--json")
    told = run("explain", path, "--select", ",".join(plan.json["selected"]), "--json")
    written = run("certify", path, "--plan", tmp_path / "plan.json", "-o", tmp_path / "c.json", "--json")
    for key in ("wanted", "epsilon", "robust_lower", "error_bound"):
        assert close(plan.json[key], written.json[key]), key
        assert close(plan.json[key], told.json[key]), key
    assert close(plan.json["cost"], told.json["cost"])
    assert plan.json["cost"] <= BUDGET
    assert plan.json["reached"] == told.json["reached"] == written.json["reached"]
    if written.json["robust_lower"] > 0:
        assert run("verify", tmp_path / "c.json", "--json").json["valid"]
    page = tmp_path / "plan.html"
    assert run("report", tmp_path / "plan.json", "-o", page).code == 0
    assert f"{plan.json['cost']:g}" in page_words(page)
