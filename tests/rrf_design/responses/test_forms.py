from __future__ import annotations

import pytest

from rrf_design.responses import parsers
from rrf_design.responses.forms import AMBIGUOUS, NO_NUMBER, Form, written_forms


@pytest.mark.parametrize("form", written_forms(), ids=lambda form: f"{form.kind}-{form.text!a}-{form.decimal}")
def test_every_form_is_read_as_the_table_says(form: Form) -> None:
    assert form.reading() == form.reads
    # The same rule in a field of JSON, and never another number for integers.
    whole = parsers.get("integer" if form.decimal is None else {"name": "integer", "decimal": form.decimal}).parse(
        form.text
    )
    if whole.ok and form.reads not in (AMBIGUOUS, NO_NUMBER):
        assert whole.canonical == form.reads


def test_the_table_is_large_and_says_each_thing_once() -> None:
    table = written_forms()
    assert len(table) >= 200
    assert len({(form.text, form.decimal) for form in table}) == len(table)
    assert {AMBIGUOUS, NO_NUMBER} < {form.reads for form in table}
