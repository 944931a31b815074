"""Candidates, choices, marks and replay of single items, with answers written by hand."""

from __future__ import annotations

import ast
import gzip
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import scenarios.real_model
from rrf_design import models
from rrf_design.errors import InputError
from scenarios.kit import designs
from scenarios.kit.designs import DESIGNS
from scenarios.real_model import answers, arithmetic, choices, fields, hidden, marks, programs, recomputed, replay, work
from scenarios.real_model.choices import Choice, baseline, natural_repair
from scenarios.real_model.fields import AnswerCandidate

sys.path.insert(0, str(Path(__file__).parent))
import fake


def candidates(*values: float | None, role: str = "node") -> list[AnswerCandidate]:
    return [
        AnswerCandidate(role, number, "", "parsed", True, None if value is None else (value,))
        for number, value in enumerate(values)
    ]


def test_answers_are_transported_back(tmp_path: Path) -> None:
    item = arithmetic.items(1)[0]
    log = fake.write_log(tmp_path / "log.gz", [item], wrong=0.0)
    found = [c for c in fields.read(item, log) if c.value is not None]
    assert found
    assert all(fields.same(c.value or (), (item.answer,)) for c in found)


def test_log_round_trip_and_missing_answers(tmp_path: Path) -> None:
    item = arithmetic.items(1)[0]
    log = fake.write_log(tmp_path / "log.gz", [item])
    again = answers.Log.read(tmp_path / "log.gz")
    assert again.entries == log.entries
    assert again.dumps() == log.dumps()
    with pytest.raises(InputError, match="no answer"):
        again.text(answers.node_requests(arithmetic.items(2)[1])[0])
    (tmp_path / "bad.gz").write_bytes(b"nothing")
    with pytest.raises(InputError, match="answer log"):
        answers.Log.read(tmp_path / "bad.gz")


def test_code_instantiations_share_their_greedy_requests() -> None:
    items = programs.items()
    assert answers.node_requests(items[0]) == answers.node_requests(items[16])
    assert answers.sample_requests(items[0]) != answers.sample_requests(items[16])
    seeds = [r.seed for item in items for r in answers.sample_requests(item)]
    assert len(set(seeds)) == len(seeds)


def test_asker_asks_once_and_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Stub:
        def ask(self, request: object) -> object:
            asked.append(request)
            return fake.reply("7")

    monkeypatch.setattr(work, "get_model", lambda spec: Stub())
    item = arithmetic.items(1)[0]
    first = work.Asker("stub", None, tmp_path)
    work.ask(item, first, seed=0)
    assert len(asked) == 9
    again = work.Asker("stub", None, tmp_path)
    work.ask(item, again, seed=0)
    assert len(asked) == 9
    assert again.log.identity == fake.IDENTITY


