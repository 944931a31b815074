from __future__ import annotations

from rrf_design.questions.entry_lines import lines_by_entry

TEXT = '''# a remark
[answer]
of = "a"

[[ask]]  # first
id = "a"
prompt = """
[[ask]]
id = "not this"
"""
[[ask]]
  id = "b"
prompt = \'\'\'x\'\'\'
cost = 1
'''


def test_lines_of_entries_and_keys() -> None:
    lines = lines_by_entry(TEXT)
    assert lines["answer", 0, "of"] == 3
    assert lines["ask", 0, ""] == 5
    assert lines["ask", 0, "prompt"] == 7
    assert lines["ask", 1, ""] == 11
    assert lines["ask", 1, "cost"] == 14
    assert ("ask", 2, "") not in lines


def test_json_has_no_lines() -> None:
    assert lines_by_entry('{"ask": [{"id": "a"}]}') == {}
