from __future__ import annotations

import json

from scenarios.real import arithmetic, catalogue, programs


def test_every_answer_is_the_value_of_its_expression() -> None:
    table = catalogue.expressions([*arithmetic.items(16), *programs.items(1)])
    assert table.columns == ("item", "family", "expression", "answer", "scale", "shift")
    assert len(table.rows) == 16
    for _, _, expression, answer, _, _ in table.rows:
        assert eval(str(expression)) == answer


def test_references_agree_with_their_tests() -> None:
    item = programs.items(1)[0]
    (content,) = catalogue.programs_file([item, *arithmetic.items(1)]).values()
    line = json.loads(content)
    assert [item.family.reference(*arguments) for arguments in line["hidden"]] == line["hidden_reference"]
    assert len(line["public"]) == programs.PUBLIC_TESTS
    assert set(line["prompts"]) == set(programs.VARIANTS)


def test_nothing_is_written_where_there_is_nothing() -> None:
    assert catalogue.programs_file(arithmetic.items(1)) == {}
    assert catalogue.expressions(programs.items(1)).rows == ()
