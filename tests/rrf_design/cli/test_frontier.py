"""rrf-design frontier: the curve as text and as JSON."""

from __future__ import annotations

import json

import pytest

TEXT = """
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
def file(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(TEXT)
    return path


def test_points(run, file):
    ran = run("frontier", file, "--json")
    assert ran.code == 0
    assert [(p["cost"], p["selected"], p["status"]) for p in ran.json["points"]] == [
        (0.0, [], "optimal"),
        (1.0, ["cheap"], "optimal"),
        (3.0, ["good"], "optimal"),
        (4.0, ["cheap", "good"], "optimal"),
    ]
    assert [p["gamma"] for p in ran.json["points"]] == pytest.approx([0.0, 1.0, 2.0, 5**0.5])
    assert ran.json["complete"]


def test_written_curve_is_the_printed_one(run, file, tmp_path):
    ran = run("frontier", file, "--json", "-o", tmp_path / "curve.json")
    assert json.loads((tmp_path / "curve.json").read_text()) == ran.json
    assert (ran.json["format"], ran.json["version"]) == ("rrf-frontier", 1)


def test_text_and_limits(run, file):
    whole = run("frontier", file).out
    assert "Nothing larger is possible for more money: proven." in whole
    assert whole.count("proven best") == 4
    assert len(run("frontier", file, "--budget", "3", "--json").json["points"]) == 3
    assert "The curve may go on" in run("frontier", file, "--time-limit", "0").out
    assert run("frontier", file, "--objective", "nonsense").code == 2


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
