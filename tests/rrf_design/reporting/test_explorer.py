from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from rrf_design import Problem
from rrf_design.reporting import explorer
from rrf_design.reporting.explorer import carried, field_data
from rrf_design.reporting.fieldview import WORDS, FieldView

HOSTILE = "</pre><script>window.hacked = 1</script>\u202e"


def chain(count: int, *, name: str = "n") -> FieldView:
    nodes = [{"id": f"{name}{i}", **({"cost": 2.0} if i == 3 else {})} for i in range(count)]
    relations = [
        {"id": f"r{i}", "tail": f"{name}{i - 1}", "head": f"{name}{i}", "family": "same"} for i in range(1, count)
    ]
    anchors = [{"id": "a", "node": f"{name}5", "cost": 1.5}]
    problem = Problem(nodes=nodes, relations=relations, anchors=anchors)
    return FieldView(problem, ["a"], {f"{name}5": [0.6], f"{name}6": [-0.8]}, {f"{name}6"}, {f"{name}6": "off by 2"})


def test_the_data_says_what_the_tables_say() -> None:
    view = chain(9)
    data = field_data(view)
    assert data["nodes"] == [[i, f"n{i}"] for i in range(9)]
    assert data["costs"] == {3: 2.0}
    assert data["shares"] == pytest.approx({5: 0.36, 6: 0.64})
    assert data["wrong"] == [6]
    assert data["remarks"] == {"n6": "off by 2"}
    anchor = next(block for block in data["blocks"] if block[3] == -1)
    assert data["words"][anchor[1]] == "a"
    assert anchor[2] == [5]
    assert list(WORDS)[anchor[5]] == "bought"
    assert data["energies"][anchor[0]] == pytest.approx(view.energies["a"])
    waiting = next(block for block in data["blocks"] if 3 in block[2])
    assert list(WORDS)[waiting[5]] == "waiting"


def test_what_is_written_is_what_is_read_and_holds_no_markup() -> None:
    made = carried(chain(9, name=HOSTILE))
    assert made.count("<") == 2
    text = re.sub(r"^<pre[^>]*>|</pre>$", "", made)
    read: dict[str, Any] = json.loads(html.unescape(text))
    assert read["nodes"][0][1] == HOSTILE.replace("\u202e", "\\u202e") + "0"


def test_beyond_a_size_only_the_nearest_are_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "CARRIED", 20)
    data = field_data(chain(200))
    assert len(data["nodes"]) == 20
    assert {5, 6} <= {i for i, _ in data["nodes"]}
    assert data["all"] == 200
    inside = {i for i, _ in data["nodes"]}
    assert all(inside.issuperset(block[2]) for block in data["blocks"])
