from __future__ import annotations

from scenarios.real.inference import margins, question, strata


def test_margins_that_differ_by_rounding_are_tied() -> None:
    rows = [{"gamma_1": value} for value in (1.414213562373095, 1.4142135623730951, 0.0, 1.4142)]
    found = margins(rows)
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_items_of_one_function_are_one_question() -> None:
    rows = [
        {"stratum": "code, a", "task": "code", "family": "digit_sum", "item": "code-3"},
        {"stratum": "code, a", "task": "code", "family": "digit_sum", "item": "code-19"},
        {"stratum": "code, b", "task": "code", "family": "digit_sum", "item": "code-3"},
        {"stratum": "mathematics, a", "task": "mathematics", "family": "squares", "item": "math-1"},
        {"stratum": "mathematics, a", "task": "mathematics", "family": "squares", "item": "math-9"},
    ]
    assert len({question(row) for row in rows}) == 4


def test_intervals_do_not_shrink_when_a_question_is_asked_again() -> None:
    """Copies of a question's rows add rows and items, and leave the interval as it is."""
    rows = [
        {
            "stratum": "code, a",
            "task": "code",
            "family": f"{family}",
            "item": f"{family}",
            "gamma_1": float(place),
            "error": float((place * (family + 1)) % 4),
        }
        for family in range(6)
        for place in range(4)
    ]
    again = [{**row, "item": f"{row['item']} again"} for row in rows]
    once, twice = (strata(own, draws=50, seed=0).rows[0] for own in (rows, rows + again))
    columns = strata(rows, draws=2, seed=0).columns
    low, high, items, questions = (columns.index(name) for name in ("low", "high", "items", "questions"))
    assert (once[low], once[high], once[questions]) == (twice[low], twice[high], twice[questions])
    assert (once[items], twice[items]) == (6, 12)
