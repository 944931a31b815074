"""The invoices of the documentation, as a recipe in the short form with its table."""

from __future__ import annotations

from pathlib import Path

import pytest

RECIPE = '''[data]
table = "invoices.csv"
id = "no"
gold = "booked"

[models]
mini = { use = "scripted:mini.json", max_tokens = 200 }
other = "scripted:other.json"

[answer]
of = "total"
tolerance = 0.005

[[ask]]
id = "total"
prompt = """{{ text }}
[[ask]] Return JSON only: {"total": gross amount}"""
parse = { json = "total" }

[[ask]]
id = "reworded"
like = "total"
prompt = "What must be paid in all? {{ text }}"
model = ["mini", "other"]
repeat = 2

[[ask]]
id = "cents"
like = "total"
prompt = "How many cents? {{ text }}"
change = { scale = 100, shift = "{{ fee }}" }
cost = 0.01
buy = "if needed"

[[ask]]
id = "parts"
prompt = "{{ text }} JSON: net and tax"
parse = { json = ["net", "tax"] }
sums_to = "total"

[[check]]
id = "clerk"
of = "total"
by = { person = "Gross total of invoice {{ no }}" }
cost = "{{ minutes }}"

[[check]]
id = "ledger"
of = "total"
by = { value = "{{ ledger }}" }
when = "{{ ledger }}"
may_be_wrong = true

[[check]]
id = "sum"
of = "total"
by = { expression = "net + {{ tax }}" }
cost = 0.5

[promise]
risk = 0.02
'''
TABLE = """no,text,booked,ledger,fee,minutes,net,tax
007,Net 100 tax 19,119,119.00,0,2,100,19
008,Pay {{ no }} {now},5,,25,2,4.20,0.80
009,Nothing,0,0,0,3,0,0
"""


@pytest.fixture
def invoices(tmp_path: Path) -> Path:
    """The folder with rrf.toml and invoices.csv."""
    (tmp_path / "rrf.toml").write_text(RECIPE, encoding="utf-8")
    (tmp_path / "invoices.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path
