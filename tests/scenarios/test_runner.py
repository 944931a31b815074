from __future__ import annotations

import csv
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rrf_design import InputError
from scenarios import ScenarioOutcome
from scenarios.conformance import check_scenario
from scenarios.kit.plots import lines
from scenarios.kit.report import ConditionStatus, ConditionVerdict, Report, Table
from scenarios.kit.rows import (
    batches,
    count,
    curve,
    grouped,
    missing,
    rows_of,
    seeds_of,
    summary,
    totals,
    values,
    where,
)
from scenarios.kit.runner import run_scenario, write_index
from scenarios.kit.scenario import Context, Done, Expectation, Part, Protocol, Scenario, public


def _parts(context: Context) -> list[Part]:
    return [{"seed": seed} for seed in range(context["seeds"])]


def _run(context: Context, part: Part) -> dict[str, float]:
    with (context.directory / "calls.txt").open("a") as stream:
        stream.write(f"{part['seed']}\n")
    return {"seed": part["seed"], "third": part["seed"] / 3, "broken": float("nan")}


def _report(context: Context, done: list[Done]) -> Report:
    rows = [d.value for d in done]
    return Report(
        verdicts=[ConditionVerdict.of("small", max(r["third"] for r in rows) < 10, f"{len(rows)} rows")],
        tables=[Table.of("thirds", rows, caption="A <b>caption</b> | with markup")],
        figures=[
            lines("curve", {"third": ([r["seed"] for r in rows], [r["third"] for r in rows])}, x="seed", y="third")
        ],
        notes=["<script>alert(1)</script>"],
    )


TOY = Scenario(
    name="toy",
    question="Does the runner keep its promises?",
    full={"seeds": 5, "seed": 0},
    quick={"seeds": 2},
    expected=(Expectation("small", "every third is below ten"),),
    parts=_parts,
    run=_run,
    report=_report,
)


def test_files_and_full_precision(tmp_path: Path) -> None:
    published = run_scenario(TOY, tmp_path)
    assert not published.violated
    with gzip.open(tmp_path / "toy" / "thirds.csv.gz", "rt") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["third"]) for row in rows] == [seed / 3 for seed in range(5)]
    assert rows[0]["broken"] == ""
    document = json.loads((tmp_path / "toy" / "result.json").read_text())
    assert document["format"] == "rrf-scenario"
    assert document["expectations"][0]["status"] == "met"
    assert document["parameters"] == {"seeds": 5, "seed": 0}
    assert "<svg" in (tmp_path / "toy" / "curve.svg").read_text()
    assert "toy/index.html" in (tmp_path / "index.html").read_text()
    assert "toy/README.md" in (tmp_path / "README.md").read_text()


def test_pages_escape_text(tmp_path: Path) -> None:
    run_scenario(TOY, tmp_path)
    page = (tmp_path / "toy" / "index.html").read_text()
    assert "<script>alert" not in page
    assert "<b>caption</b>" not in page
    assert "<script>alert" not in (tmp_path / "toy" / "README.md").read_text().replace("\\<", "")


def test_resume_runs_only_what_is_missing(tmp_path: Path) -> None:
    run_scenario(TOY, tmp_path, changes={"seeds": 3})
    journal = tmp_path / "toy" / "parts.jsonl"
    lines_ = journal.read_text().splitlines()
    journal.write_text("\n".join(lines_[:3]) + "\n" + lines_[3][:10])  # a crash in the middle of a line
    calls = tmp_path / "toy" / "calls.txt"
    calls.unlink()
    run_scenario(TOY, tmp_path, changes={"seeds": 3}, resume=True)
    assert calls.read_text() == "2\n"
    calls.unlink()
    run_scenario(TOY, tmp_path, changes={"seeds": 4}, resume=True)  # other parameters: nothing is reused
    assert len(calls.read_text().split()) == 4


def test_parts_of_a_run_that_did_not_end_are_not_written_over(tmp_path: Path) -> None:
    run_scenario(TOY, tmp_path, changes={"seeds": 3})
    (tmp_path / "toy" / "result.json").unlink()  # as if it had been killed before its report
    kept = (tmp_path / "toy" / "parts.jsonl").read_bytes()
    with pytest.raises(InputError, match="3 finished parts of a run that did not end; go on with --resume"):
        run_scenario(TOY, tmp_path, changes={"seeds": 3})
    assert (tmp_path / "toy" / "parts.jsonl").read_bytes() == kept
    run_scenario(TOY, tmp_path, changes={"seeds": 3}, resume=True)


def test_processes_give_the_same_rows(tmp_path: Path) -> None:
    one = run_scenario(TOY, tmp_path / "one")
    two = run_scenario(TOY, tmp_path / "two", jobs=2)
    assert (one.directory / "thirds.csv.gz").read_bytes() == (two.directory / "thirds.csv.gz").read_bytes()


