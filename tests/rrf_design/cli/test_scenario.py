from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def test_list_shows_every_question(run: Run) -> None:
    import scenarios

    listed = run("scenario", "list", "--json").json["scenarios"]
    assert [entry["name"] for entry in listed] == list(scenarios.names())
    assert all(entry["question"].endswith("?") and entry["expected"] for entry in listed)
    assert "worked-examples" in run("scenario", "list").out


def test_run_writes_pages_and_says_the_verdicts(run: Run, tmp_path: Path) -> None:
    ran = run("scenario", "run", "consistency-truth", "--quick", "--out", tmp_path, "--json", "--set", "seeds=2")
    assert ran.code == 0
    assert ran.json["parameters"]["seeds"] == 2
    assert {e["status"] for e in ran.json["expectations"]} == {"met"}
    assert (tmp_path / "consistency-truth" / "index.html").is_file()
    again = run("scenario", "run", "consistency-truth", "--quick", "--out", tmp_path, "--resume", "--set", "seeds=2")
    assert "finished before" in again.err
    assert "met" in again.out


def test_wrong_calls_are_one_line(run: Run, tmp_path: Path) -> None:
    for arguments, message in [
        (("scenario", "run", "anchor-transitoin"), "did you mean 'anchor-transition'"),
        (("scenario", "run", "worked-examples", "--model", "embedded"), "has no parameter 'model'"),
        (("scenario", "run", "worked-examples", "--set", "nonsense"), "NAME=VALUE"),
    ]:
        ran = run(*arguments, "--out", tmp_path)
        assert ran.code == 2
        assert message in ran.err
        assert "Traceback" not in ran.err
        assert len(ran.err.strip().splitlines()) == 1


def test_pages_are_made_again_without_a_run(run: Run, tmp_path: Path) -> None:
    run("scenario", "run", "consistency-truth", "--quick", "--out", tmp_path / "results", "--set", "seeds=2")
    made = run("scenario", "pages", tmp_path / "results", "--out", tmp_path / "pages")
    assert made.code == 0
    assert made.out.strip().endswith("index.html")
    for page in ("index.html", "consistency-truth/index.html"):
        assert (tmp_path / "pages" / page).read_bytes() == (tmp_path / "results" / page).read_bytes()
    nothing = run("scenario", "pages", tmp_path / "pages", "--out", tmp_path / "again")
    assert nothing.code == 2
    assert "no results of scenarios there" in nothing.err


def test_a_missing_extra_is_one_line(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    import scenarios.kit.runner

    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr(scenarios.kit.runner, "run_scenario", missing)
    ran = run("scenario", "run", "worked-examples", "--out", tmp_path)
    assert ran.code == 2
    assert ran.err.strip().endswith("needs matplotlib; get it with: pip install 'rrf-design[scenarios]'")
    assert len(ran.err.strip().splitlines()) == 1


def test_violations_set_the_exit_code(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    import scenarios.consistency_truth as module

    monkeypatch.setattr(module, "DEFECT_LIMIT", 1e-30)
    ran = run("scenario", "run", "consistency-truth", "--quick", "--out", tmp_path, "--quiet")
    assert ran.code == 1
    assert "Ran: 1 of" in ran.out
    assert "conditions violated" in ran.out
    assert ran.err == ""


def test_all_goes_on_and_tells_what_ran_from_what_did_not(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    """Violated, not runnable and crashed are three things, and each has its own exit code."""
    import scenarios
    import scenarios.consistency_truth as violating
    import scenarios.worked_examples as crashing

    monkeypatch.setattr(scenarios, "names", lambda: ("acquisition-policies", "consistency-truth", "worked-examples"))
    monkeypatch.setattr(violating, "DEFECT_LIMIT", 1e-30)
    missing = run("scenario", "run", "all", "--quick", "--out", tmp_path, "--quiet")
    assert missing.code == 2
    assert "2 scenarios ran: conditions violated in consistency-truth 1 of" in missing.out
    assert "acquisition-policies did not run: " in missing.err
    assert "Traceback" not in missing.err

    def crash(*_: object) -> None:
        raise ZeroDivisionError("broken on purpose")

    broken = replace(crashing.SCENARIO, report=crash)
    monkeypatch.setattr(crashing, "SCENARIO", broken)
    crashed = run("scenario", "run", "all", "--quick", "--out", tmp_path, "--quiet", "--json")
    assert crashed.code == 3
    assert [d["name"] for d in crashed.json["scenarios"]] == ["consistency-truth"]
    assert crashed.json["stopped"]["worked-examples"] == "crashed: ZeroDivisionError: broken on purpose"
    assert "Traceback" in crashed.err
