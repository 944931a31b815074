"""Every transformation on rows with known truth: the true answer of the other question is the
transport of the original's, exactly; and a wrong one is not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.files import toml_entry
from rrf_design.questions.recipe import recipe_from_document
from rrf_design.questions.rewording import suggestions
from rrf_design.testing import check_transform
from rrf_design.transforms import CHOICE, Original, get, names, read_spec
from rrf_design.transforms import _registry as registry

CASES = tomllib.loads((Path(__file__).parent / "cases.toml").read_text(encoding="utf-8"))["case"]


def dataset(case: dict[str, Any]) -> rrf.Problem:
    answer: dict[str, Any] = {"of": "first"}
    answer |= {"choices": case["choices"]} if "choices" in case else {"tolerance": 1e-9}
    first = {"id": "first", "prompt": case["prompt"]} | ({"parse": case["parse"]} if "parse" in case else {})
    other = {"id": "other", "like": "first", "transform": case["transform"]}
    return rrf.dataset({"answer": answer, "ask": [first, other]}, [case["row"]])["1"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: toml_entry({"t": case["transform"]})[4:].strip())
def test_the_true_answer_moves_as_the_transport_says(case: dict[str, Any]) -> None:
    problem = dataset(case)
    assert str(problem.node_by_id["other"].prompt).endswith(case.get("ends", ""))
    fitting = rrf.repair(problem, {"first": case["truth"], "other": case["then"]})
    assert fitting.support == ()
    # Which part is which, and which of the other options it would be, nobody else says.
    assert fitting.alternatives == () or {"parts", "one-against-rest"} & set(case["transform"])
    wrong = {"20": "21", "letter": "spam", "no": "yes", "B": "A", "C": "B", "repair": "refund"}.get(case["truth"], "7")
    found = rrf.repair(problem, {"first": wrong, "other": case["then"]})
    assert found.support or len(found.alternatives) > len(fitting.alternatives)


def test_every_transformation_has_a_case() -> None:
    tried = {read_spec(case["transform"])[0] for case in CASES}
    elsewhere = {"rounded", "days-since", "iso", "renamed-arguments", "restated", "decomposed"}
    assert set(names()) - tried == elsewhere  # approximate, a class: test_documents.py; programs: test_programs.py


@pytest.mark.parametrize("name", names())
def test_each_says_what_it_is_for(name: str) -> None:
    one = get(name)
    assert one.name == name
    assert min(len(one.says), len(one.breaks)) > 10


@pytest.mark.parametrize(
    ("transform", "fault"),
    [
        ("cent", "unknown transform 'cent'; did you mean 'cents'"),
        ({"times": 3}, "no transformation is called 'times'"),
        ({"scale": 3, "shft": 1}, "unknown key 'shft'; did you mean 'shift'"),
        ({"scale": 0}, "a number that is not 0"),
        ({"scale": "three"}, "neither a number nor one placeholder"),
        ({"parts": ["net"]}, "two names or more"),
        ("permute-options", "it needs choices that are the same for every row"),
        ("negation", "it fits yes or no and two options, not one number"),
        ({"wording": 4}, "is not 1 to 3"),
        ("changed-row", "give changed-row = { COLUMN"),
        ({"changed-row": {"m": {"scale": 3}}}, "the prompt does not speak of 'm'"),
        ({"changed-row": {"n": 3}}, "n = 3 gives neither scale nor shift"),
        ({"changed-row": {"n": {"scale": 0}}}, "scale is not 0"),
        ({"changed-row": {"n": {"scale": 2}}, "scale": "two"}, "numbers or one placeholder"),
    ],
)
def test_what_does_not_fit_is_one_line(transform: Any, fault: str) -> None:
    with pytest.raises(InputError, match=f"ask 'other': .*{fault}"):
        dataset({"prompt": "{{ n }}?", "row": {"n": 1}, "transform": transform})


@pytest.mark.parametrize("cell", ["five", "", "1,190.00", None, True])
def test_a_cell_that_is_no_plain_number_is_named(cell: Any) -> None:
    case = {"prompt": "{{ n }} boxes of 4?", "row": {"n": cell}, "transform": {"changed-row": {"n": {"scale": 3}}}}
    with pytest.raises(InputError, match=r"what is changed is .*ask 'other' prompt"):
        dataset(case)


def test_changed_cells_keep_their_decimals_and_their_kind() -> None:
    from rrf_design.questions.templates import render

    def said(cell: Any) -> str:
        return render("{{ n | changed(3, 0.1) }}", {"n": cell})

    assert [said(cell) for cell in ("0.10", " 7", "1e3", 7, 0.1)] == ["0.40", "21.1", "3000.1", "21.1", "0.4"]
    assert render("{{ n | changed(3) }} {{ m | changed(1, -4) }}", {"n": 5, "m": "-0.50"}) == "15 -4.50"


def test_options_that_are_not_listed_one_by_one_can_not_be_permuted() -> None:
    case = {"prompt": "{{ n }}, A or B?", "row": {"n": 1}, "transform": "permute-options", "choices": ["A", "B"]}
    with pytest.raises(InputError, match="does not list the options one by one"):
        dataset(case)
    with pytest.raises(InputError, match=r"\[0, 1\] is no other order"):
        dataset(case | {"transform": {"permute-options": [0, 1]}})


def test_options_change_places_in_lists_and_never_in_sentences() -> None:
    def asked(prompt: str, order: Any = True) -> str:
        question = Original(prompt, CHOICE, ("refund", "repair", "other"))
        return get("permute-options").apply(question, {"permute-options": order}).prompt

    twice = "refund, repair or other? {{ text }}\nWrite one of: refund, repair, other"
    assert asked(twice) == "repair, other or refund? {{ text }}\nWrite one of: repair, other, refund"
    prose = "Money back is refund; mending is repair. {{ refund }} Options: 'refund' / 'repair' / 'other'"
    assert asked(prose, [2, 0, 1]).startswith("Money back is refund; mending is repair. {{ refund }}")
    assert asked(prose, [2, 0, 1]).endswith("'other' / 'refund' / 'repair'")
    with pytest.raises(InputError, match="does not list the options"):
        asked("Write refund if money is wanted, repair if it broke, other if neither. {{ text }}")


def test_reword_is_read_as_its_older_name() -> None:
    def digest(key: str) -> str:
        ask = [{"id": "a", "prompt": "{{ x }}?"}, {"id": "b", "like": "a", key: {"unit": "cents", "scale": 100}}]
        return recipe_from_document({"answer": {"of": "a", "tolerance": 0.1}, "ask": ask}).digest

    assert digest("reword") == digest("transform")
    ask = [{"id": "a", "prompt": "?"}, {"id": "b", "like": "a", "reword": {"scale": 2}, "transform": "cents"}]
    with pytest.raises(InputError, match="older name of transform"):
        recipe_from_document({"answer": {"of": "a"}, "ask": ask})


def test_a_field_of_several_is_asked_alone() -> None:
    answer = [{"of": "a.total", "tolerance": 0.01}, {"of": "a.vendor"}]
    ask = [{"id": "a", "prompt": "{{ x }}"}, {"id": "cents", "like": "a.total", "transform": "cents"}]
    problem = rrf.dataset({"answer": answer, "ask": ask}, [{"x": "…"}])["1"]
    assert 'Of these write total alone, as JSON: {"total": ..}\nState' in str(problem.node_by_id["cents"].prompt)
    assert problem.block_by_id["cents like a.total"].transport.scale == 100
    ask[1] |= {"like": "a.vendor", "transform": "wording"}
    with pytest.raises(InputError, match="of several fields numbers alone are changed"):
        recipe_from_document({"answer": answer, "ask": ask})


def test_suggestions_are_entries_of_the_recipe_on_sale() -> None:
    from rrf_design.questions.recipe import RecipeFile

    recipe = {
        "answer": {"of": "total", "tolerance": 0.005},
        "ask": [
            {"id": "total", "prompt": "Total? {{ text }}", "cost": 0.2},
            {"id": "again", "like": "total", "transform": "cents"},
        ],
    }
    found = suggestions(RecipeFile.model_validate(recipe))
    kinds = {"wording", "quote-first", "scale", "plus", "complement"}
    assert {one.transform for one in found} == kinds  # cents is there already
    assert {one.entry["cost"] for one in found} == {0.2}
    whole = recipe | {"ask": [*recipe["ask"], *(one.entry for one in found)]}  # type: ignore[misc]
    problem = rrf.dataset(whole, [{"text": "…"}])["1"]
    plan = rrf.plan(problem, target=0.5)
    assert plan.gamma >= 0.5
    assert set(plan.selected) <= {one.entry["id"] for one in found}


def test_the_suite_for_transformations_of_others_finds_a_wrong_transport() -> None:
    amount = Original("Total of {{ text }}?")
    check_transform(get("unit"), [(amount, {"unit": "cents"}, [47.6], [4760.0])])
    check_transform(get("parts"), [(amount, {"parts": ["net", "tax"]}, [47.6], [40.0, 7.6])])
    turned = Original("A) {{ a }}\nB) {{ b }}", CHOICE, ("A", "B"))
    check_transform(get("permute-options"), [(turned, {}, [1.0, 0.0], [0.0, 1.0])])
    with pytest.raises(AssertionError, match=r"moves to \[142.8.*\], and \[142.0\] was written by hand"):
        check_transform(get("scale"), [(amount, {"scale": 3}, [47.6], [142.0])])


OFFERED = """from rrf_design.transforms import NUMBER, Transform, Transformed

