"""One schema in two formats: a round trip without loss, a digest of the meaning, and only one-line
errors, whatever comes in.
"""

from __future__ import annotations

import copy
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rrf_design as rrf
from rrf_design import InputError, Problem
from rrf_design.documents import write_bytes, write_text
from rrf_design.field import dumped
from rrf_design.files import SECTIONS, from_document, suggestion, to_document

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
REALS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30) | st.sampled_from(
    [0.0, -0.0, 1e-300, -1e-300, 5e-324, 1e30, 0.1, 1 / 3, 3, -7, 2**53 + 1]
)
SIZES = st.floats(min_value=1e-30, max_value=1e30) | st.sampled_from([1, 1e-30, 3])
PLAIN = st.recursive(
    st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inside, max_size=3),
    max_leaves=8,
)  # fmt: skip
TABLES = st.dictionaries(TEXT, PLAIN, max_size=3)


def maybe(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Valid documents with every key of the schema."""
    ids = draw(st.lists(TEXT, min_size=4, max_size=10, unique=True))
    count = draw(st.integers(1, len(ids) - 3))
    dims = {name: draw(st.integers(1, 3)) for name in ids[:count]}
    nodes = [
        {
            "id": name,
            **({"dim": dim} if dim > 1 or draw(st.booleans()) else {}),
            **draw(
                maybe(cost=st.floats(0, 1e9) | st.just(2), metric=SIZES, prompt=TEXT, system=TEXT, parser=TEXT | TABLES,
                      variables=TABLES, max_tokens=st.integers(1, 10**12))
            ),
        }
        for name, dim in dims.items()
    ]  # fmt: skip
    relations, anchors, sale = [], [], []
    names = st.sampled_from(ids[:count])
    blocks = ids[count:-2]
    for name in blocks:
        common = draw(maybe(uncertainty=st.floats(0, 1e3), cost=st.floats(0, 1e9), weight=SIZES))
        common |= draw(
            st.sampled_from([{}, {"sigma": 2}, {"metric": 0.5}, {"requires": blocks[:1]}, {"excludes": blocks[:2]}])
        )
        if "cost" in common:
            sale.append(name)
        if draw(st.booleans()):
            tail, head = draw(names), draw(names)
            kinds = [{"matrix": [[draw(REALS) for _ in range(dims[tail])] for _ in range(dims[head])]}]
            kinds.append(
                {"select": draw(st.lists(st.integers(0, dims[tail] - 1), min_size=dims[head], max_size=dims[head]))}
            )
            if dims[tail] == dims[head]:
                kinds += ["identity", {"scale": draw(REALS)}, {"permute": draw(st.permutations(range(dims[tail])))}]  # type: ignore[list-item]
            offset = draw(REALS | st.lists(REALS, min_size=dims[head], max_size=dims[head]))
            relations.append(
                {
                    "id": name,
                    "tail": tail,
                    "head": head,
                    "transport": draw(st.sampled_from(kinds)),
                    "offset": offset,
                    **common,
                }
            )
        else:
            node = draw(names)
            rows = (
                {"rows": [[draw(REALS) for _ in range(dims[node])]], "value": draw(REALS)}
                if draw(st.booleans())
                else {}
            )
            place = {"node": node} if draw(st.booleans()) else {"nodes": [node]}
            anchors.append({"id": name, **place, **rows, **draw(maybe(source=TEXT | TABLES)), **common})
    settings = draw(
        maybe(name=TEXT, k=st.integers(1, 10**9), budget=st.floats(0, 1e9) | st.just(3), target=st.floats(0, 10), epsilon=st.floats(0, 1),
              confidence=st.floats(0.01, 0.99), delta=SIZES, amplitude=SIZES, variance_floor=st.floats(0, 1), shrinkage=st.floats(0, 1))
    )  # fmt: skip
    result: dict[str, Any] = {"problem": settings, "nodes": nodes, "relations": relations, "anchors": anchors}
    if sale:
        result["rules"] = [
            {"id": ids[-1], "blocks": sale[:2], **draw(maybe(at_least=st.integers(0, 2), at_most=st.integers(0, 2)))}
        ]
        result["tiers"] = [
            {"id": ids[-2], "blocks": sale, "prices": draw(st.lists(st.floats(0, 1e6), min_size=1, max_size=3))}
        ]
    return result


MANY = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@MANY
@given(documents())
def test_round_trip_without_loss(document: dict[str, Any]) -> None:
    problem = from_document(document)
    for kind in ("toml", "json"):
        again = rrf.loads(rrf.dumps(problem, kind), kind)
        assert again == problem
        assert repr(again) == re.sub(r"-0\.0(?![0-9e])", "0.0", repr(problem))  # repr tells 1 from 1.0
        assert rrf.digest(again) == rrf.digest(problem)
    assert tomllib.loads(rrf.dumps(problem, "toml")) == json.loads(rrf.dumps(problem, "json"))  # one schema


@MANY
@given(documents())
def test_entries_are_read_off_as_pydantic_writes_them(document: dict[str, Any]) -> None:
    problem = from_document(document)
    found, expected = to_document(problem), dumped(problem)
    for key in SECTIONS:
        assert repr(found.get(key)) == repr(expected.get(key))  # repr tells 1 from 1.0, and the order


def shuffled(value: Any, order: int) -> Any:
    """The same tables with their keys in another order, and floats that are whole written as
    integers.
    """
    if isinstance(value, dict):
        items = [(key, shuffled(item, order)) for key, item in value.items()]
        return dict(items[order % max(len(items), 1) :] + items[: order % max(len(items), 1)])
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value


@MANY
@given(documents(), st.integers(1, 5))
def test_the_digest_is_of_the_meaning(document: dict[str, Any], order: int) -> None:
    problem = from_document(document)
    assert rrf.digest(from_document(shuffled(document, order))) == rrf.digest(problem)
    assert rrf.digest(rrf.loads(json.dumps(document, indent=7), "json")) == rrf.digest(problem)


SAMPLE: dict[str, Any] = {
    "problem": {
        "name": "sample",
        "k": 1,
        "budget": 3.0,
        "target": 0.5,
        "epsilon": 0.02,
        "delta": 0.1,
        "shrinkage": 0.1,
    },
    "nodes": [
        {"id": "a", "dim": 2, "metric": [[2.0, 0.5], [0.5, 1.0]]},
        {"id": "b", "prompt": "what?", "parser": {"type": "number", "digits": 3}, "max_tokens": 20},
        {"id": "c", "dim": 2, "cost": 1.5, "variables": {"x": [1, {"y": 2.5}]}},
    ],
    "relations": [
        {
            "id": "r1",
            "tail": "a",
            "head": "b",
            "transport": {"select": [1]},
            "offset": 0.25,
            "weight": 2.0,
            "family": "f",
        },
        {"id": "r2", "tail": "a", "head": "b", "transport": {"matrix": [[0.5, 4.0]]}, "weight": 2.0, "family": "f"},
        {
            "id": "r3",
            "tail": "a",
            "head": "c",
            "covariance": [[3.0, 1.0], [1.0, 3.0]],
            "uncertainty": 0.125,
            "cost": 1.0,
        },
    ],
    "anchors": [
        {"id": "x", "node": "b", "rows": [[7.0]], "value": 17.0, "sigma": 0.5, "cost": 2.0, "requires": ["r3"]}
    ],
    "rules": [{"id": "q", "blocks": ["r3", "x"], "at_most": 2}],
    "tiers": [{"id": "t", "blocks": ["x"], "prices": [2.0, 1.0]}],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, leaves and branches."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [path, *(p for key, item in items for p in places(item, (*path, key)))]
    return [path]


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    result = copy.deepcopy(document)
    if not path:
        return value
    at(result, path[:-1])[path[-1]] = value
    return result


def test_the_digest_changes_with_every_number() -> None:
    numbers = [path for path in places(SAMPLE) if isinstance(at(SAMPLE, path), int | float) and stands_alone(path)]
    assert len(numbers) == 28
    digests = {rrf.digest(from_document(SAMPLE))}
    for path in numbers:
        value = at(SAMPLE, path)
        other = 0 if "select" in path else value + 1 if isinstance(value, int) else value * 1.5
        digests.add(rrf.digest(from_document(replaced(SAMPLE, path, other))))
    assert len(digests) == 1 + len(numbers)


def stands_alone(path: tuple[Any, ...]) -> bool:
    """A dimension, a family's weight and half of a symmetric matrix can't change without something
    else.
    """
    return path[-1] not in ("dim", "weight") and not (
        ("covariance" in path or "metric" in path) and path[-1] != path[-2]
    )


def test_defaults_written_out_change_nothing() -> None:
    plain = rrf.loads('[[nodes]]\nid = "a"\n[[nodes]]\nid = "b"\n[[relations]]\nid = "r"\ntail = "a"\nhead = "b"\n')
    written = rrf.loads(
        '[problem]\nk = 1\nconfidence = 0.95\n[[nodes]]\nid = "a"\ndim = 1\n[[nodes]]\nid = "b"\n[[relations]]\nweight'
        ' = 1\nid = "r"\nhead = "b"\ntail = "a"\ntransport = "identity"\noffset = 0\nuncertainty = 0\n'
    )
    assert plain == written
    assert rrf.digest(plain) == rrf.digest(written)


@pytest.mark.parametrize("ending", [".toml", ".json", ".TOML"])
def test_files(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"problem{ending}"
    problem = from_document(SAMPLE)
    rrf.save(problem, path)
    assert rrf.load(path) == problem
    assert rrf.load(str(path)) == problem
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))  # as some editors leave it
    assert rrf.load(path) == problem


def test_the_page_users_rely_on() -> None:
    text = """
    [problem]
    name = "triangle and isolate"
    k = 1                      # corruption budget
    budget = 3.0
    [[nodes]]
    id = "original"
    dim = 1
    [[nodes]]
    id = "isolate"
    [[relations]]
    id = "r01"
    tail = "original"
    head = "isolate"
    transport = { scale = 3.0 }
    offset = 0.0
    weight = 1.0
    family = "paraphrase"
    sigma = 1.0
    uncertainty = 0.0
    cost = 1.0
    [[anchors]]
    id = "a3"
    node = "isolate"
    rows = "identity"
    value = [17.0]
    cost = 2.0
    """
    problem = rrf.loads(text)
    assert problem.on_sale == ("r01", "a3")
    assert to_document(problem)["anchors"] == [{"id": "a3", "cost": 2.0, "node": "isolate", "value": [17.0]}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[nodes]]\nid = "a"\ndmi = 2', "node 'a': unknown key 'dmi'; did you mean 'dim'?"),
        ('[problem]\nbugdet = 2\n[[nodes]]\nid = "a"', "[problem]: unknown key 'bugdet'; did you mean 'budget'?"),
        ('[[node]]\nid = "a"', "unknown section 'node'; did you mean 'nodes'?"),
        ('[nodes]\nid = "a"', "nodes: must be a list of tables; write [[nodes]]"),
        ("problem = 3\nnodes = []", "problem: must be a table"),
        ("", "nodes: the field is empty; declare at least one node"),
        ("nodes = []", "nodes: the field is empty"),
        ("[problem", "not valid TOML: "),
        ("k = " + "9" * 5000, "not valid TOML: "),
        ("a = " + "[" * 5000, "nested too deeply"),
        ('[[nodes]]\nid = "a"\nvariables = { day = 2020-01-01 }', "node 'a': variables: only text"),
    ],
)
def test_faults_name_the_file_too(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        rrf.load(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"problem": {"k": 1, "k": 2}}', "the key 'k' stands twice in one table"),
        ('{"nodes": [{"id": "a", "cost": NaN}]}', "NaN is not a number that can be used here"),
        ('{"nodes": [{"id": "a", "cost": -Infinity}]}', "-Infinity is not a number"),
        ('{"nodes": [{"id": "a", "cost": 1e999}]}', "node 'a': cost must be a finite number, not inf"),
        ('{"nodes": [{"id": "\\ud800"}]}', "node '\\ud800': id must be valid Unicode text"),
        ('{"nodes": null}', "nodes: must be a list of tables"),
        ("[1, 2]", "the top level must be a table"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "not valid JSON: "),
        ("9" * 5000, "not valid JSON: "),
    ],
)
def test_faults_of_json(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        rrf.loads(text, "json")
    assert str(caught.value).startswith(message)


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'[[nodes]]\nid = "\xe9"')
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "p.yaml").write_text("nodes:")
    for name, message in {
        "none.toml": "no such file",
        "latin.toml": "not UTF-8 text (at byte 16)",
        "folder.toml": "can't be read (is a directory)",
        "p.yaml": "problem files end in .toml or .json, not '.yaml'",
        "latin.toml/x.toml": "can't be read (not a directory)",
        "x" * 5000 + ".toml": "can't be read (file name too long)",
        "a\0b.toml": "can't be read (embedded null byte)",
    }.items():
        with pytest.raises(InputError) as caught:
            rrf.load(tmp_path / name)
        assert message in str(caught.value)
        assert str(tmp_path) in str(caught.value)


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")  # the real thing does not happen to root

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match=r"p\.toml: can't be read \(permission denied\)"):
        rrf.load(tmp_path / "p.toml")


@pytest.mark.parametrize(
    "call", [lambda p: rrf.dumps(p, "yaml"), lambda p: rrf.save(p, "p.yml"), lambda p: rrf.save(p, "p")]
)
def test_other_formats_are_refused(call: Any) -> None:
    with pytest.raises(InputError, match=r"end in \.toml or \.json"):
        call(from_document(SAMPLE))


HOSTILE: list[Any] = [
    None, True, 0, -1, 1.5, 10**30, -(10**400), float("nan"), float("inf"), 1e308, 5e-324, "", "a", "identity", "\0", "é" * 50, [], [[]],
    [[[]]], {}, {"id": "a"}, [1.0], ["a", "a"], [[1.0, float("nan")]], {"scale": 1e308}, {"": {}}, 10**6, -0.0, "all",
    2**63, [1e308] * 3, [[1e-200, 0], [0, 1e-200]], [[1e308, 0], [0, 1e308]], {"matrix": [[1e308, 1e308]]}, "b", "r1", ["r1"], 1e-308, 2,
]  # fmt: skip


def attempt(call: Callable[..., Problem], *arguments: Any) -> Problem | None:
    """The problem, or None when it was refused in one line; anything else fails the test."""
    try:
        return call(*arguments)
    except InputError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 500
    return None


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_mutated_documents_only_ever_give_input_errors(data: st.DataObject) -> None:
    document = copy.deepcopy(SAMPLE)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(document)))
        here = at(document, path)
        kind = data.draw(st.sampled_from(["replace", "remove", "repeat", "add"]))
        if kind == "remove" and path:
            del at(document, path[:-1])[path[-1]]
        elif kind == "repeat" and isinstance(here, list) and here:
            here.append(copy.deepcopy(here[0]))
        elif kind == "add" and isinstance(here, dict):
            key = data.draw(st.sampled_from(["k", "id", "nodes", "sigma", "metric", "x", "cost"]))
            here[key] = copy.deepcopy(data.draw(st.sampled_from(HOSTILE)))
        else:
            document = replaced(document, path, copy.deepcopy(data.draw(st.sampled_from(HOSTILE))))
        if not isinstance(document, dict | list):
            break
    problem = attempt(from_document, document)
    if problem is None:
        return
    assert rrf.loads(rrf.dumps(problem)) == problem
    assert len(rrf.digest(problem)) == 64


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from(["toml", "json"]))
def test_mutated_text_only_ever_gives_input_errors(data: st.DataObject, kind: str) -> None:
    text = rrf.dumps(from_document(SAMPLE), kind)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 12))
        piece = data.draw(
            st.text(max_size=4) | st.sampled_from(["[", "{", '"', "=", "1e999", "nan", "-", "[[nodes]]", ",", "\\"])
        )
        text = text[:start] + piece + text[start + length :]
    attempt(rrf.loads, text, kind)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_any_bytes_only_ever_give_input_errors(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(content)
    with pytest.raises(InputError):
        rrf.load(path)


def test_writing_replaces_whole_files_and_keeps_their_mode(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    write_text(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask  # as any program would create it
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    write_text(link, "two")
    assert path.read_text() == "two"
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "p.txt"]


def test_a_device_is_written_into_and_stays_one() -> None:
    write_text("/dev/null", "gone")
    assert Path("/dev/null").is_char_device()


def test_failed_writes_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.toml"
    path.write_text("old")
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "none" / "p.toml", tmp_path / "folder", path / "x", tmp_path / "a\0b"):
        with pytest.raises(InputError, match="can't be written"):
            write_text(place, "new")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(InputError, match=r"can't be written \(no space left on device\)"):
                write_bytes(path, b"new")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_bytes(path, b"new")
    assert path.read_text() == "old"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["folder", "p.toml"]


def test_suggestions() -> None:
    assert suggestion("wieght", ["weight", "head"]) == "; did you mean 'weight'?"
    assert suggestion("zzz", ["weight", "head"]) == ""


def test_python_and_file_give_one_problem() -> None:
    settings_, entries = SAMPLE["problem"], {key: value for key, value in SAMPLE.items() if key != "problem"}
    assert Problem(**settings_, **entries) == from_document(SAMPLE) == rrf.loads(json.dumps(SAMPLE), "json")


def test_a_pipe_that_is_named_by_a_link_is_written_to() -> None:
    """/dev/stdout of a shell's pipe: a link that leads to no name."""
    import os

    from rrf_design.documents import write_text

    reading, writing_end = os.pipe()
    try:
        write_text(f"/dev/fd/{writing_end}", "whole")
        assert os.read(reading, 100) == b"whole"
    finally:
        os.close(reading)
        os.close(writing_end)
