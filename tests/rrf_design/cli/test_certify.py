"""`rrf-design certify` and `verify`."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import rrf_design as rrf
from rrf_design.cli.output import ceiling, floor

TEXT = """
[problem]
name = "triangle and isolate"
k = 1
epsilon = 0.02

[[nodes]]
id = "a"
[[nodes]]
id = "b"
[[nodes]]
id = "c"
[[nodes]]
id = "isolate"
[[relations]]
id = "ab"
tail = "a"
head = "b"
[[relations]]
id = "bc"
tail = "b"
head = "c"
[[relations]]
id = "ca"
tail = "c"
head = "a"
[[anchors]]
id = "fix"
node = "isolate"
cost = 2.0
"""


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

    monkeypatch.setattr("rrf_design.certificates.issue.budget_sections", stop)
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
    assert (result.code, "checked" in result.out) == (1, False)
    assert "verify its policy, or an audit of it" in result.err
