"""Runs, repairs and delivered tables as item tables, and their page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from rrf_design import Problem
from rrf_design.documents import sealed
from rrf_design.errors import InputError
from rrf_design.reporting import delivery
from rrf_design.reporting.delivery import _batch_delivery, delivery_page, run_delivery
from rrf_design.reporting.documents import read, render
from rrf_design.verdict import Verdict

Open = Callable[..., Any]
HOSTILE = '"><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1"></pre>\u202e'
VERDICTS = [verdict.value for verdict in Verdict]


def document(count: int = 30, *, text: str = "text", **head: Any) -> dict[str, Any]:
    rows = [
        [f"no {i}", 11879.56 + i, VERDICTS[1 + i % 4], None if i % 3 else (i * 7) % count, f"{text} {i}"]
        for i in range(count)
    ]
    details = [
        [
            {"heading": "prompt", "text": f"What is {i}? {text}"},
            {"heading": "bought", "columns": ["what", "price"], "rows": [["a", 0.25], [text, i]]},
        ]
        for i in range(count)
    ]
    verdicts = {name: sum(row[2] == name for row in rows) for name in VERDICTS}
    found = {"title": "Invoices", "sentence": "Some may be used.", "verdicts": verdicts, **head}
    columns = ["no", "answer", "verdict", "rank", "reason"]
    return sealed("rrf-item-table", {"head": found, "columns": columns, "rows": rows, "details": details})


def carried(text: str) -> dict[str, Any]:
    found = re.search(r'<pre class="data" hidden>(.*?)</pre>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(unescape(found[1]))
    return data


def test_the_sentence_leads_and_every_row_is_carried_with_its_digits() -> None:
    made = delivery_page(document(120, figures=[["cost", 1234567.89, "in all"]]))
    assert made.index("Some may be used.") < made.index("Every item")
    assert "1234567.89" in made
    data = carried(made)
    assert len(data["rows"]) == len(data["details"]) == 120
    assert data["rows"][0][1] == 11879.56
    assert "… and 70 more" in made
    assert made == render(read(document(120, figures=[["cost", 1234567.89, "in all"]])))


def test_rows_that_do_not_fit_are_named() -> None:
    broken = document(3)
    broken["rows"][1] = broken["rows"][1][:2]
    with pytest.raises(InputError, match="row 2 has 2 cells, there are 5 columns"):
        delivery_page(broken)
    with pytest.raises(InputError, match="1 details for 3 rows"):
        delivery_page({**document(3), "details": [None]})


def test_what_does_not_fit_into_a_page_is_left_out_last_where_it_is_needed_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = document(8)
    whole = sum(len(json.dumps(part)) for part in data["details"])
    monkeypatch.setattr(delivery, "CARRIED", whole // 2)
    made = delivery_page(data)
    kept = [row[2] for row, part in zip(data["rows"], carried(made)["details"], strict=True) if part]
    assert set(kept) == {"contradicted", "incomplete"}
    assert "what lies behind 4 items is in the document only" in made


def test_a_page_that_grows_loads_itself_anew() -> None:
    assert '<meta http-equiv="refresh" content="5">' in delivery_page(document(refresh=5))
    assert "refresh" not in delivery_page(document())


def test_items_can_be_filtered_searched_sorted_and_opened(open_page: Open) -> None:
    view = open_page(delivery_page(document(300)))
    pane = view.locator(".pane")
    assert view.locator(".count").inner_text() == "300 items"
    assert 10 < pane.locator("tbody tr.opens").count() < 120
    view.get_by_role("button", name="contradicted 75").click()
    assert view.locator(".count").inner_text() == "75 of 300 items"
    assert set(pane.locator("td.verdict").all_inner_texts()) == {"contradicted"}
    view.get_by_role("button", name="all 300").click()
    view.get_by_label("Search").fill("what is 123?")  # said only behind the item
    view.locator(".count", has_text=re.compile("^1 of 300 items$")).wait_for()
    pane.locator("tr.opens").click()
    behind = view.locator("dialog")
    assert "What is 123? text" in behind.inner_text()
    assert "0.25" in behind.inner_text()
    view.keyboard.press("Escape")
    assert not behind.is_visible()
    view.get_by_label("Search").fill("")
    view.locator(".count", has_text=re.compile("^300 items$")).wait_for()
    rank = pane.locator("th", has_text="rank")
    rank.click()
    first = [float(text) for text in pane.locator("tr.opens td:nth-child(4)").all_inner_texts()[:8]]
    assert first == sorted(first)
    rank.press("Enter")
    last = [float(text) for text in pane.locator("tr.opens td:nth-child(4)").all_inner_texts()[:8]]
    assert last == sorted(last, reverse=True)  # what has no rank comes last, either way
    assert last[0] > first[-1]


def test_a_hundred_thousand_rows_stay_usable(open_page: Open) -> None:
    data = document(100_000)
    view = open_page(delivery_page({**data, "details": None}))
    assert view.evaluate("document.getElementsByTagName('*').length") < 1500
    view.locator(".pane").evaluate("pane => { pane.scrollTop = pane.scrollHeight; }")
    view.locator("td", has_text="text 99999").wait_for()
    view.get_by_label("Search").fill("no 77777")
    view.locator(".count", has_text=re.compile("^1 of 100000 items$")).wait_for()
    assert view.evaluate("document.getElementsByTagName('*').length") < 1500


def test_a_row_in_the_middle_is_where_the_scroll_bar_says(open_page: Open) -> None:
    view = open_page(delivery_page(document(5000)))
    view.locator(".pane").evaluate("pane => { pane.scrollTop = (pane.scrollHeight - pane.clientHeight) / 2; }")
    view.locator("td", has_text="text 2500").wait_for()
    inside = view.locator(".pane").evaluate(
        "pane => Array.from(pane.querySelectorAll('tr.opens')).filter(row => { const box = row.getBoundingClientRect(),"
        " frame = pane.getBoundingClientRect(); return box.top > frame.top && box.bottom < frame.bottom; }).map(row =>"
        " parseInt(row.cells[0].textContent.slice(3)))"
    )
    assert len(inside) > 5
    assert all(2400 < place < 2600 for place in inside)


def test_no_cell_and_no_detail_can_inject_markup(open_page: Open) -> None:
    hostile = document(60, text=HOSTILE, title=HOSTILE, sentence=HOSTILE, notes=[HOSTILE], facts=[[HOSTILE, HOSTILE]])
    hostile["columns"] = ["no", HOSTILE, "verdict", "rank", "reason"]
    view = open_page(delivery_page(hostile))
    view.locator("tr.opens").first.click()
    assert "<script>window.hacked" in view.locator("dialog").inner_text()
    assert view.evaluate("window.hacked") is None
    assert view.locator("script").count() == 1
    assert view.locator("img").count() == 0
    assert "\u202e" not in view.locator("body").inner_text()


def test_it_fits_a_phone_and_prints(open_page: Open) -> None:
    view = open_page(delivery_page(document(2000)), width=360, height=740)
    assert view.evaluate("document.documentElement.scrollWidth") <= 360
    view.locator("tr.opens").first.click()
    assert view.locator("dialog").bounding_box()["width"] <= 360
    view.keyboard.press("Escape")
    view.emulate_media(media="print")
    view.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert view.locator(".pane tbody tr").count() == 1000
    assert "the first 1000 are printed" in view.locator(".count").inner_text()
    view.emulate_media(media="screen")
    view.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert view.locator(".pane tbody tr").count() < 100


def test_the_first_rows_are_there_without_the_script(browser: Any, tmp_path: Any) -> None:
    (tmp_path / "p.html").write_text(delivery_page(document(60)), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    view = context.new_page()
    view.goto((tmp_path / "p.html").as_uri())
    assert view.locator("tbody tr").count() == 50
    assert view.get_by_text("… and 10 more").is_visible()
    context.close()


HOSTILE_ITEM = '"><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1"></pre>'


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
    verdicts = {"checked": 0, "consistent": 0, "ambiguous": 0, "incomplete": 0, "contradicted": 0} | {
        repaired["verdict"]: 2
    }
    content = {"verdict": repaired["verdict"], "verdicts": verdicts, "failures": {}, "items": items}
    document = sealed("rrf-repair-batch", content)
    made = _batch_delivery(document)
    assert [row[0] for row in made["rows"]] == ["first", "second"]
    assert made["rows"][0][3] == "tripled"
    rows = {row[0]: row for row in made["details"][0][1]["rows"]}
    assert rows["tripled"][1:] == ["17", "", "15", "wrong"]
    assert rows["isolate"][4] == "refusal"
    assert made["head"]["sentence"] in render(read(document))


def test_the_story_opens_and_no_text_of_a_model_is_markup(
    open_page: Callable[..., Any], many: dict[str, Any], problem: Problem
) -> None:
    source = replace(read(many, problem={"item 1": problem}), answers=answers(HOSTILE_ITEM))
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
