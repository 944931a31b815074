"""Questions, leases and labels; what a reviewer sees; and that a verb takes what they said."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.cli import main
from rrf_design.errors import InputError, RetryLater
from rrf_design.studio import Library
from rrf_design.studio.labels import LEASE, LabelStore, ask_on, review_file

from .conftest import HOSTILE, made

Open = Callable[..., Any]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["a file", "a server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where labels lie."""
    return str(request.getfixturevalue("database") if request.param == "a server" else tmp_path / "labels.sqlite")


@pytest.fixture
def store(place: str, clock: Clock) -> LabelStore:
    found = LabelStore(place, make=True, clock=clock)
    found.ask(
        "repair", [{"id": f"r/{n}", "check": "clerk", "question": "?", "raw": str(n)} for n in range(5)], blind=False
    )
    return found


def key(question: Any) -> tuple[str, str, str]:
    return question.queue, question.id, question.part


def test_a_question_is_one_persons_for_two_minutes(store: LabelStore, clock: Clock) -> None:
    first, second = store.next("anna"), store.next("bert")
    assert (first.id, second.id) == ("r/0", "r/1")
    assert store.next("anna").id == "r/0"
    clock.now += LEASE - 1
    store.prolong("anna")
    clock.now += 2
    assert store.next("bert").id == "r/1"
    assert store.next("carl").id == "r/2"
    clock.now += LEASE
    assert store.next("dora").id == "r/0"


def test_a_label_is_there_once_whatever_is_sent_twice(store: LabelStore) -> None:
    question = store.next("anna")
    assert store.label(key(question), "7", "anna", stamp="x") == "saved"
    assert store.label(key(question), "7", "anna", stamp="x") == "saved"
    assert store.label(key(question), "8", "bert", stamp="y") == "taken"
    assert [row["value"] for row in store.rows("repair") if row["value"] != ""] == ["7"]
    with pytest.raises(InputError, match="not asked about any more"):
        store.label(("repair", "other", ""), "1", "anna", stamp="z")
    for value in ("", "  ", None, {"x": 1}, "x" * 200_000):
        with pytest.raises(InputError):
            store.label(key(store.next("anna")), value, "anna", stamp="w")


def test_later_comes_last_and_undo_comes_back(store: LabelStore) -> None:
    first = store.next("anna")
    store.later(key(first), "anna")
    second = store.next("anna")
    assert second.id == "r/1"
    store.label(key(second), "1", "anna", stamp="a")
    assert store.undo("anna") == second
    assert store.undo("anna") is None
    for n in (1, 2, 3, 4, 0):
        found = store.next("anna")
        assert found.id == f"r/{n}"
        store.label(key(found), "1", "anna", stamp=str(n))
    assert store.next("anna") is None


def test_what_a_verb_has_read_is_not_taken_back(store: LabelStore, place: str) -> None:
    store.label(key(store.next("anna")), "1", "anna", stamp="a")
    with review_file(place, "repair", blind=False) as path:
        assert path is not None
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["value"] for row in rows if row["id"] == "r/0"] == ["1"]
        path.unlink()
        path.write_text(json.dumps({"id": "new", "check": "clerk", "value": ""}) + "\n")
    assert store.undo("anna") is None
    assert store.next("anna").id == "new"


def test_a_verb_that_fails_changes_nothing(store: LabelStore, place: str) -> None:
    def fail() -> None:
        with review_file(place, "repair", blind=False) as path:
            assert path is not None
            path.unlink()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.counts().open == 5


def test_two_reviewers_at_once_none_twice_none_lost(place: str) -> None:
    LabelStore(place, make=True).ask("repair", [{"id": str(n)} for n in range(100)], blind=False)

    def work(who: str) -> list[str]:
        own, seen = LabelStore(place), []
        while (question := own.next(who)) is not None:
            assert own.label(key(question), who, who, stamp=f"{who}{question.id}") == "saved"
            seen.append(question.id)
        return seen

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(work, ["anna", "bert"])
    assert sorted([*first, *second], key=int) == [str(n) for n in range(100)]
    assert LabelStore(place).counts().open == 0


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


TRUTH = {f"inv/{n}": str(n + 10) for n in range(60)}


def secret(name: str) -> str:
    """What models say of a row, and nothing else on earth does."""
    return f"90{int(name.removeprefix('inv/')):03d}77"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    wrong = {name: dict.fromkeys(("sum", "again"), secret(name)) | {"cents": f"{secret(name)}00"} for name in TRUTH}
    split = {name: {"sum": secret(name), "again": "2", "cents": "300"} for name in ("inv/3", "inv/8")}
    made(tmp_path, list(TRUTH), {**wrong, **split})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RRF_CACHE", "off")
    return tmp_path


