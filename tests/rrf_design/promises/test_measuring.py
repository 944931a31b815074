"""What is measured beside a pilot: judges, places, radii, relations at fault."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.promises._judging import Judgement, between, interval, measure_judges, read_judgements
from rrf_design.promises._measure import measured
from rrf_design.promises._measure_relations import measured_radii, radius_proposals
from rrf_design.promises._sheets import read_sheet
from rrf_design.promises._truths import GoldRule, Truth, read_truth
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.recipe import recipe_from_document
from rrf_design.risk import best_risk, rate_bound
from rrf_design.risk._counts import BinomialTail

REPEATED = {
    "data": {"id": "no", "gold": "truth"},
    "answer": {"of": "total", "tolerance": 0.5},
    "ask": [{"id": "total", "prompt": "How many? {{ no }}", "repeat": 4}],
}


def test_answers_to_one_item_count_once_for_what_is_promised_of_others() -> None:
    """Four copies of one answer are no four pieces of evidence: bounds count the twenty items, and
    not their 80 answers and 120 pairs.
    """
    dataset = rrf.dataset(recipe_from_document(REPEATED), [{"no": str(i), "truth": 10.0} for i in range(20)])
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    assert len(nodes) == 4
    answers = [
        {"id": str(i), "node": node, "value": 10.0 + 0.01 * i + (0.3 if i == 3 and node == nodes[0] else 0.0)}
        for i in range(20)
        for node in nodes
    ]
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, nodes)
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.5)
    truths = [truth for row in sheet.rows if (truth := read_truth(row.item.gold, row.parser, rule)) is not None]
    found = measured(sheet, truths, dataset.recipe, 0.95)
    scatter, repeats = found["scatter"], found["repeats"]
    assert (scatter["answers"], scatter["items"], scatter["share_beyond"]) == (80, 20, best_risk(20, 0.95))
    assert scatter["largest"] == pytest.approx(0.33)
    assert (repeats["pairs"], repeats["differ"], repeats["items"], repeats["differing_items"]) == (120, 3, 20, 1)
    assert repeats["bound"] == rate_bound(20, 1, 0.95)


def test_every_answer_is_marked_in_the_order_of_the_draw(make_world: Any) -> None:
    from rrf_design.promises import PilotSettings

    document = make_world(items=100, wrong=0.1, unread=0.05).document(PilotSettings(60, 0.3))
    marks = document["wrong_answers"]["by_node"]
    counts = [sum(text[at] == "1" for text in marks.values()) for at in range(60)]
    for entry in document["wrong_answers"]["more_than"]:
        assert entry["items"] == sum(count > entry["k"] for count in counts)


def test_a_pilot_that_grew_is_measured_at_its_first_look(make_world: Any) -> None:
    """When it stopped depends on what it showed; a bound for a fixed size would not hold there."""
    from rrf_design.promises import PilotSettings, prove_policy
    from rrf_design.risk import first_look

    document = make_world(items=200, wrong=0.05).document(PilotSettings(90, 0.1, sequential=True))
    size = first_look(0.1, 0.95)
    assert size < 90
    assert document["wrong_answers"]["items"] == size
    assert document["measured"]["basis"].startswith(f"from the first {size} of the 90 items, because when")
    prove_policy(document)


def test_bounds_of_a_draw_inside_strata_name_the_mix_that_they_speak_of(make_world: Any) -> None:
    """A hundred strata of one item each are not drawn from before half of a large one is: what they
    hide no count of the drawn items bounds.
    """
    from rrf_design.promises import PilotSettings
    from rrf_design.risk import stratified_order

    drawn = stratified_order(["large"] * 100 + [str(at) for at in range(100)], 0, digest="d")[:50]
    assert max(drawn) < 100
    assert rate_bound(50, 0, 0.95) < 0.06 < 0.5  # all of the second half may be wrong
    world = make_world(items=100, wrong=0.05)
    assert world.document(PilotSettings(60, 0.3))["measured"]["basis"] == ""
    path = world.folder / "table.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "kind": str(at % 3)}) + "\n" for at, row in enumerate(rows)))
    document = world.document(PilotSettings(60, 0.3, stratify="kind"))
    assert "mixed over the strata of 'kind' as the drawn ones are" in document["measured"]["basis"]


def test_a_truth_that_agreement_meets_within_its_tolerance_is_not_disputed() -> None:
    """Of five answers one is 100 and four are 100.3: all are right within 0.5, whoever of them came
    first.
    """
    from rrf_design.promises._measure import disputed_gold

    recipe: Any = {**REPEATED, "ask": [{**REPEATED["ask"][0], "repeat": 5}]}  # type: ignore[index]
    table = [{"no": str(i), "truth": 100.0 + i + (7.0 if i == 4 else 0.0)} for i in range(20)]
    dataset = rrf.dataset(recipe_from_document(recipe), table)
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    answers = [
        {"id": str(i), "node": node, "value": 100.0 + i + (0.3 if at else 0.0)}
        for i in range(20)
        for at, node in enumerate(nodes)
    ]
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, nodes)
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.5)
    truths = [truth for row in sheet.rows if (truth := read_truth(row.item.gold, row.parser, rule)) is not None]
    assert disputed_gold(sheet, truths, sheet) == ["4"]


def test_checks_are_proposed_with_their_bound() -> None:
    from rrf_design.promises._measure import check_proposals

    clean, wrong = check_proposals(
        [
            {"check": "ledger", "asked": 60, "wrong": 0, "bound": 0.046875},
            {"check": "tests", "asked": 60, "wrong": 3, "bound": 0.125},
        ]
    )
    assert clean == "check 'ledger': wrong in 0 of 60 items, at most 4.69 % of all"
    assert wrong == "check 'tests': wrong in 3 of 60 items, at most 12.50 % of all; may_be_wrong = true"


@pytest.mark.parametrize(("count", "hits"), [(10, 0), (10, 7), (10, 10), (200, 191)])
def test_intervals_are_clopper_and_pearson(count: int, hits: int) -> None:
    slow = binomtest(hits, count).proportion_ci(0.9, method="exact")
    assert interval(count, hits, 0.9) == pytest.approx([slow.low, slow.high], abs=1e-9)


def test_a_judge_of_classes_has_a_rate_and_two_have_an_agreement() -> None:
    truth = ["yes", "no"] * 10
    strict = [Judgement(str(i), "strict", t if i != 3 else "yes", t) for i, t in enumerate(truth)]
    lax = [Judgement(str(i), "lax", "yes" if i else None, t) for i, t in enumerate(truth)]
    found = measure_judges([*strict, *lax])
    one, other = found["judges"]
    assert (one["right"], one["unread"], one["rate"]) == (19, 0, 0.95)
    assert one["interval"][0] < 0.95 < one["interval"][1]
    assert (other["judged"], other["unread"], other["right"]) == (20, 1, 9)
    assert "sigma" not in one
    (pair,) = found["agreement"]
    assert (pair["items"], pair["agree"], pair["both_wrong"]) == (19, 10, 1)
    assert "rate = 0.2488 (how often it is wrong, at most; it is right in 95.0 %" in found["proposals"][0]


def test_a_judge_of_numbers_has_a_sigma_with_its_limit() -> None:
    errors = [0.5, -0.5] * 20
    said = [Judgement(str(i), "j", (i + e,), (float(i),)) for i, e in enumerate(errors)]
    (judge,) = measure_judges(said)["judges"]
    assert judge["sigma"]["rms"] == pytest.approx(0.5)
    assert judge["sigma"]["bias"] == pytest.approx(0.0)
    assert 0.5 < judge["sigma"]["upper"] < 0.7


def test_a_judge_that_likes_the_first_place_is_found_out() -> None:
    said = [Judgement(str(i), "j", "a" if i % 2 else "b", "a", "first" if i % 2 else "second") for i in range(20)]
    found = measure_judges(said)
    position = found["judges"][0]["position"]
    assert [(entry["place"], entry["right"]) for entry in position["places"]] == [("first", 10), ("second", 0)]
    assert position["biased"]
    assert "in both orders" in found["proposals"][-1]
    fair = measure_judges([Judgement(str(i), "j", "a", "a", str(i % 2)) for i in range(20)])["judges"][0]
    assert not fair["position"]["biased"]


def test_tables_are_read_and_bad_ones_refused(tmp_path: Path) -> None:
    file = tmp_path / "j.csv"
    file.write_text("id,judge,value,truth,position\n1,j,7,7.5,\n2,j,,yes,1\n")
    assert read_judgements(file) == [
        Judgement("1", "j", (7.0,), (7.5,)),
        Judgement("2", "j", None, "yes", "1"),
    ]
    file.write_text("id,judge,value\n1,j,7\n")
    with pytest.raises(InputError, match="no column 'truth'"):
        read_judgements(file)
    file.write_text("id,judge,value,truth\n1,j,7,\n")
    with pytest.raises(InputError, match="no truth"):
        read_judgements(file)
    twice = [Judgement("1", "j", "a", "a")] * 2
    with pytest.raises(InputError, match="judged once"):
        measure_judges(twice)
    with pytest.raises(InputError, match="no judgements"):
        measure_judges([])


@pytest.mark.parametrize("right", [0, 1, 7, 19, 20])
def test_what_is_proposed_is_never_less_than_what_is_proven(right: int) -> None:
    """An interval covers the exact one, and the rate in the proposal covers the interval: rounding
    to nearest proposed less than was proven.
    """
    said = [Judgement(str(i), "one", "yes" if i < right else "no", "yes") for i in range(20)]
    found = measure_judges(said)
    low, high = found["judges"][0]["interval"]
    for rate, hits in ((1 - Fraction(low), 20 - right), (Fraction(high), right)):
        assert rate >= 1 or BinomialTail(20, rate, hits).at_most(Fraction(25, 1000))
    if right < 20:
        rate_said = found["proposals"][0].split("rate = ")[1].split(" ")[0]
        assert Fraction(rate_said) >= 1 - Fraction(low)
    below, above = between([low, high])
    assert Fraction(below.rstrip("%")) <= 100 * Fraction(low)
    assert Fraction(above.rstrip("%")) >= 100 * Fraction(high)


def test_sigma_says_what_it_assumes_and_what_holds_without() -> None:
    """A judge that is off by 100 in 2 % of items: in half of all pilots of 30 it never is, and σ =
    0 is no limit with any confidence.
    """
    said = [Judgement(str(i), "j", (float(i),), (float(i),)) for i in range(30)]
    found = measure_judges(said)
    assert 0.98**30 > 0.5
    assert found["judges"][0]["sigma"]["upper"] == 0.0
    share = found["judges"][0]["sigma"]["share_beyond"]
    assert (1 - share) ** 30 == pytest.approx(0.05)
    assert "if errors are normal around 0" in found["proposals"][0]
    assert "none was off by more than 0, and at most 9.51 % of all are" in found["proposals"][0]


def test_every_coordinate_of_a_judge_counts_and_options_are_no_numbers() -> None:
    off = [0.5, -0.5] * 20
    said = [Judgement(str(i), "j", (float(i), i + e), (float(i), float(i))) for i, e in enumerate(off)]
    (judge,) = measure_judges(said)["judges"]
    assert judge["sigma"]["rms"] == pytest.approx(0.5)
    options = [tuple(float(at == i % 4) for at in range(4)) for i in range(40)]
    (judge,) = measure_judges([Judgement(str(i), "j", options[(i + (i == 7)) % 40], options[i]) for i in range(40)])[
        "judges"
    ]
    assert "sigma" not in judge
    assert judge["right"] == 39


def test_a_judge_is_held_against_the_truth_that_it_said() -> None:
    truth = Truth(((4.0,), (6.0,)), 0.5, "4 | 6")
    said = [Judgement.against(truth, str(i), "j", value) for i, value in enumerate([(6.25,), (4.0,), (5.0,), None])]
    assert [one.truth for one in said] == [(6.0,), (4.0,), (4.0,), (4.0,)]
    (judge,) = measure_judges(said)["judges"]
    assert (judge["right"], judge["unread"]) == (2, 1)


def test_places_that_are_seldom_do_not_look_biased_by_chance() -> None:
    """Every outcome of judges that are right in nine of ten whatever the place, of which two places
    were seen twice and one 20 times: at most one in twenty is called biased.
    """
    sizes, alarm = (2, 2, 20), 0.0
    for rights in product(*(range(size + 1) for size in sizes)):
        said = [
            Judgement(f"{place}.{i}", "j", "a" if i < right else "b", "a", str(place))
            for place, (size, right) in enumerate(zip(sizes, rights, strict=True))
            for i in range(size)
        ]
        if measure_judges(said)["judges"][0]["position"]["biased"]:
            alarm += math.prod(math.comb(n, x) * 0.9**x * 0.1 ** (n - x) for n, x in zip(sizes, rights, strict=True))
    assert alarm <= 0.05


CHOICES = {
    "data": {"id": "no", "gold": "truth"},
    "models": {"mini": {"use": "scripted:a"}, "other": {"use": "scripted:b"}},
    "answer": {"of": "which", "choices": ["A", "B", "C"]},
    "ask": [
        {"id": "which", "prompt": "A {{ a }} B {{ b }} C {{ c }}", "model": ["mini", "other"]},
        {
            "id": "turned",
            "prompt": "A {{ c }} B {{ b }} C {{ a }}",
            "like": "which",
            "change": {"permute": [2, 1, 0]},
            "model": ["mini", "other"],
        },
        {"id": "again", "prompt": "Which? A {{ a }} B {{ b }} C {{ c }}", "like": "which"},
    ],
}
SCORES = {
    "data": {"id": "no", "gold": "truth"},
    "answer": {"of": "score", "tolerance": 0.1},
    "ask": [
        {"id": "score", "prompt": "How much better is {{ a }} than {{ b }}?"},
        {"id": "other", "like": "score", "reword": {"swap": ["a", "b"]}, "change": {"scale": -1}},
        {"id": "sum", "prompt": "{{ a }} and {{ b }}?", "like": "score"},
    ],
}


def orders(recipe: dict[str, Any], said: list[dict[str, Any]], truth: Any) -> Any:
    table = [{"no": str(i), "truth": truth, "a": "x", "b": "y", "c": "z"} for i in range(len(said))]
    dataset = rrf.dataset(recipe_from_document(recipe), table)
    answers = [
        {"id": str(i), "node": node, "text": str(text)} for i, row in enumerate(said) for node, text in row.items()
    ]
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, nodes)
    rule = GoldRule.of(dataset.recipe.data, tolerance=sheet.rows[0].template.problem.delta)
    truths = [read_truth(row.item.gold, row.parser, rule) for row in sheet.rows]
    found = measured(sheet, [truth for truth in truths if truth is not None], dataset.recipe, 0.95)
    json.dumps(found)
    return found


def test_permuted_options_are_counted_model_by_model() -> None:
    steady = {"which@other": "A", "turned@other": "C"}
    said = [{"which": "A", "turned": "A", **steady} for _ in range(8)]  # always what stands first
    said += [{"which": "A", "turned": "C", **steady}, {"which": "A"}]
    found = orders(CHOICES, said, "A")
    mini, other = found["orders"]
    assert (mini["nodes"], mini["both_read"], mini["changed"], mini["ways"]) == (
        ["which", "turned"],
        9,
        8,
        {"earlier": 8},
    )
    assert mini["p"] == pytest.approx(2 / 2**8)
    assert mini["biased"]
    assert [(place["place"], place["judged"], place["right"]) for place in mini["places"]] == [(0, 9, 9), (2, 9, 1)]
    assert (other["nodes"], other["changed"], other["biased"]) == (["which@other", "turned@other"], 0, False)
    (words,) = [one for one in found["proposals"] if "changed with the order" in one]
    assert "in 8 of 9 items, 8 times to what stood earlier" in words


def test_an_option_that_stays_in_its_place_is_counted_once_an_item() -> None:
    said = [{"which": "B", "turned": "B"} for _ in range(6)] + [{"which": "A", "turned": "B"}]
    mini = orders(CHOICES, said, "B")["orders"][0]
    assert [(place["place"], place["judged"], place["right"]) for place in mini["places"]] == [(1, 7, 6)]


def test_swapped_columns_of_a_score() -> None:
    said = [{"score": 3, "other": 1, "sum": 3} for _ in range(7)] + [{"score": 2, "other": -2}]
    (entry,) = orders(SCORES, said, 1.0)["orders"]
    assert (entry["nodes"], entry["both_read"], entry["changed"]) == (["score", "other"], 8, 7)
    assert (entry["ways"], entry["places"]) == ({"higher": 7}, [])
    assert entry["biased"]


def test_noise_without_a_favourite_place_is_rarely_called_one() -> None:
    """Answers that ignore the places: the sign test is exact, so no more than one in twenty is
    called biased.
    """
    rng = random.Random(5)
    biased = 0
    for _ in range(60):
        said = []
        for _ in range(30):
            first, second = rng.choices("xyz", weights=(6, 3, 1), k=2)  # options, whatever their place
            said.append({"which": "ABC"["xyz".index(first)], "turned": "ABC"["zyx".index(second)]})
        biased += orders(CHOICES, said, "A")["orders"][0]["biased"]
    assert biased <= 6


def test_what_declares_no_other_order_is_not_measured() -> None:
    plain = {**SCORES, "ask": [SCORES["ask"][0], {"id": "sum", "prompt": "{{ a }} {{ b }}?", "like": "score"}]}  # type: ignore[index]
    found = orders(plain, [{"score": 1, "sum": 2}], 1.0)
    assert found["orders"] == []


RECIPE = {
    "data": {"id": "no", "gold": "truth"},
    "answer": {"of": "euros", "tolerance": 0.5},
    "ask": [
        {"id": "euros", "prompt": "How many? {{ no }}"},
        {"id": "cents", "prompt": "Cents? {{ no }}", "like": "euros", "change": {"scale": 100}, "sigma": 50.0},
        {"id": "again", "prompt": "Again? {{ no }}", "like": "euros", "weight": 4.0},
    ],
}


SHARED = {
    "data": {"id": "no", "gold": "truth"},
    "problem": {"k": 1, "delta": 0.5, "deliver": ["euros"]},
    "nodes": [{"id": node, "prompt": f"{node}? {{{{ no }}}}"} for node in ("euros", "cents", "again", "twice")],
    "relations": [
        {
            "id": "cents like euros",
            "tail": "euros",
            "head": "cents",
            "transport": {"scale": 100.0},
            "covariance": [[2500.0]],
        },
        *(
            {"id": f"{node} like euros", "tail": "euros", "head": node, "family": "f", "weight": 4.0}
            for node in ("again", "twice")
        ),
    ],
}


def world(wrong: int = 3, *, noise: float = 0.2, recipe: Any = RECIPE) -> tuple[Any, Any, list[Any]]:
    rng = np.random.default_rng(2)
    nodes = tuple(entry["id"] for entry in recipe.get("ask") or recipe["nodes"])
    table, answers = [], []
    for number in range(30):
        truth = 10.0 + number
        table.append({"no": str(number), "truth": truth})
        for node in nodes:
            scale = 100.0 if node == "cents" else 1.0
            off = 9.0 if number < wrong and node == "again" else float(rng.uniform(-noise, noise))
            answers.append({"id": str(number), "node": node, "value": (truth + off) * scale})
    dataset = rrf.dataset(recipe_from_document(recipe), table)
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, nodes)
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.5)
    return dataset, sheet, [read_truth(row.item.gold, row.parser, rule) for row in sheet.rows]


@pytest.mark.parametrize("recipe", [RECIPE, SHARED], ids=["own weights", "a family and a covariance"])
def test_epsilon_is_the_largest_norm_of_the_rows_of_right_answers(recipe: Any) -> None:
    dataset, sheet, truths = world(recipe=recipe)
    norms = []
    for row, truth in zip(sheet.rows, truths, strict=True):
        if all(truth.right(value) for value in row.implied.values()):
            operator = dataset.item(row.id).problem.operator()
            norms.append(float(np.linalg.norm(operator.syndrome(row.said))))
    found = measured_radii(sheet, truths, 0.95)
    assert found is not None
    assert found["epsilon"]["items"] == len(norms) == 27
    assert found["epsilon"]["largest"] == pytest.approx(max(norms))
    assert (1 - found["epsilon"]["share_beyond"]) ** 27 == pytest.approx(0.05)


def test_a_relation_is_as_uncertain_as_its_right_answers_are_off() -> None:
    _, sheet, truths = world()
    found = measured_radii(sheet, truths, 0.95)
    assert found is not None
    by = {entry["relation"]: entry for entry in found["relations"]}
    assert [by[name]["pairs"] for name in by] == [30, 27]
    for name, head, scale in (("cents like euros", "cents", 100.0), ("again like euros", "again", 1.0)):
        gaps = [
            abs(row.said[head][0] - scale * row.said["euros"][0]) / row.said["euros"][0]
            for row, truth in zip(sheet.rows, truths, strict=True)
            if truth.right(row.implied[head]) and truth.right(row.implied["euros"])
        ]
        assert by[name]["uncertainty"] == pytest.approx(max(gaps))
    words = radius_proposals(found)
    assert words[0].startswith("[answer] epsilon = ")
    assert any("relation 'cents like euros': uncertainty = " in line for line in words)


def test_exact_answers_propose_nothing_and_few_neither() -> None:
    _, sheet, truths = world(noise=0.0)
    found = measured_radii(sheet, truths, 0.95)
    assert found is not None
    assert found["epsilon"]["largest"] == 0.0
    assert radius_proposals(found) == []
    _, sheet, truths = world()
    assert radius_proposals(measured_radii(sheet.only(range(8)), truths[:8], 0.95)) == []
    assert radius_proposals(None) == []


def _two(check: bool, *, truths: list[float], off: tuple[float, float]) -> tuple[Any, Any, list[Any]]:
    recipe: Any = {
        "data": {"id": "no", "gold": "truth"},
        "answer": {"of": "a", "tolerance": 0.5},
        "ask": [{"id": "a", "prompt": "a? {{ no }}"}, {"id": "b", "prompt": "b? {{ no }}", "like": "a"}],
    }
    if check:
        recipe["check"] = [{"id": "ledger", "of": "a", "by": {"value": "{{ ledger }}"}}]
    table: list[dict[str, Any]] = [
        {"no": str(i), "truth": truth, "ledger": truth if i else truth + 9.0} for i, truth in enumerate(truths)
    ]
    answers = [
        {"id": row["no"], "node": node, "value": row["truth"] + own}
        for row in table
        for node, own in zip("ab", off, strict=True)
    ]
    dataset = rrf.dataset(recipe_from_document(recipe), table)
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, ("a", "b"))
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.5)
    return dataset, sheet, [read_truth(row.item.gold, row.parser, rule) for row in sheet.rows]


def test_epsilon_covers_the_rows_of_checks_that_an_item_holds() -> None:
    """Both answers are 0.4 off and agree: relations alone would say 0.01.

    The item whose ledger is wrong is no item whose rows are noise.
    """
    dataset, sheet, truths = _two(True, truths=[10.0 + i for i in range(30)], off=(0.4, 0.39))
    found = measured_radii(sheet, truths, 0.95)
    assert found is not None
    slow = np.linalg.norm(dataset.item("1").problem.operator().syndrome(sheet.rows[1].said))
    assert found["epsilon"]["items"] == 29
    assert found["epsilon"]["largest"] == pytest.approx(slow)
    assert slow > 0.4


def test_no_factor_of_a_tail_that_is_zero_covers_a_gap() -> None:
    """25 of 30 pairs are off where the tail is 0; that of the others, 0.4 of 100, covers none of
    them.
    """
    _, sheet, truths = _two(False, truths=[0.0] * 25 + [100.0] * 5, off=(0.0, 0.4))
    found = measured_radii(sheet, truths, 0.95)
    assert found is not None
    (entry,) = found["relations"]
    assert (entry["pairs"], entry["uncertainty"]) == (30, None)
    assert "no uncertainty covers the 30 pairs" in radius_proposals(found)[-1]
    _, sheet, truths = _two(False, truths=[0.0] * 25 + [100.0] * 5, off=(0.0, 0.0))
    exact = measured_radii(sheet, truths, 0.95)
    assert exact is not None
    assert exact["relations"][0]["uncertainty"] == 0.0
