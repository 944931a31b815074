"""margin, plan and frontier: designs and what they cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .conftest import field_text

Run = Callable[..., Any]

TRIANGLE = """
[problem]
name = "triangle [and] isolate"
k = 1
nodes = [{ id = "a" }, { id = "b" }, { id = "c" }, { id = "d" }, { id = "e", cost = 0.5 }]
relations = [
  { id = "ab", tail = "a", head = "b" },
  { id = "bc", tail = "b", head = "c" },
  { id = "ac", tail = "a", head = "c" },
  { id = "cd", tail = "c", head = "d", cost = 1.0 },
  { id = "de", tail = "d", head = "e", cost = 1.0 },
]
anchors = [{ id = "a3", node = "d", value = 17, cost = 2 }, { id = "ab2", node = "a", cost = 1 }]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "problem.toml"
    head, entries = TRIANGLE.split("nodes =", 1)
    path.write_text("nodes =" + entries + head)  # top-level keys come before [problem] in TOML
    return path


def test_the_json_keys(run: Run, file: Path) -> None:
    made = run("margin", file, "--select", "a3", "--json")
    assert made.code == 0
    assert {"k", "gamma", "lower", "upper", "status", "support", "witness", "method"} <= set(made.json)
    assert made.json["gamma"] == pytest.approx(1.0)
    assert made.json["k"] == 1
    assert made.json["status"] == "exact"
    assert made.json["lower"] <= made.json["gamma"] <= made.json["upper"]
    assert made.json["selected"] == ["a3"]
    assert sorted(made.json["witness"]) == sorted(made.json["support"])
    assert np.linalg.norm([x for part in made.json["witness"].values() for x in part]) == pytest.approx(1.0)


def test_what_is_added_to_the_owned_blocks(run: Run, file: Path) -> None:
    def gamma(*options: str) -> float:
        return float(run("margin", file, "--json", *options).json["gamma"])

    assert gamma() == 0.0
    assert gamma("--select", "a3") == pytest.approx(1.0)
    assert gamma("--select", " a3 , ab2,") == pytest.approx(1.0)
    assert gamma("--select", "cd") == pytest.approx(np.sqrt(2 - np.sqrt(2)))
    assert gamma("--all") > 0.7
    assert gamma("--select", "a3", "--k", "2") == 0.0
    assert gamma("--all", "--k", "2", "--jobs", "1", "--time-limit", "60", "--quiet") > 0.4


def test_a_zero_margin_in_words(run: Run, file: Path) -> None:
    made = run("margin", file)
    assert made.code == 0
    assert "triangle [and] isolate: γ_1 = 0" in made.out  # never taken for markup
    assert "No method can guarantee to find 1 wrong answer: an error on d" in made.out
    lines = [line.split() for line in made.out.splitlines()]
    assert ["d", "100.0%", "1"] in lines
    assert ["cd", "1", "1", "1"] in lines  # what would see it, most per cost first
    assert ["e,", "de", "1.5", "1", "0.6667"] in lines  # with the query it needs
    assert ["a3", "2", "1", "0.5"] in lines
    order = [line[0] for line in lines if line and line[0] in ("cd", "e,", "a3")]
    assert order == ["cd", "e,", "a3"]
    assert not any(line[:1] == ["ab2"] for line in lines)  # on sale, but blind to it


def test_a_positive_margin_in_words(run: Run, file: Path) -> None:
    made = run("margin", file, "--select", "a3")
    assert "γ_1 = 1  (exact; proven between" in made.out
    assert "Any 1 wrong answer can be found" in made.out
    assert "2ε/γ_1 = 2 ε" in made.out
    assert "blind to it: ab." in made.out or "blind to it: ac." in made.out or "blind to it: bc." in made.out
    assert made.out.count("50.0%") == 2
    everything = run("margin", file, "--all", "--k", "2")
    assert "Any 2 wrong answers can be found" in everything.out
    assert "on sale" not in everything.out


def test_nothing_on_sale_would_see_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    entries = {"nodes": [{"id": "a"}, {"id": "b"}], "anchors": [{"id": "x", "node": "a", "cost": 1}]}
    path.write_text(json.dumps({**entries, "problem": {"k": 1}}))
    made = run("margin", path, "--select", "x")
    assert "on sale" not in made.out
    path.write_text(json.dumps({**entries, "anchors": [*entries["anchors"], {"id": "y", "node": "b"}]}))
    path.write_text(path.read_text().replace('"a", "cost": 1', '"b", "cost": 0'))
    assert "Nothing that is on sale would see it." in run("margin", path).out


