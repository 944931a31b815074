"""Promises about a hostile table: markup in file names, columns, ids, nodes, checks, models, values
and truths, through every verb, on every page, in a real browser.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from rrf_design.cli import main
from rrf_design.reporting.documents import read, render

HACK = "<img src=x onerror='window.hacked = 1'><b>"
"""For names of files and nodes, which take no slash; the truths hold a whole script."""
SCRIPT = '"><script>window.hacked = 1</script><svg onload="window.hacked = 1">'
ITEMS = 60
RECIPE = f"""[data]
table = "t{HACK}.jsonl"
id = "no{HACK}"
gold = "gold{HACK}"

[models]
"m{HACK}" = {{ use = "scripted:script.json" }}

[answer]
of = "total{HACK}"
k = 1

[[ask]]
id = "total{HACK}"
prompt = "{{{{ text }}}} total"
parse = "label"
model = "m{HACK}"
cost = 1.0

[[ask]]
id = "again{HACK}"
like = "total{HACK}"
prompt = "{{{{ text }}}} again"
parse = "label"
model = "m{HACK}"
cost = 1.0

[[check]]
id = "clerk{HACK}"
of = "total{HACK}"
by = {{ person = "{{{{ text }}}}?" }}
cost = 30.0

[promise]
risk = 0.3
confidence = 0.9
pilot = 20
"""


def called(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages as the verbs write them."""
    folder = tmp_path_factory.mktemp("hostile")
    name, delivered = f"r{HACK}.toml", f"d{HACK}.jsonl"
    (folder / name).write_text(RECIPE)
    rows = [
        {f"no{HACK}": f"i{n}{SCRIPT}", "text": f"text {n}{SCRIPT}", f"gold{HACK}": f"v{n}{SCRIPT}"}
        for n in range(ITEMS)
    ]
    (folder / f"t{HACK}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rules = [
        {"prompt": f"{row['text']} {ask}", "text": row[f"gold{HACK}"] if (n + shift) % 9 else f"other {n} {SCRIPT}"}
        for shift, ask in enumerate(("total", "again"))
        for n, row in enumerate(rows)
    ]
    (folder / "script.json").write_text(json.dumps({"rules": rules}))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert called("pilot", name, "--cache", "off", "--order", "holm", "-o", "policy.json") == 0
        run = ("acquire", name, "--cache", "off", "--policy", "policy.json", "-o", delivered, "-o", "run.json")
        assert called(*run, "-o", "run.html") in (0, 1)
        assert called("audit", delivered, "--recipe", name, "--labels", "20", "-o", "audit.json") in (0, 1)
        for kind in ("policy", "audit"):
            assert called("verify", f"{kind}.json") == 0
            assert called("report", f"{kind}.json", "-o", f"{kind}.html") == 0
        assert called("report", "last", "-o", "journal.html") == 0
    made = {kind: (folder / f"{kind}.html").read_text() for kind in ("policy", "run", "audit", "journal")}
    return made | {"document": render(read(json.loads((folder / "run.json").read_text())))}


@pytest.mark.parametrize("kind", ["policy", "run", "audit", "journal", "document"])
def test_nothing_runs_and_the_text_is_shown(open_page: Any, pages: dict[str, str], kind: str) -> None:
    view = open_page(pages[kind])
    assert view.evaluate("window.hacked") is None
    assert (view.locator("script").count(), view.locator("img").count()) == (1, 0)
    assert "<img src=x onerror=" in view.locator("body").inner_text()
    assert "window.hacked" in view.title() or kind == "journal"


@pytest.mark.parametrize("kind", ["policy", "run", "audit"])
def test_promises_fit_a_phone(open_page: Any, pages: dict[str, str], kind: str) -> None:
    view = open_page(pages[kind], width=360, height=740)
    assert view.evaluate("document.documentElement.scrollWidth") <= 360


def test_documents_keep_what_they_were_given(pages: dict[str, str]) -> None:
    assert all(f"t{HACK}" not in page for page in pages.values())  # as markup