def test_blind_reviews_are_blind(folder: Path, open_studio: Open) -> None:
    """No answer in any page, list, search, export or response, until the label is saved."""
    assert run("repair", "r.toml", "--responses", "answers.jsonl", "-o", "out.csv", "-o", "out.json", "-q") == 0
    assert run("repair", "r.toml", "--responses", "answers.jsonl", "--review", "fix.sqlite", "-q") == 0
    assert run("deliver", "r.toml", "--responses", "answers.jsonl", "--risk", "5%", "--review", "l.sqlite", "-q") == 1
    studio = open_studio(folder)
    blind = studio.act("next", of="l.sqlite", who="anna")["question"]
    assert blind["blind"]
    hidden = set(LabelStore(folder / "l.sqlite").blind_ids())
    for name in sorted(hidden):
        assert studio.get("/item", of="out.csv", id=name).status_code == 404
        assert studio.get("/item", of="out.json", id=name).status_code == 404
    responses = [
        studio.own.get(path).text for path in ("/", "/review?of=l.sqlite", "/review/file?of=l.sqlite&queue=deliver")
    ]
    responses += [studio.get("/items", of=of, q=name).text for of in ("out.csv", "out.json") for name in sorted(hidden)]
    responses += [studio.get("/document", of="out.json").text, json.dumps(blind)]
    responses += [json.dumps(studio.act(what, of="l.sqlite", who="bert")) for what in ("next", "undo")]
    fixes = studio.own.get("/review/file?of=fix.sqlite&queue=repair").text
    asked = [row for row in csv.DictReader(io.StringIO(fixes)) if row["id"] in hidden]
    assert all(row["raw"] == row["verdict"] == "" for row in asked)
    while (fix := studio.act("next", of="fix.sqlite", who="anna")["question"]) is not None:
        assert ("answers" in fix) == (fix["id"] not in hidden)
        studio.act(
            "label",
            of="fix.sqlite",
            who="anna",
            stamp=fix["id"],
            value="?",
            **{k: fix[k] for k in ("queue", "id", "part")},
        )
    assert not [name for name in hidden for text in responses if secret(name) in text]
    opened = hidden.copy()
    for who in ("anna", "bert"):  # each has one of the two
        question = studio.act("next", of="l.sqlite", who=who)["question"]
        named = {name: question[name] for name in ("queue", "id", "part")}
        studio.act("label", of="l.sqlite", who=who, value=TRUTH[question["id"]], stamp=question["id"], **named)
        opened.discard(question["id"])
        assert studio.get("/item", of="out.csv", id=question["id"]).status_code == 200
    assert opened == set()


def test_a_table_of_repair_is_reviewed_with_its_answers(folder: Path, open_studio: Open) -> None:
    run("repair", "r.toml", "--responses", "answers.jsonl", "--review", "fix.sqlite", "-o", "out.csv", "-q")
    studio = open_studio(folder)
    question = studio.act("next", of="fix.sqlite", who="anna")["question"]
    assert question["question"] == "The sum of inv/3, please"
    assert {one["value"]: one["by"] for one in question["answers"]} == {
        secret("inv/3"): ["sum"],
        "2": ["again"],
        "3": ["cents"],
    }
    assert question["own"]["text"] == "3 + 10 of inv/3"


def test_labels_of_the_studio_give_the_table_of_labels_typed_by_hand(
    folder: Path, place: str, open_studio: Open
) -> None:
    for review in (place, "fix.csv"):
        run("repair", "r.toml", "--responses", "answers.jsonl", "--review", review, "-o", "out.csv", "-q")
    studio = open_studio(folder, *([place] if "://" in place else ()))
    (of,) = Library([place]).label_stores() if "://" in place else ("labels.sqlite",)
    while (question := studio.act("next", of=of, who="anna")["question"]) is not None:
        assert {one["value"] for one in question["answers"]} >= {"2", "3"}
        named = {name: question[name] for name in ("queue", "id", "part")}
        value = TRUTH[question["id"]]
        assert studio.act("label", of=of, who="anna", value=value, stamp=value, **named)["told"] == "saved"
    rows = list(csv.DictReader(io.StringIO((folder / "fix.csv").read_text())))
    typed = io.StringIO()
    writer = csv.DictWriter(typed, list(rows[0]))
    writer.writeheader()
    writer.writerows({**row, "value": TRUTH[row["id"]]} for row in rows)
    (folder / "fix.csv").write_text(typed.getvalue())
    exported = studio.get("/review/file", of=of, queue="repair").text
    (folder / "exported.csv").write_text(exported)
    command = ("repair", "r.toml", "--responses", "answers.jsonl", "-q")
    assert run(*command, "--review", place, "-o", "a.csv") == 0
    assert run(*command, "--review", "fix.csv", "-o", "b.csv") == 0
    assert run(*command, "--reviews", "exported.csv", "-o", "c.csv") == 0
    assert (folder / "a.csv").read_text() == (folder / "b.csv").read_text() == (folder / "c.csv").read_text()
    assert "2 checked" not in (folder / "a.csv").read_text()
    assert LabelStore(place).counts().open == 0


