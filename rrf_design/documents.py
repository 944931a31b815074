"""What the program writes down: one list of formats, one strict JSON, one JUnit.

A result becomes a document by `sealed`, and nothing that lacks a name in `FORMATS` is written.
Readers ask `checked` first: a document of another kind or version is refused in one line. A version
is raised when a key changes its meaning or goes; a key that is added leaves it as it is. JSON is
written whole or not at all and holds no NaN, no infinity and no key twice. `write_junit` tells CI
systems the same: one case per thing that was asked, a failure with its reason. Pages
(`rrf_design.reporting`) are functions of such documents.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import secrets
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree

from rrf_design.errors import InputError
from rrf_design.texts import whole


@dataclass(frozen=True, slots=True)
class _Format:
    name: str
    version: int
    about: str


FORMATS = {
    entry.name: entry
    for entry in (
        _Format("rrf-plan", 2, "what to buy, how good it is, and how far from the best possible"),
        _Format("rrf-dataset-plan", 1, "what every item of a table buys, under one budget or for one goal"),
        _Format("rrf-estimate", 1, "calls, tokens and money of a run over a table"),
        _Format("rrf-frontier", 1, "the largest margin that each amount of money buys"),
        _Format("rrf-certificate", 4, "what is proven about a design (docs/certificate-specification.md)"),
        _Format("rrf-explanation", 1, "why a margin is no larger, and what would help"),
        _Format("rrf-repair", 2, "which answers were wrong, what they become, and the verdict"),
        _Format("rrf-repair-batch", 2, "repairs of many fields"),
        _Format("rrf-delivery", 1, "what may be handed over of every item of a table"),
        _Format("rrf-delivered", 1, "a table handed over: looks, draws, and what they prove of it (docs/promises.md)"),
        _Format("rrf-run", 2, "what a run bought, and what came of it"),
        _Format("rrf-runs", 1, "the runs of a store"),
        _Format("rrf-answer", 1, "one recorded answer of a model, as it was asked and given"),
        _Format("rrf-parser-sensitivity", 1, "the same answers read by several parsers"),
        _Format("rrf-item-table", 1, "every item of a data set as its page shows it, and what lies behind it"),
        _Format("rrf-demo", 1, "what the demonstration came to"),
        _Format("rrf-scenario", 1, "what a scenario found"),
        _Format("rrf-policy", 1, "how to run a data set, and every test that proves it (docs/promises.md)"),
        _Format("rrf-policy-run", 1, "what a policy delivered, with the sentence that may be said about it"),
        _Format("rrf-measurement", 1, "what labels say about answers, relations, repeats and judges"),
        _Format("rrf-audit", 1, "delivered items drawn and checked: a bound on the wrong ones (docs/promises.md)"),
    )
}


def sealed(name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """The content as a document of this format."""
    entry = FORMATS[name]
    return {"format": entry.name, "version": entry.version, **content}


def kind_of(data: Any) -> str | None:
    """The name of a document's format; None for what is no document."""
    name = data.get("format") if isinstance(data, Mapping) else None
    return name.partition("/")[0] if isinstance(name, str) else None


def checked(data: Any, name: str, *, what: str = "document") -> Mapping[str, Any]:
    """The data, if it is a document of this format and version; InputError says what it is
    instead.
    """
    if kind_of(data) != name:
        raise InputError(f"not {'an' if what[:1] in 'aeiou' else 'a'} {what}: the format should be {name!r}")
    version = FORMATS[name].version
    if data.get("version") != version or isinstance(data.get("version"), bool):
        raise InputError(f"{what} version {data.get('version')!r} is not known here; this release reads {version}")
    return data  # type: ignore[no-any-return]


def in_todays_words(data: Any) -> Any:
    """The same data with the verdicts of today: documents of 0.2 said `certified` of values, which
    is `consistent` now.
    """
    if isinstance(data, Mapping):
        found = {name: in_todays_words(value) for name, value in data.items()}
        if found.get("verdict") == "certified":
            found["verdict"] = "consistent"
        counts = found.get("verdicts")
        if isinstance(counts, dict) and "certified" in counts:
            found["verdicts"] = {"checked": 0, **{_TODAY.get(name, name): count for name, count in counts.items()}}
        return found
    return [in_todays_words(one) for one in data] if isinstance(data, list | tuple) else data


_TODAY = {"certified": "consistent"}

LARGEST = 1 << 30
"""Bytes; a larger file is refused before it fills the memory."""


DEEPEST = 100
"""Lists and tables within each other; nothing that is written here comes near."""


def _loads(text: str, *, parse_float: Callable[[str], Any] | None = None) -> Any:
    """The value in a text; ValueError says what is not JSON.

    `parse_float` reads numbers with a point, float by default.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=parse_float)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if text.count("[") + text.count("{") > DEEPEST and _deep(found):
        raise ValueError("nested too deep")  # a parser may go deeper than whoever walks what it read
    return found


def _deep(value: Any) -> bool:
    """Whether lists and tables stand in each other more than DEEPEST deep."""
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(DEEPEST):
        inside = (part for one in level for part in (one.values() if isinstance(one, dict) else one))
        level = [part for part in inside if isinstance(part, list | dict)]
        if not level:
            return False
    return True


def loads_each(texts: Sequence[str], *, parse_float: Callable[[str], Any] | None = None) -> list[Any]:
    """The values of many texts; in place of each that is not JSON the ValueError that says so."""
    found: list[Any] = []
    for text in texts:
        try:
            found.append(_loads(text, parse_float=parse_float))
        except ValueError as error:
            found.append(error)
    return found


def value_in(text: str, where: str = "", *, instead: str = "") -> Any:
    """`loads` of what a person wrote: InputError says where it is no JSON, and what to write
    instead of NaN and infinities.
    """
    try:
        return _loads(text)
    except ValueError as error:
        hint = instead if str(error).endswith("is not JSON") else ""
        raise InputError(f"{where + ': ' if where else ''}not valid JSON: {error}{hint}") from None


def text_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers.

    A line ends where JSON can't go on: U+2028 and U+0085 may stand in a string.
    """
    lines = enumerate(re.split("\r\n|\r|\n", text), start=1)
    return ((number, line) for number, line in lines if line.strip())


