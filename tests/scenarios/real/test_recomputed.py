"""The sensitivity audits against the protocol itself: under the declared rule and unit weights both must say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake
import pytest

from scenarios.real import arithmetic, designs, programs, recomputed, work


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
