"""Keys from a `.env` file: lines `NAME=value` in the working folder, for names that the environment does not have already.

Read when the first model that may need a key is made. A value is never shown, printed or logged: not even in the message about a
line that can't be read.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rrf_design.errors import InputError

FILE = ".env"
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""'([^']*)'\s*(?:#.*)?|"((?:[^"\\]|\\.)*)"\s*(?:#.*)?""")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def read_env(path: str | os.PathLike[str]) -> dict[str, str]:
    """The settings in a file; a line that is none is an error that names its number and nothing of its content."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: can't be read") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        said = _LINE.fullmatch(text)
        if said is None:
            raise InputError(f"{path}, line {number}: this is not NAME=value")
        found[said[1]] = _value(said[2], f"{path}, line {number}")
    return found


def load_keys() -> None:
    """Put what `.env` of the working folder says into the environment; what is there already stays."""
    if Path(FILE).is_file():
        for name, value in read_env(FILE).items():
            os.environ.setdefault(name, value)


def _value(text: str, where: str) -> str:
    if text[:1] in ("'", '"'):
        quoted = _QUOTED.fullmatch(text)
        if quoted is None:
            raise InputError(f"{where}: a quotation mark is not closed on its line")
        if quoted[1] is not None:
            return quoted[1]
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), quoted[2])
    return re.sub(r"\s+#.*", "", text).strip()
