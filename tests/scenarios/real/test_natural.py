from __future__ import annotations

from typing import Any

from scenarios.real.natural import variants


def document(*right: bool) -> dict[str, Any]:
    candidates = [
        {"role": "node", "number": n, "text": "", "status": "parsed", "strict": True, "value": [1.0] if n else None}
        for n in range(4)
    ]
    return {"task": "ours", "candidates": candidates, "marks": [{"correct": ok} for ok in right]}


def test_variants_by_hand() -> None:
    table = variants([document(False, True, True, True), document(False, False, False, True)])
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["right"] for row in rows] == [0.0, 50.0, 50.0, 100.0]
    assert [row["readable"] for row in rows] == [0.0, 100.0, 100.0, 100.0]
    assert [row["only_wrong_here"] for row in rows] == [1, 0, 0, 0]
    assert [row["only_right_here"] for row in rows] == [0, 0, 0, 1]
