"""What a run came to: for people, as files, and how to go on with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.cli.output import Printer, hand_over, say, table
from rrf_design.errors import InputError
from rrf_design.texts import digits

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition
    from rrf_design.questions import Dataset
    from rrf_design.tables import Delivery


def describe(result: Acquisition) -> None:
    """A run for people."""
    detail = f" ({result.detail})" if result.detail and len(result.detail) < 200 else ""
    say(f"run {result.run}: {result.stopped_because}{detail}")
    lost = f", of it {digits(result.lost)} lost to a crash" if result.lost else ""
    money = f"; money {result.money:.6g}" if result.money else ""
    say(f"spent {digits(result.spent)}{lost}{money}; {len(result.purchases)} purchases, {result.calls} model calls")
    if len(result.models) > 1:
        cells = [
            (
                name,
                *(str(used[key]) for key in ("answers", "calls", "input_tokens", "output_tokens")),
                digits(used["money"]),
            )
            for name, used in result.models.items()
        ]
        table("", ["model", "answers", "calls", "tokens in", "tokens out", "money"], cells, right=[1, 2, 3, 4, 5])
    rows = [
        (
            entry.item or entry.name,
            f"{entry.gamma_lower:.4g}",
            "–" if entry.goal is None else f"{entry.goal:.4g}",
            entry.verdict.value,
            _wrong(entry.repair),
            entry.stopped_because,
        )
        for entry in result.items[:40]
    ]
    table("", ["field", "certified margin", "goal", "verdict", "wrong answers", "stopped because"], rows, right=[1, 2])
    if len(result.items) > 40:
        say(f"… and {len(result.items) - 40} more fields (--json has them all)")
    if len(result.items) == 1:
        reason = (result.items[0].repair or {}).get("reason", "")
        premise = f", assuming that {result.items[0].assumes}" if result.items[0].assumes else ""
        say(f"Verdict: {result.verdict}{premise}{f' ({reason})' if reason else ''}")
    else:
        say("Verdicts: " + ", ".join(f"{count} {name}" for name, count in result.verdicts.items() if count))
    if len(result.items) == 1 and result.repaired:
        failed, answers = result.items[0].failed, result.items[0].answers
        shown = [
            (node, _vector(answers.get(node)) or failed.get(node, ""), _vector(value) or "undetermined")
            for node, value in result.repaired.items()
        ]
        table("", ["node", "answer", "repaired"], shown)


def _wrong(repair: Any) -> str:
    if repair is None or repair.get("repaired") is None:
        return "" if repair is None else str(repair.get("reason", ""))
    if repair.get("verdict") == "contradicted":
        return "beyond repair"
    others = "not judged" if repair.get("decided_by") else "none"
    return ", ".join(repair["support"]) or others


def _vector(value: Any) -> str:
    return "" if value is None else ", ".join(map(digits, value))


def exit_code(result: Acquisition, *, well: bool) -> int:
    """130 where the user ended the session, as everywhere; else whether all is well."""
    from rrf_design.acquisition import INTERRUPTED

    if result.stopped_because == "paused" and result.detail == INTERRUPTED:
        return 130
    return 0 if well else 1


def tell_next(
    result: Acquisition,
    *,
    store: str | None,
    review: str | None = None,
    table_of: str = "",
    tell: Callable[[str], None] = say,
) -> None:
    """How to go on with a run that is not over: what is still asked, who is waited for, what has to
    be given again. `table_of` names a table's files as the command line does.
    """
    words = f"{table_of} " if table_of else ""
    again = f"rrf-design acquire {words}--resume {result.run}{_where(store)}{_given_again(result)}"
    if result.stopped_because in ("paused", "pending"):
        tell(f"Go on with: {again}")
    if not result.open_reviews:
        return
    from rrf_design.studio.labels import how_to_answer, shown

    many = f"{result.open_reviews} question{'s wait' if result.open_reviews > 1 else ' waits'} for people: "
    if review is None:
        tell(f"{many}write them with --review, then go on with: {again} --review FILE")
    else:
        tell(f"{many}{how_to_answer(review)}, then go on with: {again} --review {shown(review)}")


def _where(store: str | None) -> str:
    """The option that finds the run again; never with a password in it."""
    from rrf_design.acquisition.redaction import without_password

    return "" if store is None else f" --store {without_password(store)}"


def _given_again(result: Acquisition) -> str:
    """The options that a run can't be resumed without, because what they hold is never kept."""
    from rrf_design.acquisition.redaction import HIDDEN

    models = (result.header.get("models") or {}).values()
    hidden = any(HIDDEN in str(entry.get("base_url", "")) for entry in models if isinstance(entry, dict))
    return " --base-url ADDRESS (once more: its password is never kept)" if hidden else ""


def write_document(path: Path, result: Acquisition) -> None:
    from rrf_design.documents import write_text
    from rrf_design.texts import json_text

    write_text(path, json_text(result.to_json(), indent=1) + "\n")


def deliver(
    table_of: Dataset,
    result: Acquisition,
    outputs: Sequence[Path],
    review: Path | None,
    *,
    store: str | None,
    printer: Printer,
    called: str | None = None,
) -> Delivery:
    """Hand over what a run over a table came to; `.json` is the run's own document, `.html` its
    page.
    """
    from rrf_design.tables import delivery_of

    delivery = delivery_of(table_of, result)
    own = [path for path in outputs if path.suffix.lower() in (".json", ".html")]
    for path in own:
        if path.suffix.lower() == ".json":
            write_document(path, result)
        else:
            write_page(result, path, store)
        printer.note(f"written to {path}")
    hand_over(delivery, [path for path in outputs if path not in own], review=review, called=called, printer=printer)
    return delivery


def write_page(result: Acquisition, path: Path, store: str | None) -> None:
    from rrf_design.acquisition import answer_log
    from rrf_design.reporting import write_report

    problems = {entry.item: entry.problem for entry in result.items}
    write_report(result, path, problem=problems, answers=answer_log(result.run, store=store))


def certify_all(result: Acquisition, path: Path) -> list[Path]:
    """Write the certificates of a run's fields: one file for a single problem, a folder for a data
    set.
    """
    if len(result.items) == 1 and result.items[0].item == "":
        result.items[0].certify().save(path)
        return [path]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: can't be made a folder for certificates ({error.strerror})") from None
    written = []
    for number, entry in enumerate(result.items, start=1):
        if entry.answers:
            safe = "".join(c if c.isalnum() else "-" for c in entry.item)[:40]
            written.append(path / f"{number:03d}-{safe}.json")
            entry.certify().save(written[-1])
    return written
