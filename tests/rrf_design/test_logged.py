"""Noise from a log of repeats: the sample covariance by its definition, raised by enough, and one
line where a log says nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.checker.noise import inflation
from rrf_design.files import estimate
from rrf_design.rows import estimate_confidence, whitener

FILE = """
[problem]
k = 1
delta = 5.0

[[nodes]]
id = "net"

[[nodes]]
id = "gross"

[[relations]]
id = "vat"
tail = "net"
head = "gross"
transport = {{ scale = 1.19 }}
sigma = 0.1

[[anchors]]
id = "label net"
node = "net"
value = [100.0]
{one}

[[anchors]]
id = "label gross"
node = "gross"
value = [119.0]
{other}

{noise}
"""
LOG = 'estimated_from = "log.csv"'
TOGETHER = f'[[noise]]\nid = "annotator"\nblocks = ["label net", "label gross"]\n{LOG}'


def written(folder: Path, draws: np.ndarray, *, one: str = "", other: str = "", noise: str = TOGETHER) -> Path:
    """A problem file and its log: draws are (ids, repeats, 2), as what both labels said."""
    rows = ["id,node,repeat,value"]
    for item, repeats in enumerate(draws):
        for repeat, pair in enumerate(repeats, start=1):
            rows += [
                f"i{item},{name},{repeat},{value!r}"
                for name, value in zip(("label net", "label gross"), pair.tolist(), strict=True)
            ]
    (folder / "log.csv").write_text("\n".join(rows))
    (folder / "problem.toml").write_text(FILE.format(one=one, other=other, noise=noise))
    return folder / "problem.toml"


def drawn(seed: int, *, ids: int = 5, repeats: int = 30, covariance: np.ndarray | None = None) -> np.ndarray:
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.array([[0.01, 0.006], [0.006, 0.02]]) if covariance is None else covariance)
    return rng.normal(100, 10, (ids, 1, 2)) + rng.normal(size=(ids, repeats, 2)) @ root.T


def test_the_covariance_is_that_around_the_mean_of_each_id(tmp_path: Path) -> None:
    draws = drawn(0)
    problem = rrf.load(written(tmp_path, draws))
    away = (draws - draws.mean(axis=1, keepdims=True)).reshape(-1, 2)
    wanted = away.T @ away / (5 * 29)
    assert np.array(problem.noise[0].covariance) == pytest.approx(wanted)
    assert problem.noise[0].estimated_from == 146
    assert [problem.block_by_id[n].estimated_from for n in ("label net", "label gross")] == [146, 146]
    assert problem.block_by_id["label net"].sigma == pytest.approx(wanted[0, 0] ** 0.5)
    assert rrf.loads(rrf.dumps(problem)) == problem  # the numbers stand in the document, not the log


def test_each_by_itself(tmp_path: Path) -> None:
    problem = rrf.load(written(tmp_path, drawn(0), one=LOG, other="sigma = 0.1", noise=""))
    block = problem.block_by_id["label net"]
    assert (block.estimated_from, problem.estimated) == (146, frozenset(["label net"]))
    factor = inflation(rows=1, repeats=146, confidence=estimate_confidence(problem))
    white = whitener(problem, block, 1)
    assert white is not None
    assert white[0, 0] == pytest.approx(1 / ((block.sigma or 0.0) * factor**0.5))


def test_rows_of_a_relation_are_made_of_the_answers_of_its_nodes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    answers = rng.normal(size=(40, 2))
    lines = [
        f'{{"id": "a", "node": "{n}", "repeat": {r + 1}, "value": {float(answers[r, c])!r}}}'
        for r in range(40)
        for c, n in enumerate(("x", "y"))
    ]
    lines.append('{"id": "a", "node": "x", "repeat": 41, "status": "refusal"}')
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    text = (
        '[[nodes]]\nid = "x"\n[[nodes]]\nid = "y"\n[[relations]]\nid = "r"\ntail = "x"\nhead = "y"\ntransport = { scale'
        ' = 2.0 }\nestimated_from = "log.jsonl"\n'
    )
    (tmp_path / "p.toml").write_text(text)
    block = rrf.load(tmp_path / "p.toml").block_by_id["r"]
    assert block.sigma == pytest.approx(np.std(answers[:, 1] - 2 * answers[:, 0], ddof=1))
    assert block.estimated_from == 40


def test_what_was_raised_covers_the_truth_of_most_logs(tmp_path: Path) -> None:
    truth = np.array([[0.01, 0.006], [0.006, 0.02]])
    missed = 0
    for seed in range(40):
        problem = rrf.load(written(tmp_path, drawn(seed, ids=2, repeats=20)))
        whites = [whitener(problem, problem.block_by_id[n], 1) for n in ("label net", "label gross")]
        left = np.diag([float(w[0, 0]) for w in whites if w is not None])
        largest = np.linalg.eigvalsh(left @ truth @ left.T)[-1]
        missed += largest > problem.dilation["label net"]
    assert missed <= 2  # at most 2.5 % of all logs, by the promise


def test_a_certificate_carries_the_estimate_and_is_verified(tmp_path: Path) -> None:
    problem = rrf.load(written(tmp_path, drawn(1)))
    made = rrf.certify(problem)
    estimated = made.document["noise"]["estimated"]
    assert [(e["rows"], e["repeats"]) for e in estimated["blocks"]] == [(2, 146), (2, 146)]
    assert rrf.verify(made).valid
    known = problem.model_copy(
        update={
            "anchors": tuple(a.model_copy(update={"estimated_from": None}) for a in problem.anchors),
            "noise": tuple(n.model_copy(update={"estimated_from": None}) for n in problem.noise),
        }
    )
    assert problem.margin().value < known.margin().value
    few = rrf.load(written(tmp_path, drawn(1, repeats=8)))
    assert few.margin().value < problem.margin().value
    forged = json.loads(json.dumps(made.document))
    forged["noise"]["estimated"]["blocks"][0]["repeats"] = 20
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    assert not rrf.verify(tmp_path / "forged.json").valid


@pytest.mark.parametrize(
    ("draws", "changes", "message"),
    [
        (drawn(0, repeats=1), {}, "no id with two repeats"),
        (np.ones((2, 9, 2)), {}, "its repeats never differ"),
        (drawn(0), {"one": f"sigma = 0.1\n{LOG}", "noise": ""}, "the log says what the noise is; leave sigma out"),
        (drawn(0), {"one": LOG}, "the noise of 'label net' is estimated twice"),
        (drawn(0), {"noise": TOGETHER.replace("label net", "label nett")}, "unknown block 'label nett'"),
        (drawn(0), {"noise": TOGETHER.replace("log.csv", "none.csv")}, "none.csv"),
    ],
)
def test_what_a_log_can_not_say_is_one_line(
    tmp_path: Path, draws: np.ndarray, changes: dict[str, str], message: str
) -> None:
    path = written(tmp_path, draws, **changes)
    with pytest.raises(rrf.InputError, match=message) as caught:
        rrf.load(path)
    assert "\n" not in str(caught.value)


def scattered(folder: Path, values: np.ndarray, extra: str = "") -> Path:
    """A node whose σ is to be estimated; values are (ids, repeats)."""
    rows = ["id,node,repeat,value"]
    for item, repeats in enumerate(values.tolist()):
        rows += [f"{item},x,{repeat},{value!r}" for repeat, value in enumerate(repeats, start=1)]
    (folder / "log.csv").write_text("\n".join(rows) + "\n")
    path = folder / "scatter.toml"
    node = f'[[nodes]]\nid = "x"\n{LOG}\nagain = 0.1\nrepeats = 2\n{extra}\n'
    path.write_text(f'[problem]\nk = 1\n{node}[[anchors]]\nid = "a"\nnode = "x"\n')
    return path


def test_the_scatter_of_a_node_comes_from_a_log_and_is_raised(tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(size=(6, 9))
    problem = rrf.load(scattered(tmp_path, values))
    node = problem.nodes[0]
    spread = float(np.sum((values - values.mean(axis=1, keepdims=True)) ** 2) / (6 * 8))
    assert node.estimated_from == 49
    assert node.sigma == pytest.approx(spread**0.5)
    factor = inflation(rows=1, repeats=49, confidence=estimate_confidence(problem))
    answers = problem.design().radius(problem).answers
    assert answers is not None
    assert answers.nodes["x"] == pytest.approx((spread * factor / 2) ** 0.5)  # asked twice
    made = rrf.certify(problem)
    assert rrf.verify(made).valid
    (entry,) = made.document["noise"]["estimated"]["nodes"]
    assert entry["inflation"] == pytest.approx(factor)


@pytest.mark.parametrize(("key", "value"), [("inflation", 1.01), ("rows", 0), ("node", "y"), ("confidence", 1.0)])
def test_a_forged_scatter_is_refused(tmp_path: Path, key: str, value: object) -> None:
    from rrf_design.checker._steps import check_noise

    made = rrf.certify(rrf.load(scattered(tmp_path, np.random.default_rng(2).normal(size=(6, 9)))))
    document = json.loads(json.dumps(made.document))
    document["noise"]["estimated"]["nodes"][0][key] = value
    with pytest.raises(rrf.RRFError, match=r"noise\.estimated"):
        check_noise(document, made.record)


@pytest.mark.parametrize(
    ("extra", "message"), [("sigma = 0.1", "leave sigma out"), ("metric = 2.0", "leave metric out")]
)
def test_what_a_node_with_a_log_may_not_say(tmp_path: Path, extra: str, message: str) -> None:
    with pytest.raises(rrf.InputError, match=message):
        rrf.load(scattered(tmp_path, np.random.default_rng(2).normal(size=(6, 9)), extra))
    with pytest.raises(rrf.InputError, match="estimated_from speaks of sigma; give it"):
        rrf.Problem(nodes=[{"id": "x", "estimated_from": 9}])


def test_too_few_repeats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(rrf.InputError, match="4 repeats are too few to bound the covariance of 2 rows"):
        rrf.load(written(tmp_path, drawn(0, ids=1, repeats=4)))


def test_the_estimate_of_one_number_by_hand() -> None:
    draws = {
        ("a", 1): np.array([1.0]),
        ("a", 2): np.array([3.0]),
        ("b", 1): np.array([10.0]),
        ("b", 2): np.array([10.0]),
    }
    covariance, repeats = estimate(draws)
    assert (covariance.tolist(), repeats) == ([[1.0]], 3)