class Doubled(Transform):
    name, says, breaks, options = "doubled", "twice as much", "nothing that is known", ("doubled",)

    def unfit(self, question, options):
        return "" if question.answer == NUMBER else "it doubles one number"

    def write(self, question, options):
        return Transformed(f"{question.prompt} Double it.", {"scale": 2.0})

    def proposals(self, question):
        yield "doubled"
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as pip leaves it: a module, and the entry points in its metadata."""
    (tmp_path / "doubling.py").write_text(OFFERED)
    about = tmp_path / "doubling-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: doubling\nVersion: 1.0\n")
    points = (
        "doubled = doubling:Doubled\ncents = doubling:Doubled\nempty = doubling:nothing\nno = doubling:NUMBER.title\n"
    )
    (about / "entry_points.txt").write_text(f"[rrf_design.transforms]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))
    for cached in (registry._offered, registry.get):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (registry._offered, registry.get):
        cached.cache_clear()


@pytest.mark.usefixtures("installed")
def test_another_package_may_offer_one() -> None:
    case = {"prompt": "{{ n }}?", "row": {"n": 1}, "transform": "doubled"}
    assert dataset(case).node_by_id["other"].prompt == "1? Double it."
    check_transform(get("doubled"), [(Original("{{ n }}?"), {}, [3.0], [6.0])])
    assert type(get("unit")).__module__ == "rrf_design.transforms._quantities"  # nobody replaces one of the catalogue
    assert "doubled" in names()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["empty", "no"])
def test_a_package_that_gives_no_transformation_is_one_line(name: str) -> None:
    with pytest.raises(InputError, match=f"transform '{name}': its package (can't be loaded|gives str)"):
        dataset({"prompt": "{{ n }}?", "row": {"n": 1}, "transform": name})