def test_violations_are_published(tmp_path: Path) -> None:
    published = run_scenario(TOY, tmp_path, changes={"seeds": 40})
    assert published.violated == ("small",)
    assert published.document["expectations"][0]["status"] == ConditionStatus.VIOLATED
    assert "violated" in (tmp_path / "README.md").read_text()


def test_revised_conditions_are_told_on_every_page(tmp_path: Path) -> None:
    before = run_scenario(TOY, tmp_path)
    assert "had been seen" not in (before.directory / "README.md").read_text() + (tmp_path / "README.md").read_text()
    reason = "it was nine, and a first run missed it"
    revised = replace(TOY, expected=(replace(TOY.expected[0], revised=reason),))
    published = run_scenario(revised, tmp_path)
    assert published.document["expectations"][0]["revised"] == reason
    for page in ("toy/README.md", "toy/index.html", "README.md", "index.html"):
        assert reason in (tmp_path / page).read_text(), page


def test_an_older_document_gets_its_revisions_from_the_code(tmp_path: Path) -> None:
    (tmp_path / "published-replay").mkdir()
    old = {
        "format": "rrf-scenario",
        "name": "published-replay",
        "title": "t",
        "question": "q",
        "size": "full",
        "expectations": [{"key": "pooled", "text": "both pooled values", "status": "met"}],
    }
    (tmp_path / "published-replay" / "result.json").write_text(json.dumps(old))
    write_index(tmp_path)
    assert "published-replay: both pooled values (at first" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("/somewhere/x.gguf", "x.gguf"),
        ("gguf:/somewhere/x.gguf", "x.gguf"),
        ("x.gguf", "x.gguf"),
        ("transformers:/somewhere/x.gguf", "transformers:x.gguf"),
        ("transformers:x.gguf", "transformers:x.gguf"),
        ("/some:where/x.gguf", "x.gguf"),
        ("transformers:/home/model", "transformers:model"),
        ("transformers:owner/model", "transformers:owner/model"),
        ("/somewhere/answers.jsonl.gz", "answers.jsonl.gz"),
        ("embedded", "embedded"),
        (7, 7),
        (None, None),
    ],
)
def test_parameters_are_published_without_the_machine_s_paths(value: object, shown: object) -> None:
    assert public(value) == shown


def test_paths_stay_out_of_everything_that_is_written(tmp_path: Path) -> None:
    toy = replace(TOY, full={**TOY.full, "model": "embedded"})
    published = run_scenario(toy, tmp_path, changes={"model": str(tmp_path / "x.gguf")})
    assert published.document["parameters"]["model"] == "x.gguf"
    texts = [file.read_text() for file in published.directory.iterdir() if file.suffix != ".gz"]
    texts += [gzip.decompress(file.read_bytes()).decode() for file in published.directory.glob("*.gz")]
    assert all(str(tmp_path) not in text for text in texts)


def test_every_expectation_needs_its_verdict(tmp_path: Path) -> None:
    silent = replace(TOY, report=lambda context, done: Report(verdicts=[]))
    with pytest.raises(ValueError, match="expectations"):
        run_scenario(silent, tmp_path)


