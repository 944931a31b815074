"""The pages in a real browser: they render, log nothing, react, print, fit a phone, and can't be
injected into.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rrf_design import Problem, certify, frontier, plan
from rrf_design._explain import explain
from rrf_design.reporting._charts import Series, step_chart
from rrf_design.reporting._fieldview import FieldView
from rrf_design.reporting._graph import draw_field
from rrf_design.reporting.designs import comparison_page
from rrf_design.reporting.documents import read, render
from rrf_design.reporting.pages import figure, page, section, table

Open = Callable[..., Any]
HOSTILE = '"><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


@pytest.fixture(scope="module")
def design(problem: Problem) -> str:
    return render(read(explain(problem, ["a3"], by_budget=True)))


def test_a_design_renders_and_reacts(open_page: Open, design: str) -> None:
    view = open_page(design)
    field = view.locator(".field")
    assert view.locator("h1").inner_text() == "small field"
    node = view.locator("svg .node", has_text="tripled").first
    node.hover()
    assert "dimmed" in field.get_attribute("class")
    assert "node tripled" in view.locator(".detail").inner_text()
    lit = view.locator("svg .lit").count()
    assert 0 < lit < view.locator("svg [data-nodes]").count()
    view.locator("h1").hover()
    assert "dimmed" not in field.get_attribute("class")


def test_the_keyboard_reaches_the_drawing(open_page: Open, design: str) -> None:
    view = open_page(design)
    view.locator("svg [data-key]").first.focus()
    assert "dimmed" in view.locator(".field").get_attribute("class")
    view.keyboard.press("Tab")
    assert "relation" in view.locator(".detail").inner_text()


def test_the_keyboard_can_skip_the_drawing(open_page: Open, design: str) -> None:
    view = open_page(design)
    view.get_by_role("button", name="Show").focus()
    view.keyboard.press("Tab")
    skip = view.get_by_role("button", name="Skip the drawing")
    assert skip.bounding_box()["width"] > 40
    view.keyboard.press("Enter")
    assert view.evaluate("document.activeElement.tagName") == "FIGCAPTION"
    assert skip.bounding_box()["width"] < 5


def test_what_is_on_sale_can_be_hidden(open_page: Open, design: str) -> None:
    view = open_page(design)
    dashed = view.locator("svg g.sale").first
    assert dashed.is_visible()
    view.get_by_label("what is still on sale").uncheck()
    assert not dashed.is_visible()


def test_a_row_lights_its_place_in_the_drawing(open_page: Open, design: str) -> None:
    view = open_page(design)
    view.locator("tr[data-key]").first.hover()
    assert view.locator("svg .lit").count() > 0


def test_tables_can_be_searched_and_sorted(open_page: Open) -> None:
    view = open_page(
        page(
            "t",
            [section("s", table(["name", "value"], [[f"row {i}", str((i * 7) % 20)] for i in range(20)], right=[1]))],
        )
    )
    view.locator("input.filter").fill("row 13")
    assert view.locator("tbody tr:visible").count() == 1
    view.locator("input.filter").fill("")
    view.locator("th").nth(1).click()
    values = [float(text) for text in view.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert values == sorted(values)
    view.locator("th").nth(1).press("Enter")
    values = [float(text) for text in view.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert values == sorted(values, reverse=True)


def test_no_text_can_inject_markup(open_page: Open, hostile: Problem) -> None:
    designs = [read(explain(hostile, selected, mend=False)) for selected in ((), ("both",))]
    for text in (render(read(explain(hostile))), comparison_page(designs[0], designs[1])):
        view = open_page(text)
        assert view.evaluate("window.hacked") is None
        assert view.locator("script").count() == 1
        assert view.locator("img").count() == 0
        assert "<script>window.hacked" in view.locator("body").inner_text()


def test_no_answer_of_a_model_can_inject_markup(
    open_page: Open, problem: Problem, live: dict[str, Any], repaired: dict[str, Any]
) -> None:
    hostile = {**repaired, "reason": HOSTILE, "erased": {"isolate": HOSTILE}, "notes": [HOSTILE], "method": HOSTILE}
    odd = {
        **live,
        "stopped_because": HOSTILE,
        "detail": HOSTILE,
        "header": {"name": HOSTILE, "model": HOSTILE, "identity": {HOSTILE: HOSTILE}},
    }
    for document in (hostile, odd):
        view = open_page(render(read(document, problem=problem)))
        assert view.evaluate("window.hacked") is None
        assert view.locator("script").count() == 1
        assert view.locator("img").count() == 0


def test_even_markup_that_slipped_through_could_not_run(browser: Any, tmp_path: Any) -> None:
    text = page("t", []).replace(
        "</main>", "<script>window.hacked = 1</script><b onclick='window.hacked = 1'>x</b></main>"
    )
    (tmp_path / "p.html").write_text(text, encoding="utf-8")
    view = browser.new_page()
    view.goto((tmp_path / "p.html").as_uri())
    view.locator("b").click()
    assert view.evaluate("window.hacked") is None
    view.close()


def test_nothing_is_wider_than_a_phone(open_page: Open, design: str, problem: Problem) -> None:
    chart = figure(step_chart(Series("s", [0, 1, 2], [0, 1, 2.0]), "margin", x_label="money"), caption="c")
    for text in (design, page("t", [section("s", chart)])):
        view = open_page(text, width=360, height=740)
        assert view.evaluate("document.documentElement.scrollWidth") <= 360
        sizes = view.evaluate(
            "Array.from(document.querySelectorAll('svg text')).map(t => parseFloat(getComputedStyle(t).fontSize) *"
            " Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b))"
        )
        assert min(sizes) >= 9.5


def test_it_prints(open_page: Open, design: str) -> None:
    view = open_page(design)
    view.emulate_media(media="print")
    assert not view.locator(".controls").is_visible()
    view.locator("[data-act=in]").evaluate("button => button.click()")
    zoomed = view_box(view)
    view.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert view_box(view)[2] > zoomed[2]  # paper shows the whole drawing
    view.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert view_box(view) == zoomed
    assert view.pdf(format="A4")[:5] == b"%PDF-"


def test_a_field_of_ten_thousand_nodes_is_usable(open_page: Open) -> None:
    count = 10_000
    nodes = [{"id": f"n{i}"} for i in range(count)]
    relations = [{"id": f"r{i}", "tail": f"n{i // 3}", "head": f"n{i}"} for i in range(1, count)]
    anchors = [{"id": f"a{i}", "node": f"n{i}", "cost": 1.0} for i in range(0, count, 50)]
    view_of = FieldView(
        Problem(nodes=nodes, relations=relations, anchors=anchors), ["a50"], {"n500": [0.6], "n501": [-0.8]}
    )
    view = open_page(page("large", [section("field", draw_field(view_of))]))
    assert view.evaluate("document.getElementsByTagName('*').length") < 6000
    node = view.locator("svg .node.witness").first
    node.focus()
    assert "of the witness" in view.locator(".detail").inner_text()
    assert "60 of 10" in view.locator("figcaption").inner_text()
    first = view.locator("table.follows tbody").first.inner_text()

    view.get_by_label("Find a node").fill("n7777")
    assert view.locator("datalist option").first.get_attribute("value") == "n7777"
    view.keyboard.press("Enter")
    assert "neighbourhood of n7777: 60 of 10" in view.locator("figcaption").inner_text()
    assert view.locator("svg .node.centre text").first.text_content() == "n7777"
    assert view.locator(".drawing .node").count() == 60
    rows = view.locator("table.follows").first.locator("tbody tr")
    assert rows.count() == 60
    assert rows.filter(has_text="n7777").count() == 1
    assert view.evaluate("document.getElementsByTagName('*').length") < 6000

    other = view.locator("svg .node", has_text="n2592")  # by the keyboard alone
    other.focus()
    view.keyboard.press("Enter")
    assert "neighbourhood of n2592" in view.locator("figcaption").inner_text()
    view.get_by_label("Nodes drawn").select_option("30")
    assert view.locator(".drawing .node").count() == 30
    view.get_by_label("Find a node").fill("no such node")
    view.get_by_role("button", name="Show").click()
    assert "No node has" in view.locator(".detail").inner_text()
    view.get_by_role("button", name="Back to the witness").click()
    assert "around the witness" in view.locator("figcaption").inner_text()
    assert view.locator(".drawing .node.witness").count() == 2
    assert view.locator("table.follows tbody").first.inner_text() == first


def test_a_large_field_with_hostile_names_is_explored_as_text(open_page: Open) -> None:
    nodes = [{"id": f"{HOSTILE}{i}"} for i in range(130)]
    relations = [
        {"id": f"{HOSTILE}r{i}", "tail": f"{HOSTILE}{i - 1}", "head": f"{HOSTILE}{i}", "family": HOSTILE}
        for i in range(1, 130)
    ]
    remarks = {f"{HOSTILE}77": HOSTILE}
    view_of = FieldView(Problem(nodes=nodes, relations=relations), (), {f"{HOSTILE}3": [1.0]}, (), remarks)
    view = open_page(page("large", [section("field", draw_field(view_of))]))
    view.get_by_label("Find a node").fill(f"{HOSTILE}77")
    view.keyboard.press("Enter")
    assert "<script>window.hacked" in view.locator("figcaption").inner_text()
    assert view.locator(".drawing .node").count() == 60
    assert view.evaluate("window.hacked") is None
    assert view.locator("img").count() == 0
    assert view.locator("script").count() == 1


def view_box(view: Any) -> list[float]:
    return [float(part) for part in view.locator(".field .drawing svg").get_attribute("viewBox").split()]


OVERLAPPING = """() => Array.from(document.querySelectorAll("svg")).flatMap((svg) => {
  const shown = Array.from(svg.querySelectorAll("text")).filter((text) => getComputedStyle(text).visibility === "visible");
  const boxes = shown.map((text) => [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
  return boxes.flatMap(([words, a], i) => boxes.slice(i + 1).filter(([, b]) => (
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1.5
  )).map(([others]) => `${words} / ${others}`));
})"""


def test_a_field_carries_values_and_no_text_stands_over_another(open_page: Open, repaired: dict[str, Any]) -> None:
    count = 40
    nodes = [{"id": f"a node with a long name {i}"} for i in range(count)]
    relations = [
        {"id": f"r{i}", "tail": nodes[i // 2]["id"], "head": nodes[i]["id"], "transport": {"scale": 100.0}}
        for i in range(1, count)
    ]
    said = {node["id"]: ("Addis Ababa, Ethiopia", "Cairo") for node in nodes}
    crowd = FieldView(
        Problem(nodes=nodes, relations=relations), (), {nodes[3]["id"]: [1.0]}, {nodes[7]["id"]}, {}, said
    )
    for width in (1400, 390):
        view = open_page(page("crowd", [section("field", draw_field(crowd))]), width=width)
        assert view.evaluate(OVERLAPPING) == []
        assert view.locator("svg text.crossed").first.text_content() == "Addis Ababa, Ethi…"
        assert view.locator("svg text.became").first.text_content() == "→ Cairo"
        assert view.locator("svg text:visible").count() > count


def test_every_page_begins_with_its_sentence_and_a_picture(
    open_page: Open, problem: Problem, live: dict[str, Any], repaired: dict[str, Any]
) -> None:
    made = plan(problem, budget=3.0)
    certificate = certify(problem, made.selected).document
    documents = [made, frontier(problem), certificate, repaired, live]
    for document in documents:
        for owner in (problem, None):
            view = open_page(render(read(document, problem=owner)), width=1400)
            top = "document.querySelector('main svg').getBoundingClientRect().top + window.scrollY"
            assert view.evaluate(top) < 900
            assert view.locator(".callout p").first.inner_text().endswith(".")
            assert view.evaluate(OVERLAPPING) == []


def test_the_drawing_zooms_and_moves(open_page: Open, design: str) -> None:
    view = open_page(design)
    whole = view_box(view)
    view.get_by_role("button", name="Zoom in").click()
    near = view_box(view)
    assert near[2] == pytest.approx(whole[2] / 1.4, rel=1e-2)
    view.locator(".field .drawing svg").focus()
    view.keyboard.press("ArrowRight")
    assert view_box(view)[0] > near[0]
    view.keyboard.press("+")
    assert view_box(view)[2] < near[2]
    box = view.locator(".field .drawing svg").bounding_box()
    before = view_box(view)
    view.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    view.mouse.down()
    view.mouse.move(box["x"] + box["width"] / 2 + 40, box["y"] + box["height"] / 2 + 20, steps=4)
    view.mouse.up()
    assert view_box(view)[0] < before[0]
    assert "dimmed" not in (view.locator(".field").get_attribute("class") or "").split()
    view.keyboard.press("0")
    assert view_box(view) == whole
    assert view.get_by_role("button", name="Zoom out").is_disabled()
    view.mouse.move(box["x"] + 5, box["y"] + 5)
    view.keyboard.down("Control")
    view.mouse.wheel(0, -300)
    view.keyboard.up("Control")
    view.wait_for_function("document.querySelector('.field .drawing svg').classList.contains('zoomed')")


def test_a_node_is_found_by_its_name(open_page: Open, design: str) -> None:
    view = open_page(design)
    view.get_by_label("Find a node").fill("trip")
    view.get_by_role("button", name="Show").click()
    assert "node tripled" in view.locator(".detail").inner_text()
    assert "dimmed" in view.locator(".field").get_attribute("class")
