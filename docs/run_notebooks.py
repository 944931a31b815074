"""Runs the notebooks in docs/notebooks and writes what their cells print into them: `make
notebooks`, or `python docs/run_notebooks.py`.

A notebook runs in one namespace and an empty folder, and `!rrf-design ...` is the command itself,
so that no kernel is needed. Only lines of text are kept: what a test can compare.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parent / "notebooks"


def run(notebook: dict[str, Any], name: str) -> list[str]:
    """What every code cell prints, in the folder where this process is."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    return [
        _cell("".join(cell["source"]), f"{name}, cell {number}", namespace)
        for number, cell in enumerate(notebook["cells"], start=1)
        if cell["cell_type"] == "code"
    ]


def _cell(source: str, where: str, namespace: dict[str, Any]) -> str:
    lines = [f"_run_command({line[1:]!r})" if line.startswith("!") else line for line in source.split("\n")]
    parsed = ast.parse("\n".join(lines), where)
    last = parsed.body.pop() if parsed.body and isinstance(parsed.body[-1], ast.Expr) else None
    printed = io.StringIO()
    namespace["_run_command"] = _run_command
    with contextlib.redirect_stdout(printed):
        exec(compile(parsed, where, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), namespace)
            if value is not None:
                print(value if isinstance(value, str) else repr(value))
    return printed.getvalue()


def _run_command(line: str) -> None:
    """One of our own commands, in this process; its messages are not kept."""
    from rrf_design.cli import main
    from rrf_design.cli.output import _console

    program, *arguments = shlex.split(line)
    if program != "rrf-design":
        raise ValueError(f"only rrf-design can be run: {line}")
    _console.cache_clear()
    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            main(arguments)
    except SystemExit as ended:
        if ended.code not in (0, 1, None):
            raise RuntimeError(f"{line}: {messages.getvalue()}") from None
    finally:
        _console.cache_clear()


def with_outputs(notebook: dict[str, Any], printed: list[str]) -> dict[str, Any]:
    """The notebook with these outputs and nothing else that a run leaves behind."""
    told = iter(printed)
    cells = []
    for cell in notebook["cells"]:
        kept = {"cell_type": cell["cell_type"], "id": cell["id"], "metadata": {}, "source": cell["source"]}
        if cell["cell_type"] == "code":
            lines = next(told).splitlines(keepends=True)
            output = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
            kept |= {"execution_count": None, "outputs": output}
        cells.append(kept)
    return {**notebook, "cells": cells}


def main() -> None:
    here = os.getcwd()
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder:
            os.environ["RRF_CACHE"] = str(Path(folder) / "kept")
            os.chdir(folder)
            try:
                printed = run(notebook, path.name)
            finally:
                os.chdir(here)
        text = json.dumps(with_outputs(notebook, printed), indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")
        print(f"ran {path.name}")


if __name__ == "__main__":
    sys.path.insert(0, str(NOTEBOOKS.parent.parent))
    os.environ["COLUMNS"] = "100"
    main()
