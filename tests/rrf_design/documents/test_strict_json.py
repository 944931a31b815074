from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design.documents import dumps, loads, read, write
from rrf_design.errors import InputError


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    document = {"a": [1, 2.5, None, "é"], "b": {"c": True}}
    write(tmp_path / "x.json", document)
    assert read(tmp_path / "x.json") == document
    assert dumps(document).endswith("}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deep"),
        ("{", "Expecting"),
    ],
)
def test_what_is_not_json_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loads(text)
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "nowhere.json")


def test_infinities_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(tmp_path / "x.json", {"a": float("inf")})
    assert not (tmp_path / "x.json").exists()