def test_unknown_parameter(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no parameter 'sedes'"):
        run_scenario(TOY, tmp_path, changes={"sedes": 1})


def test_table_rows_must_fit() -> None:
    with pytest.raises(ValueError, match="columns"):
        Table.of("t", [{"a": 1}, {"b": 2}])


def test_a_page_begins_with_the_answer_and_shows_no_picture_that_is_not_kept(tmp_path: Path) -> None:
    def answered(context: Context, done: list[Done]) -> Report:
        return replace(_report(context, done), answer="It *does*.")

    run_scenario(replace(TOY, report=answered), tmp_path)
    page = (tmp_path / "toy" / "README.md").read_text(encoding="utf-8")
    assert page.index("It \\*does\\*.") < page.index("## What was expected")
    assert ".svg" not in page
    opened = (tmp_path / "toy" / "index.html").read_text(encoding="utf-8")
    assert opened.index("It *does*.") < opened.index("data:image/svg+xml") < opened.index("What was expected")


def _report_of_conformance(context: Context, done: list[Done]) -> ScenarioOutcome:
    rows = [{"seed": d.value} for d in done]
    return ScenarioOutcome(
        [ConditionVerdict.of("few", len(rows) < 9, f"{len(rows)}")],
        tables=[Table.of("seeds", rows)],
    )


OURS = Scenario(
    name="somebody-elses",
    question="Does a scenario of somebody else's join?",
    full={"seeds": 3},
    quick={"seeds": 2},
    expected=(Expectation("few", "fewer than nine"),),
    parts=lambda context: [{"seed": seed} for seed in range(context["seeds"])],
    run=lambda context, part: part["seed"],
    report=_report_of_conformance,  # type: ignore[arg-type]
)


def test_a_third_partys_scenario_joins(tmp_path: Path) -> None:
    check_scenario(OURS, tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Not plain"}, "no plain name"),
        ({"question": "It works."}, "question mark"),
        ({"expected": ()}, "at least one condition"),
    ],
)
def test_one_that_breaks_a_promise_is_told_which(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_scenario(replace(OURS, **change), tmp_path)


def test_a_report_without_a_table(tmp_path: Path) -> None:
    bare = replace(OURS, report=lambda context, done: ScenarioOutcome([ConditionVerdict.of("few", True, "")]))
    with pytest.raises(AssertionError, match="without a table"):
        check_scenario(bare, tmp_path)


ROWS: list[dict[str, Any]] = [
    {"kind": "a", "size": 1, "value": 1.0, "good": True},
    {"kind": "b", "size": 1, "value": 5.0, "good": False},
    {"kind": "a", "size": 2, "value": 4.0, "good": False},
]


def test_rows_are_grouped_in_the_order_in_which_they_come() -> None:
    found = grouped(ROWS, "kind", "rows=count value=mean median:value largest=largest:value size=first good=sum")
    assert found == [
        {"kind": "a", "rows": 2, "value": 2.5, "median_value": 2.5, "largest": 4.0, "size": 1, "good": 1},
        {"kind": "b", "rows": 1, "value": 5.0, "median_value": 5.0, "largest": 5.0, "size": 1, "good": 0},
    ]
    assert summary([], "rows=count value=mean median:value least:value size=sum") == {
        "rows": 0,
        "value": None,
        "median_value": None,
        "least_value": None,
        "size": 0,
    }


def test_rows_are_picked_counted_and_summed() -> None:
    assert where(ROWS, kind="a", size=2) == ROWS[2:]
    assert totals(ROWS, "size absent") == {"size": 4, "absent": 0}
    assert (count(ROWS, "good"), missing(ROWS, "good")) == (1, 2)
    assert curve(ROWS, "size", "value") == ([1, 1, 2], [1.0, 5.0, 4.0])


def test_batches_cover_everything_once() -> None:
    found = list(batches(250, 100, what="x"))
    assert [seed for part in found for seed in seeds_of(part)] == list(range(250))
    assert found[-1] == {"what": "x", "first": 200, "count": 50}


def test_values_are_those_of_the_parts_asked_for() -> None:
    done = [Done({"kind": kind, **more}, [kind], 0.0) for kind, more in (("a", {}), ("b", {"first": 0}), ("a", {}))]
    assert values(done, kind="a") == [["a"], ["a"]]
    assert rows_of(done, "first") == ["b"]
    assert rows_of(done) == ["a", "b", "a"]


def test_a_quick_size_decides_nothing_that_needs_the_full_one() -> None:
    for quick, status in ((True, "not judged"), (False, "violated")):
        page = Report(quick=quick)
        page.at_full("fast", False, "slow")
        page.none("bad", 2, "of 3")
        page.open(["closed"], "no reason")
        assert [verdict.status.value for verdict in page.verdicts] == [status, "violated", "not judged"]
        assert page.verdicts[1].seen == "2 of 3"


def test_captions_and_notes_come_from_the_protocol(tmp_path: Path) -> None:
    def report(context: Context, done: list[Done]) -> Report:
        page = context.page()
        page.check("small", True, "")
        page.table("thirds", [{"a": 1}])
        page.table("told", [{"a": 1}], "by the report")
        page.bars("bars", {"one": 1.0}, y="height")
        page.notes.append("first")
        return page

    told = {"thirds": "by the protocol", "told": "not this one", "bars": "a picture"}
    document = run_scenario(replace(TOY, report=report, captions=told, notes=("last",)), tmp_path).document
    assert [table["caption"] for table in document["tables"]] == ["by the protocol", "by the report"]
    assert document["figures"][0]["caption"] == "a picture"
    assert document["notes"] == ["first", "last"]


def test_a_protocol_is_read_whole(tmp_path: Path) -> None:
    text = '# T\n\n**Does it?**\n\nAbout\nit.\n\n## Parameters\n\n```json\n{"a": 1}\n```\n\nQuick size:\n\n```json\n{}\n```\n'
    text += "\n## Conditions\n\n- `x`: one\n  two\n  - Paper: 3\n\n## Tables and pictures\n\n- `t`: rows\n  of it\n"
    (tmp_path / "p.md").write_text(text + "\n## Notes\n\nOne\nnote.\n\nAnother.\n", encoding="utf-8")
    found = Protocol.read(tmp_path / "p.md")
    assert (found.title, found.question, found.about) == ("T", "Does it?", "About it.")
    assert (found.full, found.quick) == ({"a": 1}, {})
    assert found.conditions == (Expectation("x", "one two", paper="3"),)
    assert found.captions == {"t": "rows of it"}
    assert found.notes == ("One note.", "Another.")