def test_a_server_that_is_not_there_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written down of it, and a page made of silence is not made."""
    monkeypatch.setattr(work, "get_model", lambda spec: models.get(spec, retry=models.Retry(attempts=1)))
    monkeypatch.setenv("RRF_OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # nobody listens there
    source = work.Asker("openai:m", None, tmp_path)
    with pytest.raises(InputError, match="could not be asked"):
        source.need(answers.node_requests(arithmetic.items(1)[0])[0])
    assert len(source.log) == 0
    assert not list(tmp_path.iterdir())


def test_answers_of_two_backends_are_never_mixed(tmp_path: Path) -> None:
    item = arithmetic.items(1)[0]
    log = fake.write_log(tmp_path / "log.gz", [item])
    with pytest.raises(InputError, match="never mixed"):
        log.add(answers.node_requests(arithmetic.items(2)[1])[0], replace(fake.reply("7"), identity={"model": "other"}))


def test_questions_asked_again_are_compared_word_for_word(tmp_path: Path) -> None:
    item = arithmetic.items(1)[0]
    log = fake.write_log(tmp_path / "log.gz", [item])
    first, second, *_ = (request for _, _, request in fields.requests(item, log, seed=0))
    again = answers.Log(fake.IDENTITY, spec="fake")
    again.add(first, fake.reply(log.text(first)), at="2026-01-01T00:00:00+00:00")
    again.add(second, fake.reply("something else"))
    again.add(answers.node_requests(arithmetic.items(2)[1])[0], fake.reply("not in the log"))
    (tmp_path / work.AGAIN).write_bytes(again.dumps())
    found = work.asked_again(log, None, tmp_path)
    assert (len(found), found.same_words(log)) == (2, 1)
    assert len(work.asked_again(log, None, tmp_path / "nowhere")) == 0
    other = answers.Log({"model": "other"}, spec="other")
    (tmp_path / "other.gz").write_bytes(other.dumps())
    with pytest.raises(InputError, match="leave them out"):
        work.asked_again(log, str(tmp_path / "other.gz"), tmp_path)


def test_weights_are_named_by_their_file_and_never_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stub:
        def ask(self, request: object) -> object:
            return fake.reply("7")

    monkeypatch.setattr(work, "get_model", lambda spec: Stub())
    item = arithmetic.items(1)[0]
    source = work.Asker(f"gguf:{tmp_path}/some.gguf", None, tmp_path)
    work.ask(item, source, seed=0)
    assert all(entry["at"].endswith("+00:00") for entry in source.log.entries)
    (tmp_path / work.PUBLISHED).write_bytes(source.log.dumps())
    assert str(tmp_path) not in gzip.decompress(source.log.dumps()).decode()
    next(tmp_path.glob("asked-*")).unlink()
    # The same file elsewhere is the same subject: its published answers are used.
    assert len(work.Asker("elsewhere/some.gguf", None, tmp_path).log) == len(source.log)
    # Asked through another backend it is another one.
    assert len(work.Asker("transformers:elsewhere/some.gguf", None, tmp_path).log) == 0


def test_mode_takes_the_most_frequent_then_the_first() -> None:
    found = [*candidates(3, 5, 5, None), *candidates(9, 9, 1, 1, role="sample"), *candidates(4, role="reflection")]
    assert baseline("relation majority", found, [5.0], code=False) == Choice(1)
    assert baseline("self-consistency", found, [5.0], code=False) == Choice(4)
    assert baseline("raw", found, [5.0], code=False) == Choice(0)
    assert baseline("reflection", found, [5.0], code=False) == Choice(8)
    assert baseline("verifier", found, [3.2], code=False) == Choice(0)
    nothing = candidates(None, None, None, None)
    assert baseline("verifier", nothing, [5.0], code=False) == Choice()


def test_medoid_and_public_verifier() -> None:
    signatures = [(0.0, 0.0, 9.0), (1.0, 2.0, 3.0), (1.0, 2.0, 4.0), None]
    found = [AnswerCandidate("node", i, "", "", True, s) for i, s in enumerate(signatures)]
    assert baseline("relation majority", found, [1.0, 2.0, 4.0], code=True) == Choice(2)
    assert baseline("verifier", found, [1.0, 2.0, 4.0], code=True) == Choice(2)


def test_natural_repair_of_the_worked_outlier() -> None:
    tree = next(d for d in DESIGNS if d.name == "spanning_tree")
    found = natural_repair(tree, candidates(42, 42, 47, 42), [42.0], k=1, code=False)
    assert found is not None
    assert found.support == (2,)
    assert found.choice.value == (42.0,)
    assert found.edit == pytest.approx(5.0)
    assert natural_repair(tree, candidates(None, None, None, None), [42.0], k=1, code=False) is None


def test_marks_of_values_and_programs() -> None:
    item = arithmetic.items(1)[0]
    assert marks.mark_value(item, (float(item.answer),)).correct
    assert marks.mark_value(item, (item.answer * 100.0,)).error == 2.0
    assert not marks.mark_value(item, None).correct
    program = programs.items(1)[0]
    texts = [f"def solve(x, y):\n    return {body}\n" for body in ("abs(x - y)", "x - y")]
    found = [AnswerCandidate("node", i, t, "", True, None) for i, t in enumerate([*texts, "no program"])]
    right, wrong, none = marks.mark_candidates(program, found, work.sandbox())
    assert right.correct
    assert not wrong.correct
    assert 0 < wrong.error < 1
    assert none.error == 1.0


def test_replay_needs_a_right_answer_and_distinct_wrong_ones() -> None:
    item = arithmetic.items(1)[0]
    right = float(item.answer)
    found = candidates(right, right + 1, right + 1, right + 2)
    judged = [marks.mark_value(item, c.value) for c in found]
    assert replay.wrong_values(item, found, judged) == [(right + 1,), (right + 2,)]
    assert replay.wrong_values(item, found[1:], judged[1:]) == []
    rows = replay.replay_rows(item, [(right + 1,)], seed=0)
    assert [row["design"] for row in rows] == [d.name for d in DESIGNS]
    assert all(row["exact"] for row in rows if row["gamma_1"] > 0)
    assert rows == replay.replay_rows(item, [(right + 1,)], seed=0)


def test_a_program_that_fails_only_hidden_tests_is_not_replayed() -> None:
    program = programs.items(1)[0]
    truth = fields.truth(program)
    found = [AnswerCandidate("node", i, "", "", True, truth) for i in range(2)]
    judged = [marks.Mark(True, 0.0), marks.Mark(False, 0.1)]
    assert replay.wrong_values(program, found, judged) == []


def test_a_choice_tells_which_answer_it_returned() -> None:
    found = candidates(42.0, None, 47.0)
    assert Choice(2).told(found) == {"chosen": "node 2", "value": (47.0,)}
    assert Choice(1).told(found) == {"chosen": "node 1", "value": None}
    assert Choice(value=(43.0,)).told(found) == {"chosen": "", "value": (43.0,)}
    assert Choice().told(found) == {"chosen": "", "value": None}


def test_weights_decide_which_of_two_answers_a_repair_believes() -> None:
    """Two pairs that disagree: the repaired answer follows the pair of relations that weighs
    more.
    """
    tree = next(design for design in DESIGNS if design.name == "spanning_tree")
    found = [
        natural_repair(tree, candidates(1, 1, 2, 2), [1.0], k=1, code=False, weights=weights)
        for weights in ((100.0, 1.0, 1.0), (0.01, 1.0, 1.0))
    ]
    assert [one.support for one in found if one is not None] == [(2,), (0,)]


@pytest.fixture
def item() -> programs.AskedProgram:
    return programs.items(1)[0]


def test_only_the_evaluation_imports_hidden_tests() -> None:
    folder = Path(scenarios.real_model.__file__).parent
    readers = set()
    for path in [*folder.glob("*.py"), *folder.parent.rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            if "scenarios.real_model.hidden" in [module, *names] or (
                module == "scenarios.real_model" and "hidden" in names
            ):
                readers.add(path.name)
    assert readers == {"marks.py", "catalogue.py"}  # the catalogue is written when everything is evaluated
    early = [folder / name for name in ("fields.py", "choices.py", "answers.py", "../kit/designs.py", "programs.py")]
    assert not any(re.search(r"import.*\bcatalogue\b", path.read_text()) for path in early)


def test_everything_before_the_marks_works_without_hidden_tests(
    item: programs.AskedProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("hidden tests were read before the choices were made")

    monkeypatch.setattr(hidden, "hidden_tests", forbidden)
    monkeypatch.setattr(hidden, "hidden_truth", forbidden)
    log = fake.write_log(tmp_path / "log.gz", [item])
    found = fields.read(item, log)
    right = fields.truth(item)
    for name in choices.BASELINES:
        choices.baseline(name, found, right, code=True)
    for design in designs.DESIGNS:
        choices.natural_repair(design, found, right, k=1, code=True)
    with pytest.raises(AssertionError, match="hidden tests were read"):
        marks.mark_candidates(item, found, object())  # type: ignore[arg-type]


def test_prompts_and_anchors_do_not_change_with_the_hidden_tests(
    item: programs.AskedProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fake.write_log(tmp_path / "log.gz", [item])
    before = [request.document() for _, _, request in fields.requests(item, log, seed=0)], fields.truth(item)
    monkeypatch.setattr(hidden, "hidden_tests", lambda item: ([99, 98],) * 16)
    after = [request.document() for _, _, request in fields.requests(item, log, seed=0)], fields.truth(item)
    assert before == after


def test_no_test_stands_in_any_prompt() -> None:
    for item in programs.items():
        text = fake.request_texts([*answers.node_requests(item), *answers.sample_requests(item)])
        for arguments in hidden.hidden_tests(item):
            if len(str(arguments)) > 6:
                assert str(arguments)[1:-1] not in text


@pytest.fixture(scope="module")
def processed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    path: Path = tmp_path_factory.mktemp("log") / "answers.jsonl.gz"
    items = [*arithmetic.our_items(6), *programs.items(2)]
    log = fake.write_log(path, items)
    documents = []
    for item in items:
        box = work.sandbox() if isinstance(item, programs.AskedProgram) else None
        found = work.process(item, log, seed=0, budgets=(1,))
        documents.append({**found, "reread": recomputed.reread(item, log, seed=0, box=box)})
    return documents, {item.id: item for item in items}


def rows(table: Any) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_the_declared_rule_gives_the_protocols_own_outcome(processed: Any) -> None:
    for document in processed[0]:
        declared = document["reread"][0]
        assert declared["replay"] == document["replay"]
        own = {row["design"]: row["correct"] for row in document["repairs"] if row["k"] == 1}
        assert declared["repaired"] == {name: own[name] for name in recomputed.SHOWN}


def test_a_stricter_rule_reads_less_and_realises_smaller_margins(processed: Any) -> None:
    found = {row["rule"]: row for row in rows(recomputed.parsers(processed[0])) if row["task"] == "ours"}
    assert found["integer-strict"]["read"] < found["integer-last"]["read"]
    assert found["integer-strict"]["realised_γ"] < found["integer-last"]["realised_γ"]
    assert found["integer-last"]["missed"] == 0


@pytest.mark.parametrize("name", [d.name for d in designs.DESIGNS])
def test_a_realised_margin_with_every_node_is_the_designs_own(name: str) -> None:
    assert recomputed.realised(name, (0, 1, 2, 3)) == pytest.approx(designs.prepared(name, 1).gamma)
    assert recomputed.realised(name, (0,)) == 0.0


def test_two_read_nodes_of_a_complete_design_hide_one_error() -> None:
    assert recomputed.realised("typed_complete", (0, 1)) == 0.0
    assert recomputed.realised("typed_complete", (0, 1, 2)) > 0.5


def test_unit_weights_give_the_published_replay_and_others_move_margins_only_where_relations_count(
    processed: Any,
) -> None:
    documents, items = processed
    found = {(row["task"], row["weights"]): row for row in rows(recomputed.weightings(documents, items, seed=0))}
    for task in ("ours", "code"):
        own = [row for d in documents if d["task"] == task for row in d["replay"]]
        assert found[task, "unit"]["replayed_errors"] == len(own) // 10
        assert found[task, "unit"]["missed"] == found[task, "fixed energy"]["missed"] == 0
        assert found[task, "fixed energy"]["least_positive_γ"] < found[task, "unit"]["least_positive_γ"]