def test_a_free_block_is_worth_most(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    anchors = [{"id": "x", "node": "a", "cost": 1}, {"id": "y", "node": "a", "cost": 0}]
    path.write_text(json.dumps({"nodes": [{"id": "a"}], "anchors": anchors}))
    lines = [line.split() for line in run("margin", path).out.splitlines()]
    assert lines.index(["y", "0", "1", "inf"]) < lines.index(["x", "1", "1", "1"])


def test_long_lists_are_cut_and_counted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    nodes = [{"id": "hub", "dim": 9}, *({"id": f"n{i}", "dim": 9} for i in range(30))]
    relations = [{"id": f"r{i}", "tail": "hub", "head": f"n{i}", "weight": 1e-3} for i in range(30)]
    anchors = [{"id": f"a{i}", "node": f"n{i}"} for i in range(30)]
    path.write_text(json.dumps({"nodes": nodes, "relations": relations, "anchors": anchors}))
    out = run("margin", path).out
    assert "more see it." in out
    assert ", …" in out
    assert len(out.splitlines()) < 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "0"], "k must be a whole number of at least 1, not 0"),
        (["--k", "-2"], "k must be a whole number of at least 1, not -2"),
        (["--k", "1.5"], "Invalid value for '--k'"),
        (["--select", "zz"], "select: nothing here is called 'zz'"),
        (["--select", "a33"], "did you mean 'a3'?"),
        (["--select", "a3", "--all"], "give --select or --all, not both"),
        (["--time-limit", "-1"], "time_limit"),
        (["--time-limit", "nan"], "time_limit"),
    ],
)
def test_wrong_calls_are_one_line(run: Run, file: Path, options: list[str], message: str) -> None:
    for more in ([], ["--json"]):
        made = run("margin", file, *options, *more)
        assert made.code == 2
        assert made.out == ""
        assert made.err.count("\n") == 1
        assert message in made.err
        assert made.err.startswith("rrf-design")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[nodes]]\nid = 'a'\nid2 = 3", "node 'a': unknown key 'id2'"),
        ("[problem]\nk = 0\n[[nodes]]\nid = 'a'", "[problem]: k must be"),
        ("[[nodes]]\nid = 'a\\nb'\n[[nodes]]\nid = \"a\"\ncost = nan", "cost must be a finite number"),
        ('[[nodes]]\nid = "two\\nlines"\ncost = -1', "node 'two\\nlines': cost must be"),
        ("[[nodes]]\nid = 'a'\ncost = 1.0", "no node has been asked"),
        ("", "the field is empty"),
        ("\0", "not valid TOML"),
    ],
)
def test_wrong_files_are_one_line(run: Run, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(content)
    made = run("margin", path, "--json")
    assert (made.code, made.out, made.err.count("\n")) == (2, "", 1)
    assert message in made.err
    assert "Traceback" not in made.err


def test_a_missing_file_is_one_line(run: Run, tmp_path: Path) -> None:
    made = run("margin", tmp_path / "none.toml")
    assert (made.code, made.out, made.err.count("\n")) == (2, "", 1)
    assert "no such file" in made.err


def test_a_time_limit_is_never_called_exact(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "dense.json"
    nodes = [{"id": f"n{i}"} for i in range(60)]
    anchors = [{"id": "B", "nodes": [n["id"] for n in nodes], "rows": rng.normal(size=(40, 60)).tolist()}]
    path.write_text(json.dumps({"problem": {"k": 4}, "nodes": nodes, "anchors": anchors}))
    made = run("margin", path, "--time-limit", "0", "--json")
    assert made.code == 0
    assert made.json["status"] == "bounded"
    assert made.json["lower"] < made.json["upper"]
    text = run("margin", path, "--time-limit", "0")
    assert "bounded; proven between" in text.out
    assert ("It is not proven" in text.out) == (made.json["lower"] == 0.0)


def test_a_limit_that_is_too_short_says_what_the_lower_bound_stands_on(run: Run, tmp_path: Path) -> None:
    """With no time for a search: the whole matrix, where that says something, else nothing; in
    words and in the JSON.
    """
    rng = np.random.default_rng(0)
    for rows, words, source in (
        (40, "bounds the whole matrix", "the whole matrix"),
        (16, "Nothing is proven from below", "nothing"),
    ):
        path, names = tmp_path / f"{rows}.json", [f"n{i}" for i in range(24)]
        checks = [{"id": "all", "nodes": names, "rows": rng.standard_normal((rows, 24)).tolist()}]
        path.write_text(json.dumps({"nodes": [{"id": name} for name in names], "anchors": checks}))
        made = run("margin", path, "--k", "4", "--time-limit", "0")
        assert words in made.out.replace("\n", " ")
        found = json.loads(run("margin", path, "--k", "4", "--time-limit", "0", "--json").out)
        assert (found["status"], found["lower_from"]) == ("bounded", source)
        assert (found["lower"] > 0.0) == (source != "nothing")


PAIR = """
[problem]
name = "pair"
k = 1
[[nodes]]
id = "a"
[[nodes]]
id = "b"
[[relations]]
id = "same"
tail = "a"
head = "b"
"""
LABEL = '[[anchors]]\nid = "label"\nnode = "a"\ncost = 2.0\n'


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    path = tmp_path / "pair.toml"
    path.write_text(PAIR + LABEL)
    return path


def test_a_zero_margin_is_explained_in_words(run: Run, pair: Path) -> None:
    made = run("explain", pair)
    assert made.code == 1
    assert "γ_1 = 0 (exact)" in made.out
    assert "a and b form a connected part of 2 nodes without an anchor" in made.out
    assert "blind to it: same" in made.out
    assert "buy label for 2" in made.out


def test_mended(run: Run, pair: Path) -> None:
    made = run("explain", pair, "--select", "label")
    assert made.code == 0
    assert "a positive margin already" in made.out


def test_nothing_on_sale_helps(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(PAIR)
    made = run("explain", path)
    assert made.code == 1
    assert "Nothing on sale reaches a positive margin" in made.out


def test_json(run: Run, pair: Path) -> None:
    made = run("explain", pair, "--json")
    assert made.code == 1
    assert made.json["cause"] == "shared"
    assert made.json["blind"] == ["same"]
    assert made.json["mend"]["ids"] == ["label"]
    assert made.json["gamma"] == 0.0


def test_a_wrong_file_is_one_line(run: Run, tmp_path: Path) -> None:
    made = run("explain", tmp_path / "none.toml")
    assert made.code == 2
    assert made.err.count("\n") == 1


def judges(count: int, ties: list[tuple[int, int]], *, label: bool = False) -> str:
    """Each judge answers in both orders, which must agree, and fails as a whole; the first orders
    that are tied must agree, too.
    """
    lines = ['[problem]\nname = "judges"\n']
    for j in range(count):
        lines += [f'[[nodes]]\nid = "{way}@{j}"\nmodel = "m{j}"\nunit = "m{j}"\n' for way in ("ab", "ba")]
        lines.append(f'[[relations]]\nid = "orders {j}"\ntail = "ab@{j}"\nhead = "ba@{j}"\n')
    lines += [f'[[relations]]\nid = "{a} and {b}"\ntail = "ab@{a}"\nhead = "ab@{b}"\n' for a, b in ties]
    if label:
        lines.append('[[anchors]]\nid = "label"\nnode = "ab@0"\n')
    return "".join(lines)


@pytest.mark.parametrize(
    ("text", "each", "model"),
    [
        (judges(2, [(0, 1)]), 0.618, 0.0),
        (judges(3, [(0, 1), (1, 2)]), 0.618, 0.416),
        (judges(3, [(0, 1), (1, 2), (0, 2)]), 0.765, 0.618),
        (judges(2, [(0, 1)], label=True), 0.618, 0.416),
    ],
)
def test_the_judges_show_which_assumption_decides(
    run: Run, tmp_path: Path, text: str, each: float, model: float
) -> None:
    path = tmp_path / "judges.toml"
    path.write_text(text)
    made = run("explain", path, "--json")
    assert made.code == (0 if model else 1)
    told = made.json["assumptions"]
    assert told["each answer fails on its own"] == pytest.approx(each, abs=1e-3)
    assert told["a model fails as a whole"] == pytest.approx(model, abs=1e-3)
    assert told["a model fails as a whole"] == pytest.approx(made.json["gamma"])
    assert "a wording fails in all its asks" in told
    assert f"{made.json['gamma']:.4g} if a model fails as a whole, as this file says" in run("explain", path).out


TEXT = field_text(
    'name = "triangle and isolate"\nk = 1\nbudget = 3.0',
    "a b c isolate",
    "a>b b>c c>a",
    '[[relations]]\nid = "out"\ntail = "a"\nhead = "isolate"\ncost = 1.5\n',
    '[[anchors]]\nid = "a3"\nnode = "isolate"\ncost = 2.0\n',
)


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(TEXT)
    return path


def test_json_has_the_promised_keys(run, plan_file):
    ran = run("plan", plan_file, "--json")
    assert ran.code == 0
    assert {"selected", "cost", "gamma", "upper_bound", "gap", "status", "trajectory"} <= set(ran.json)
    assert ran.json["selected"] == ["a3"]
    assert (ran.json["gamma"], ran.json["status"]) == (1.0, "optimal")
    assert {"block", "cost", "gamma", "support"} <= set(ran.json["trajectory"][0])


def test_exit_codes(run, plan_file):
    assert run("plan", plan_file, "--target", "0.5").code == 0
    missed = run("plan", plan_file, "--target", "5", "--json")
    assert (missed.code, missed.json["status"], missed.json["gamma"]) == (1, "infeasible", 1.0)
    unknown = run("plan", plan_file, "--budget", "1", "--method", "magic")
    assert unknown.code == 2
    assert unknown.err.startswith("rrf-design: method: 'magic' is not one of auto, greedy")
    assert "Traceback" not in unknown.err


def test_without_budget_and_target(run, tmp_path):
    path = tmp_path / "bare.toml"
    path.write_text(TEXT.replace("budget = 3.0\n", ""))
    ran = run("plan", path)
    assert ran.code == 2
    assert "neither a budget nor a target is given" in ran.err


def test_text_says_what_to_buy_and_why(run, plan_file):
    ran = run("plan", plan_file, "--explain")
    assert "γ_1 = 1 for 2 of 3" in ran.out
    assert (
        "proven to be the best; found by hull rows and witness cuts; objective gamma: rows as they are weighted"
        in ran.out
    )
    assert "No design within the budget does better, and none that does as well costs less" in ran.out
    assert "a3 sees" in ran.out
    assert "1 is left over" in ran.out
    assert "proven" in ran.out
    hasty = run("plan", plan_file, "--method", "greedy", "--budget", "2").out
    assert "found by the witness greedy" in hasty
    poor = run("plan", plan_file, "--budget", "0.5").out
    assert "buys nothing: the cheapest purchase costs 1.5" in poor


def test_written_plan_is_the_printed_one(run, plan_file, tmp_path):
    ran = run("plan", plan_file, "--method", "greedy", "--json", "-o", tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text()) == ran.json
    assert "written to" in ran.err


TEXT_FRONTIER = """
[problem]
name = "one answer"

[[nodes]]
id = "x"

[[anchors]]
id = "cheap"
node = "x"
cost = 1.0
[[anchors]]
id = "good"
node = "x"
weight = 4.0
cost = 3.0
"""


@pytest.fixture
def frontier_file(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(TEXT_FRONTIER)
    return path


def test_points(run, frontier_file):
    ran = run("frontier", frontier_file, "--json")
    assert ran.code == 0
    assert [(p["cost"], p["selected"], p["status"]) for p in ran.json["points"]] == [
        (0.0, [], "optimal"),
        (1.0, ["cheap"], "optimal"),
        (3.0, ["good"], "optimal"),
        (4.0, ["cheap", "good"], "optimal"),
    ]
    assert [p["gamma"] for p in ran.json["points"]] == pytest.approx([0.0, 1.0, 2.0, 5**0.5])
    assert ran.json["complete"]


def test_written_curve_is_the_printed_one(run, frontier_file, tmp_path):
    ran = run("frontier", frontier_file, "--json", "-o", tmp_path / "curve.json")
    assert json.loads((tmp_path / "curve.json").read_text()) == ran.json
    assert (ran.json["format"], ran.json["version"]) == ("rrf-frontier", 1)


def test_text_and_limits(run, frontier_file):
    whole = run("frontier", frontier_file).out
    assert "Nothing larger is possible for more money: proven." in whole
    assert whole.count("proven best") == 4
    assert len(run("frontier", frontier_file, "--budget", "3", "--json").json["points"]) == 3
    assert "The curve may go on" in run("frontier", frontier_file, "--time-limit", "0").out
    assert run("frontier", frontier_file, "--objective", "nonsense").code == 2


def test_asking_again_makes_it_a_curve_of_errors(run, tmp_path):
    path = tmp_path / "again.toml"
    path.write_text(
        "\n".join(
            [
                "[[nodes]]\nid = 'x'\nsigma = 0.1\nagain = 0.5\nmost_repeats = 2",
                "[[anchors]]\nid = 'cheap'\nnode = 'x'\nvalue = 1.0\ncost = 1.0",
                "[[anchors]]\nid = 'more'\nnode = 'x'\nvalue = 1.0\ncost = 9.0",
            ]
        )
    )
    ran = run("frontier", path)
    assert "the smallest error for k = 1 that each amount of money promises" in ran.out
    assert "cheap, ask x 2 times" in ran.out
    assert "Nothing smaller can be promised for more money: proven." in ran.out
    points = run("frontier", path, "--json").json["points"]
    assert [p["cost"] for p in points[:2]] == [1.0, 1.5]
    assert points[1]["repeats"] == {"x": 2}