def csv_rows(text: str) -> tuple[list[str], list[tuple[int, dict[str, Any]]]]:
    """The header of a CSV text, and its rows by column, each with the line it ends in; cells beyond
    the header are under `too many cells`. InputError for what is no CSV.
    """
    if csv.field_size_limit() < LARGEST:
        csv.field_size_limit(LARGEST)  # an answer may be longer than the 131,072 characters of a cell by default
    reader = csv.DictReader(io.StringIO(text), restkey="too many cells")
    try:
        return list(reader.fieldnames or []), [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InputError(f"line {reader.line_num + 1}: not CSV ({error})") from None


def read(path: str | os.PathLike[str], *, what: str = "document") -> Any:
    """The value in a file; InputError in one line where it can't be read."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path}: larger than {LARGEST >> 20} MiB; not a {what}")
        return _loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable {what} ({error})") from None


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file whole or not at all; nothing is left behind when it fails."""
    write_bytes(path, whole(text).encode())


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """The same for bytes."""
    with writing(path) as stream:
        stream.write(content)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream to a file that is there, whole, when the block ends, and not at all when it
    fails.
    """
    temporary: Path | None = None
    try:
        target = Path(os.path.realpath(path))  # through a link, not over it
        given = Path(path)
        if given.exists() and not given.is_file() and not given.is_dir():
            with given.open("wb") as device:  # a pipe or a device can't be replaced, and a pipe's link leads nowhere
                yield device
            return
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
        temporary = None
    except InputError:  # the block's own, which is a ValueError too
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: can't be written ({reason(error)})".replace("\0", "\\0")) from None
    finally:
        if temporary is not None:
            with suppress(OSError):  # it may never have come to be
                temporary.unlink()


def reason(error: Exception) -> str:
    """What the system says of a failure, in lower case."""
    return str(getattr(error, "strerror", None) or error).lower()


def _dumps(document: Any) -> str:
    """Full precision, two spaces, a newline at the end; ValueError for NaN and infinities."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write(path: str | os.PathLike[str], document: Any) -> None:
    """Write a document whole or not at all."""
    write_text(path, _dumps(document))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {double!r} stands twice in one object")
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


Case = tuple[str, float, str | None]
"""Name, seconds, and what failed (None: passed)."""


def write_junit(path: Path, suite: str, cases: Sequence[Case]) -> None:
    """Write the report; control characters, which XML can't hold, become question marks."""
    failures = sum(fault is not None for _, _, fault in cases)
    seconds = sum(time for _, time, _ in cases)
    attributes = {"name": _plain(suite), "tests": str(len(cases)), "failures": str(failures), "errors": "0"}
    root = ElementTree.Element("testsuites", attributes)
    group = ElementTree.SubElement(root, "testsuite", {**attributes, "time": f"{seconds:.3f}"})
    for name, time, fault in cases:
        case = ElementTree.SubElement(
            group, "testcase", {"classname": _plain(suite), "name": _plain(name), "time": f"{time:.3f}"}
        )
        if fault is not None:
            ElementTree.SubElement(case, "failure", {"message": _plain(fault)}).text = _plain(fault)
    write_text(path, '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n")


def _verdict_case(name: str, verdict: str, reason: str, *, seconds: float = 0.0) -> Case:
    """What is checked or consistent passes; anything else fails, with its verdict and reason."""
    if verdict in ("checked", "consistent"):
        return name, seconds, None
    return name, seconds, f"{verdict}: {reason}" if reason else verdict


def run_cases(run: Mapping[str, Any]) -> list[Case]:
    """One case per field of an `rrf-run`; its time is that between its first and its last
    purchase.
    """
    moments: dict[str, list[float]] = defaultdict(list)
    for purchase in run["purchases"]:
        moments[purchase["item"]].append(float(purchase.get("at") or 0.0))
    cases = []
    for item in run["items"]:
        reason = (item.get("repair") or {}).get("reason") or item.get("detail") or item["stopped_because"]
        times = moments[item["item"]] or [0.0]
        name = str(item["item"] or item["name"])
        cases.append(_verdict_case(name, item["verdict"], str(reason), seconds=max(times) - min(times)))
    return cases


def repair_cases(repair: Mapping[str, Any], name: str) -> list[Case]:
    """One case for an `rrf-repair`; for an `rrf-repair-batch` one per field."""
    fields = repair.get("items", [{"field": name, **repair}])
    return [
        _verdict_case(
            str(entry["field"]),
            str(entry["verdict"]),
            str(entry["reason"]),
            seconds=float((entry.get("diagnostics") or {}).get("seconds") or 0.0),
        )
        for entry in fields
    ]


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\t\n" else "?" for c in text)
