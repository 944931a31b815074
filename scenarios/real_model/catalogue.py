"""The items themselves, as tables: expressions with their constants, functions with their tests and
references.

Written when everything has been evaluated; hidden tests are part of it, so that whoever repeats the
protocol has the very same ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from scenarios.kit import Table
from scenarios.kit.report import compressed
from scenarios.real_model import programs
from scenarios.real_model.answers import Item
from scenarios.real_model.arithmetic import AskedExpression

PROGRAMS = "programs.jsonl.gz"


def expressions(items: Iterable[Item]) -> Table:
    """Expression, exact answer, scale and shift of every arithmetic item."""
    columns = ("item", "family", "expression", "answer", "scale", "shift")
    rows = [
        dict(zip(columns, (i.id, i.family, i.text, i.answer, i.scale, i.shift), strict=True))
        for i in items
        if isinstance(i, AskedExpression)
    ]
    return Table.of("catalogue", rows, shown=8, columns=columns)


def programs_file(items: Iterable[Item]) -> dict[str, bytes]:
    """One line per function: its prompts, public and hidden inputs, and what the reference returns
    for each.
    """
    from scenarios.real_model.hidden import hidden_tests, hidden_truth

    lines = [
        json.dumps(
            {
                "item": i.id,
                "family": i.family.name,
                "prompts": {variant: programs.prompt(i.family, variant) for variant in programs.VARIANTS},
                "public": [list(arguments) for arguments in i.public],
                "public_reference": list(i.truth()),
                "hidden": [list(arguments) for arguments in hidden_tests(i)],
                "hidden_reference": list(hidden_truth(i)),
            }
        )
        for i in items
        if isinstance(i, programs.AskedProgram)
    ]
    return {PROGRAMS: compressed("\n".join(lines) + "\n")} if lines else {}
