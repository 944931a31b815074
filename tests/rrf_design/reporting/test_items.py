from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rrf_design import Problem
from rrf_design.documents import sealed
from rrf_design.reporting.delivery import delivery_page
from rrf_design.reporting.documents import read, render
from rrf_design.reporting.items import batch_delivery, run_delivery

HOSTILE = '"><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1"></pre>'


@pytest.fixture
def many(live: dict[str, Any]) -> dict[str, Any]:
    items = [{**live["items"][0], "item": f"item {i}"} for i in range(3)]
    purchases = [{**purchase, "item": item["item"]} for item in items for purchase in live["purchases"]]
    verdicts = dict.fromkeys(live["verdicts"], 0) | {live["verdict"]: 3}
    return {**live, "items": items, "purchases": purchases, "verdicts": verdicts}


def answers(text: str) -> list[dict[str, Any]]:
    return [
        {
            "item": "item 1",
            "node": "original",
            "request": {"prompt": f"prompt of item 1 {text}"},
            "reply": {"text": f"raw text of item 1 {text}", "outcome": "answered"},
            "parsed": {"canonical": f"label {text}", "status": "parsed"},
        }
    ]


def test_a_run_has_a_row_for_every_item_and_its_story_behind_it(many: dict[str, Any]) -> None:
    made = run_delivery(many, answers(""))
    assert [row[0] for row in made["rows"]] == ["item 0", "item 1", "item 2"]
    assert {row[1] for row in made["rows"]} == {many["verdict"]}
    price = sum(purchase["price"] for purchase in many["purchases"]) / 3
    assert made["rows"][0][made["columns"].index("cost")] == pytest.approx(price)
    headings = [part["heading"] for part in made["details"][1]]
    assert headings[:3] == ["Why", "Answers", "What was bought, and why"]
    assert "original: asked" in headings
    assert "original: asked" not in [part["heading"] for part in made["details"][0]]
    bought = made["details"][1][2]["rows"]
    assert len(bought) == len(many["purchases"]) / 3
    assert any("was seen least" in row[5] for row in bought)


def test_an_item_without_a_repair_is_a_row_too(many: dict[str, Any]) -> None:
    items = [many["items"][0], {**many["items"][1], "repair": None, "verdict": "incomplete", "assumes": ""}]
    made = run_delivery({**many, "items": items})
    assert made["rows"][1][1:4] == ["incomplete", "", ""]
    assert "Every item" in render(read({**many, "items": items}))


def test_many_repairs_have_a_page(repaired: dict[str, Any]) -> None:
    items = [{"field": name, **repaired} for name in ("first", "second")]
    verdicts = {"certified": 0, "ambiguous": 0, "incomplete": 0, "contradicted": 0} | {repaired["verdict"]: 2}
    content = {"verdict": repaired["verdict"], "verdicts": verdicts, "failures": {}, "items": items}
    document = sealed("rrf-repair-batch", content)
    made = batch_delivery(document)
    assert [row[0] for row in made["rows"]] == ["first", "second"]
    assert made["rows"][0][3] == "tripled"
    rows = {row[0]: row for row in made["details"][0][1]["rows"]}
    assert rows["tripled"][1:] == ["17", "", "15", "wrong"]
    assert rows["isolate"][4] == "refusal"
    assert made["head"]["sentence"] in render(read(document))


def test_the_story_opens_and_no_text_of_a_model_is_markup(
    open_page: Callable[..., Any], many: dict[str, Any], problem: Problem
) -> None:
    source = replace(read(many, problem={"item 1": problem}), answers=answers(HOSTILE))
    view = open_page(render(source))
    view.locator("tr.opens", has_text="item 1").click()
    behind = view.locator("dialog").inner_text()
    assert "prompt of item 1" in behind
    assert "raw text of item 1" in behind
    assert "<script>window.hacked" in behind
    assert view.evaluate("window.hacked") is None
    assert view.locator("script").count() == 1
    assert view.locator("img").count() == 0
    view.keyboard.press("Escape")


def test_a_run_of_many_fits_a_phone(open_page: Callable[..., Any], many: dict[str, Any]) -> None:
    view = open_page(delivery_page(run_delivery(many, answers("x " * 400))), width=360, height=740)
    assert view.evaluate("document.documentElement.scrollWidth") <= 360
