"""rrf-design parsers: what parsers there are, and how much depends on which one is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rrf_design.cli.output import Printer, say, table
from rrf_design.errors import InputError

Log = Annotated[
    Path | None,
    typer.Argument(
        help="Answers: a run's log (.jsonl, see `show --answers`) or one text per line.", show_default=False
    ),
]
Specs = Annotated[
    list[str] | None,
    typer.Option(
        "--parser", "-p", help='A parser by name, or as JSON: \'{"name": "choice", "options": ["a", "b"]}\'. Repeat.'
    ),
]

Forms = Annotated[
    bool, typer.Option("--forms", help="How numbers are read as people write them: several hundred written forms.")
]


def parsers_verb(file: Log = None, specs: Specs = None, forms: Forms = False, *, printer: Printer) -> int:
    """How much depends on the parser: read the same answers with several, and see where they part.

    Without a file, list the parsers. Exits with 1 when two of them read an answer differently.

    Example: rrf-design parsers answers.jsonl -p integer-strict -p integer-last

    How `1.234,50` and 480 other written forms are read: rrf-design parsers --forms
    """
    from rrf_design.responses import parsers as known
    from rrf_design.responses import sensitivity

    if forms:
        return _forms(printer)
    if file is None:
        reads = {name: known.reads(name) for name in known.names()}
        printer.result({"parsers": list(reads), "reads": reads}, lambda: _list(reads))
        return 0
    texts = _read_texts(file)
    chosen = [_spec(text) for text in specs or ("integer-strict", "integer-last", "integer-first")]
    result = sensitivity(texts, chosen)
    printer.result(result.document, lambda: _describe(result, texts))
    return 1 if result.disagreements else 0


def _list(reads: dict[str, str]) -> None:
    table("", ["parser", "reads"], list(reads.items()))
    say('In a problem file: parser = "decimal", or with options: parser = { name = "json", field = "total" }')


def _describe(result: Any, texts: list[str]) -> None:
    rows = [(name, f"{share:.1%}", str(result.violations[name])) for name, share in result.validity.items()]
    table(f"{len(texts)} answers", ["parser", "read", "only loosely"], rows, right=[1, 2])
    for index in result.disagreements[:20]:
        readings = "; ".join(
            f"{name}: {parsed.status if not parsed.ok else parsed.value if parsed.label is None else parsed.label}"
            for name, parsed in zip(result.parsers, result.parsed[index], strict=True)
        )
        say(f"answer {index + 1}: {readings}    {_short(texts[index])}")
    say(f"{len(result.disagreements)} of {len(texts)} answers are read in more than one way.")


def _forms(printer: Printer) -> int:
    """Print the table of written forms; 1 if the program reads one of them otherwise."""
    from rrf_design.responses.parsers import written_forms

    found = [(form, form.reading()) for form in written_forms()]
    wrong = [form for form, reading in found if reading != form.reads]
    rows = [{**form.document(), "reading": reading} for form, reading in found]

    def describe() -> None:
        shown = [(form.kind, repr(form.text), form.decimal or "", reading) for form, reading in found]
        table("", ["kind", "written", "declared decimal", "read as"], shown)
        refused = sum(not reading[-1:].isdigit() for _, reading in found)
        read = f"{len(found)} forms: {len(found) - refused} read, {refused} refused"
        say(f"{read}, {len(wrong)} otherwise than they should be.")

    printer.result({"forms": rows, "count": len(rows), "otherwise": len(wrong)}, describe)
    return 1 if wrong else 0


def _read_texts(file: Path) -> list[str]:
    """Answers of a log, or the lines of a text file."""
    if file.suffix == ".jsonl":
        from rrf_design.models import read_records

        texts = [entry["reply"]["text"] for entry in read_records(file) if entry["reply"].get("text") is not None]
    else:
        try:
            texts = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        except FileNotFoundError:
            raise InputError(f"{file}: no such file") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: can't be read as UTF-8 text ({error})") from None
    if not texts:
        raise InputError(f"{file}: holds no answers")
    return texts


def _spec(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"--parser {text:.80}: not valid JSON ({error})") from None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else f"{line[:57]}...")