@pytest.mark.parametrize("place", ["a file", "a server"], indirect=True)
def test_every_verb_that_people_answer_asks_in_a_store(
    folder: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each in a queue of its own; labels give what the same answers in a file give."""
    answers = ("--responses", "answers.jsonl")
    assert run("repair", "r.toml", *answers, "-o", "out.csv", "-q") == 0
    verbs = {
        "audit": ("audit", "out.csv", "--recipe", "r.toml", "--labels", "5"),
        "pilot": ("pilot", "r.toml", *answers, "--labels", "30", "--risk", "0.2", "-o", "policy.json"),
        "acquire": ("acquire", "r.toml", *answers, "--budget", "300", "-o", "bought.csv"),
    }
    said: dict[str, list[Any]] = {}
    for review in (place, "by-hand.csv"):
        for queue, verb in verbs.items():
            Path("by-hand.csv").unlink(missing_ok=True)
            Path("policy.json").unlink(missing_ok=True)
            run(*verb, "--review", review)
            shown = capsys.readouterr()
            assert ("answer with rrf-design studio" in shown.out + shown.err) == (review == place), queue
            if review == place:
                store = LabelStore(place)
                assert store.counts().blind == (queue != "acquire")
                while (question := store.next("anna")) is not None:
                    assert question.queue == queue
                    name = str(question.row.get("item") or question.id)
                    store.label(key(question), TRUTH[name], "anna", stamp=f"{queue}{question.id}")
            else:
                rows = list(csv.DictReader(io.StringIO(Path(review).read_text())))
                with Path(review).open("w", newline="") as stream:
                    writer = csv.DictWriter(stream, list(rows[0]))
                    writer.writeheader()
                    writer.writerows({**row, "value": TRUTH[row.get("item") or row["id"]]} for row in rows)
            again = ("--resume", "last") if queue == "acquire" else ("--resume",)
            code = run(*verb, *again, "--review", review, "--json")
            found = json.loads(capsys.readouterr().out)
            told = (
                ("verdicts", "verdict")
                if queue == "acquire"
                else ("wrong", "bound")
                if queue == "audit"
                else ("policy", "truth", "bound")
            )
            said.setdefault(queue, []).append((code, [found.get(name) for name in told]))
    assert all(first == second for first, second in said.values()), said


def test_deliver_asks_on_until_it_is_proven(
    folder: Path, open_studio: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "deliver",
        "r.toml",
        "--responses",
        "answers.jsonl",
        "--risk",
        "5%",
        "--review",
        "l.sqlite",
        "-o",
        "d.csv",
    ]
    by_hand = ["deliver", "r.toml", "--responses", "answers.jsonl", "--risk", "5%", "--review", "l.csv", "-o", "h.csv"]
    more: list[str] = []
    for _ in range(60):
        code = run(*command, *more)
        if code == 0:
            break
        assert "answer with rrf-design studio l.sqlite" in capsys.readouterr().out
        own = LabelStore(folder / "l.sqlite")
        while (question := own.next("anna")) is not None:
            own.label(key(question), TRUTH[question.id], "anna", stamp=question.id)
        more = ["--resume"]
    assert code == 0
    for path in folder.glob("deliver-*.jsonl"):
        path.unlink()
    more = []
    for _ in range(60):
        if run(*by_hand, *more) == 0:
            break
        rows = list(csv.DictReader(io.StringIO((folder / "l.csv").read_text())))
        typed = io.StringIO()
        writer = csv.DictWriter(typed, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "value": TRUTH[row["id"]]} for row in rows)
        (folder / "l.csv").write_text(typed.getvalue())
        more = ["--resume"]
    assert (folder / "d.csv").read_text() == (folder / "h.csv").read_text()


def test_a_delivery_that_waits_asks_on_by_itself(folder: Path) -> None:
    """One call: what cannot be read is asked again, and the table is that of the truth at hand."""
    place = folder / "l.sqlite"
    troubles: list[str] = []

    def answer() -> None:
        own = LabelStore(place)
        while (question := own.next("anna")) is not None:
            assert "answers" not in question.row
            troubles.extend([question.row["trouble"]] if "trouble" in question.row else [])
            value = TRUTH[question.id] if troubles else "seven or so"
            own.label(key(question), value, "anna", stamp=f"{question.id}{value}")

    dataset = rrf.dataset("r.toml")
    found = rrf.deliver(dataset, responses="answers.jsonl", risk="5%", ask=partial(ask_on, place, pause=answer))
    known = rrf.deliver(dataset, responses="answers.jsonl", risk="5%", truth=TRUTH)
    assert found.reached
    assert found.sentence == known.sentence
    assert [row.answer for row in found.delivery.rows()] == [row.answer for row in known.delivery.rows()]
    assert len(troubles) >= 1
    assert LabelStore(place).counts().open == 0


def test_waiting_needs_a_store(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("deliver", "r.toml", "--responses", "answers.jsonl", "--review", "l.csv", "--wait") == 2
    assert "--wait: give a store of labels" in capsys.readouterr().err


def test_hostile_questions_are_only_text(tmp_path: Path, open_studio: Open) -> None:
    store = LabelStore(tmp_path / "l.sqlite", make=True)
    store.ask("deliver", [{"id": HOSTILE, "question": HOSTILE, "text": f"{HOSTILE}\x00"}, {"id": ""}], blind=True)
    studio = open_studio(tmp_path)
    assert "<script>window" not in studio.get("/review").text
    answer = studio.act("next", of="l.sqlite", who="<b>")
    assert answer["question"]["id"] == HOSTILE
    saved = studio.act(
        "label", of="l.sqlite", who="<b>", queue="deliver", id=HOSTILE, part="", value=HOSTILE, stamp="1"
    )
    assert saved["told"] == "saved"
    text = studio.own.get("/review/file?of=l.sqlite&queue=deliver&form=jsonl").text
    assert [json.loads(line)["value"] for line in text.splitlines()] == ["", HOSTILE]


def test_ids_are_kept_as_they_are_wherever_they_lie(place: str, open_studio: Open, tmp_path: Path) -> None:
    names = [HOSTILE, "nul\x00id", "json:7", "\ud800 half", "", "x" * 5000]
    store = LabelStore(place, make=True)
    store.ask("deliver", [{"id": name, "question": f"{name}?", "text": "y" * 1_000_000} for name in names], blind=True)
    studio = open_studio(place if "://" in place else tmp_path)
    (of,) = Library([place]).label_stores()
    for name in names:
        shown = studio.act("next", of=of, who="anna\x00")["question"]
        assert (shown["id"], shown["question"]) == (name, f"{name}?")
        named = {part: shown[part] for part in ("queue", "id", "part")}
        told = studio.act("label", of=of, who="anna\x00", value=f"{name}!", stamp=name, **named)
        assert told["told"] == "saved"
    assert store.said("deliver") == {name: f"{name}!" for name in names}
    assert studio.act("undo", of=of, who="anna\x00")["question"]["id"] == names[-1]


def test_a_server_that_is_gone_is_said_and_nothing_is_lost(database: str, open_studio: Open) -> None:
    import psycopg

    store = LabelStore(database, make=True)
    store.ask("deliver", [{"id": "1"}, {"id": "2"}], blind=True)
    question = store.next("anna")
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
    with pytest.raises(RetryLater, match="the store of labels did not answer"):
        store.label(key(question), "7", "anna", stamp="x")
    assert store.label(key(question), "7", "anna", stamp="x") == "saved"
    assert store.counts().labels == 1
    with pytest.raises(RetryLater, match="did not answer"):
        LabelStore("postgresql://me:hunter2@127.0.0.1:1/none")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"of": "l.sqlite"}', b'{"of": "../x", "who": "a"}', b"\xff", b"[" * 100_000]
)
def test_what_the_page_does_not_send_is_refused_in_one_line(tmp_path: Path, open_studio: Open, body: bytes) -> None:
    from .conftest import ORIGIN

    LabelStore(tmp_path / "l.sqlite", make=True)
    answer = open_studio(tmp_path).own.post("/act/label", content=body, headers={"origin": ORIGIN})
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_some_rows_are_labelled_twice_by_others_who_are_not_told(tmp_path: Path, open_studio: Open) -> None:
    store = LabelStore(tmp_path / "l.sqlite", make=True)
    store.ask("deliver", [{"id": f"r/{n}", "question": f"{n}?"} for n in range(4)], blind=True)
    while (question := store.next("anna")) is not None:
        store.label(key(question), "7", "anna", stamp=question.id)
    assert store.blind_ids() == frozenset()
    store.twice(2)
    assert store.next("anna") is None
    assert store.blind_ids() == {"r/0", "r/1"}
    studio = open_studio(tmp_path)
    for value in ("7", "8"):
        shown = studio.act("next", of="l.sqlite", who="ben")["question"]
        assert shown["second"] is True
        assert "7" not in str(shown)
        named = {name: shown[name] for name in ("queue", "id", "part", "second")}
        told = studio.act("label", of="l.sqlite", who="ben", value=value, stamp=f"ben{value}", **named)
    assert (told["twice"], told["same"], told["question"]) == (2, 1, None)
    assert {row["value"] for row in store.rows("deliver")} == {"7"}
    with pytest.raises(InputError, match="second time"):
        store.label(("deliver", "r/0", ""), "9", "anna", stamp="x", second=True)
