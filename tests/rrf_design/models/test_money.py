"""What calls cost, when they may be made, and many of them in one batch."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openai
import pytest

import rrf_design as rrf
from rrf_design import models
from rrf_design.acquisition import Journal, acquire
from rrf_design.errors import InputError, Refused
from rrf_design.models import Attempt, NotBegun, Outcome, Price, PriceTable, Request, Retry, Roster, Usage
from rrf_design.models.base import Model
from rrf_design.models.batches import TOKEN, BatchFault, BatchState, OpenAIBatches, faults, objects
from rrf_design.models.pacing import AWAY, LONGEST, PATIENCE, Pace, _Turn
from rrf_design.models.prices import CallTally, Spending, listed_price, price_of
from rrf_design.models.roster import line_up
from rrf_design.models.scripted import ScriptedModel


def test_prices_add_up_as_decimals() -> None:
    assert Price(0.25, 0.5, 2.0).of(Usage(4, 8, 3)) == 11.0
    assert Price(1e-7, 4e-7).of(Usage(3, 0, 1)) == 3e-7  # 3 * 1e-7 in floats is 3.0000000000000004e-07 or so
    assert Price(0.1).of(Usage(3)) == 0.3


def test_model_without_price_is_refused() -> None:
    table = PriceTable.load({"openai:a": {"input": 1.0}})
    with pytest.raises(InputError, match=r"no price for model 'scripted' \(it has: openai:a\)"):
        table.cost(ScriptedModel(lambda _: "5"), Usage())


def test_the_list_has_the_highest_price_that_can_apply() -> None:
    """Of a long call where length decides, and of the dearest hour where the hour does."""
    small, large = (listed_price("anthropic:claude-sonnet-4-5", input_tokens=size) for size in (10, 500_000))
    assert small is not None
    assert large is not None
    assert (large.input, large.output) >= (2 * small.input, small.output)
    assert listed_price("deepseek:deepseek-chat") == listed_price("deepseek:deepseek-chat", input_tokens=1000)
    assert listed_price("gemini:gemini-2.5-pro") is not None  # the list calls the provider google
    assert listed_price("nobody:nothing") is None


def test_who_answers_on_this_machine_is_free_and_a_server_of_ones_own_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobodys-key-123456")
    monkeypatch.delenv("RRF_OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert price_of(ScriptedModel(lambda _: "5", name="openai:gpt-4.1-mini"), None, Usage()) == Price()
    with models.get("openai:gpt-4.1-mini") as hosted, models.get("openai:x", base_url="http://127.0.0.1:9/v1") as own:
        assert price_of(hosted, None, Usage(10, 10)) == Price(4e-7, 1.6e-6)
        assert price_of(own, None, Usage()) is None
        table = PriceTable.load({"openai:x": {"input": 1.0}, "openai:gpt-4.1-mini": {"call": 2.0}})
        assert (price_of(own, table, Usage()), price_of(hosted, table, Usage())) == (Price(1.0), Price(call=2.0))
    assert PriceTable.load(PriceTable({"a": Price(1.0)}, unknown=("b",)).document()).prices == {"a": Price(1.0)}


@pytest.mark.parametrize("name", ["p.toml", "p.json"])
def test_files(tmp_path: Path, name: str) -> None:
    texts = {
        "p.toml": '[model."openai:m"]\ninput = 1e-6\noutput = 2e-6\n',
        "p.json": '{"model": {"openai:m": {"input": 1e-6, "output": 2e-6}}}',
    }
    (tmp_path / name).write_text(texts[name])
    assert PriceTable.load(tmp_path / name).price("openai:m") == Price(1e-6, 2e-6, 0.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"m": {"inptu": 1}}, "model 'm': unknown key 'inptu'"),
        ({"m": {"input": -1}}, "input is -1"),
        ({"m": {"input": True}}, "input is True"),
        ({"m": {"input": float("inf")}}, "input is inf"),
        ({"m": 3}, "a price has the keys"),
        ({"model": 3}, "must map model names"),
        ("no/such/prices.toml", "can't read the price table"),
    ],
)
def test_bad_tables(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PriceTable.load(given)


def test_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("[model")
    with pytest.raises(InputError, match="not a price table"):
        PriceTable.load(path)
    path.write_bytes("[model]".encode("utf-16"))
    with pytest.raises(InputError, match=r"p.toml: can't read the price table"):
        PriceTable.load(path)


@pytest.mark.parametrize("failures", range(5))
def test_reservation_covers_every_attempt(failures: int) -> None:
    """Whatever fails, and however often it is retried, the bill stays below what was reserved
    before the call.
    """
    left = [failures]

    def script(request: Request) -> str | Attempt:
        left[0] -= 1
        return Attempt(Outcome.TIMEOUT) if left[0] >= 0 else "word " * 40

    model = ScriptedModel(script, retry=Retry(attempts=3, sleep=lambda _: None))
    table = PriceTable.load({"scripted": {"input": 0.1, "output": 0.3, "call": 1.0}})
    request = Request("what is the answer?", max_tokens=5)
    reply = model.ask(request)
    assert 0.0 < table.cost(model, reply.usage) <= table.ceiling(model, request)
    assert reply.attempts == min(3, failures + 1)


def test_expected_and_most() -> None:
    tally = CallTally()
    tally.add(Request("x" * 40, max_tokens=10), always=True, attempts=3)
    tally.add(Request("é" * 40, max_tokens=20), always=False, attempts=3)
    assert tally.expected == Usage(10, 5, 1)
    assert (tally.most.calls, tally.most.output_tokens, tally.most.input_tokens) == (6, 90, 3 * (40 + 256 + 80 + 256))
    assert (tally.largest.input_tokens, tally.largest.output_tokens) == (336, 20)
    found = Spending.of({"m": tally}, {"m": Price(1.0, 2.0)})
    assert (found.money.expected, found.calls.most, found.unknown) == (20.0, 6.0, ())


def test_an_unknown_price_makes_no_sum() -> None:
    found = Spending.of({"m": CallTally(), "own": CallTally()}, {"m": Price(1.0), "own": None}, hosted=("m",))
    assert (found.money.most, found.unknown, found.hosted) == (None, ("own",), ())
    assert "money unknown" in found.sentence()
    assert Spending.of({}, {}).money.most == 0.0


ANSWERED = Attempt(Outcome.ANSWERED, "7", Usage(3, 1, 1))
THROTTLED = Attempt(Outcome.RATE_LIMITED, usage=Usage(calls=1))
GONE = Attempt(Outcome.UNREACHABLE, usage=Usage())


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def heard(most: int = 64) -> tuple[Pace, Clock]:
    clock = Clock()
    pace = Pace(most, clock=clock)
    pace.end(ANSWERED, pace.begin())
    return pace, clock


def fill(pace: Pace) -> list[_Turn]:
    return [pace.begin() for _ in range(pace.room)]


def test_it_begins_with_everything_that_is_allowed() -> None:
    pace = Pace(64)
    assert pace.room == 64
    fill(pace)
    assert pace.room == 0


def test_a_wave_of_429_halves_once_and_answers_raise_again() -> None:
    pace, clock = heard()
    wave = fill(pace)
    clock.now += 1.0
    for begun in wave:
        pace.end(THROTTLED, begun)
    assert pace.limit == 32.0
    assert pace.room == 0  # a short pause, though the server asked for none
    clock.now += LONGEST
    wave = fill(pace)
    assert len(wave) == 32
    for begun in wave[:10]:
        pace.end(ANSWERED, begun)
    assert pace.limit == 42.0
    pace.end(THROTTLED, wave[10])
    assert pace.limit == 21.0


def test_the_limit_never_falls_below_one_nor_rises_above_what_is_allowed() -> None:
    pace, clock = heard(4)
    for _ in range(9):
        clock.now += LONGEST
        pace.end(THROTTLED, pace.begin())
    assert pace.limit == 1.0
    for _ in range(20):
        clock.now += LONGEST
        pace.end(ANSWERED, pace.begin())
    assert pace.limit == 4.0


@pytest.mark.parametrize("outcome", [Outcome.RATE_LIMITED, Outcome.ANSWERED, Outcome.UNREACHABLE])
def test_the_server_is_left_alone_as_long_as_it_wants(outcome: Outcome) -> None:
    pace, clock = heard()
    pace.end(Attempt(outcome, "7", Usage(calls=1), retry_after=7.0), pace.begin())
    clock.now += 6.9
    assert pace.room == 0
    clock.now += 0.2
    assert pace.room > 0


def test_no_more_calls_are_begun_than_the_rate_headers_allow() -> None:
    """Five were left when the second of ten calls arrived; the eight after it have taken three too
    many already.
    """
    pace, clock = heard()
    wave = [pace.begin() for _ in range(10)]
    pace.end(Attempt(Outcome.ANSWERED, "7", Usage(3, 1, 1), allowance=(5, 2.0)), wave[1])
    assert pace.room == 0
    pace.end(Attempt(Outcome.ANSWERED, "7", Usage(3, 1, 1), allowance=(4, 2.0)), wave[9])
    assert pace.room == 4
    pace.end(
        Attempt(Outcome.ANSWERED, "7", Usage(3, 1, 1), allowance=(9, 2.0)), wave[0]
    )  # an older word counts no more
    assert len(fill(pace)) == 4
    assert pace.room == 0
    clock.now += 2.1
    assert pace.room > 4


def test_single_failures_among_answers_change_nothing() -> None:
    pace, _ = heard()
    for _ in range(50):
        pace.end(GONE, pace.begin())
        pace.end(ANSWERED, pace.begin())
    assert pace.room == 64


def test_a_server_that_is_away_is_tried_by_one_call_at_a_time_with_growing_pauses() -> None:
    pace, clock = heard()
    wave = fill(pace)
    for begun in wave:
        pace.end(GONE, begun)
    assert len(wave) > AWAY
    pauses = []
    for _ in range(12):
        before = clock.now
        while not pace.room:
            clock.now += 0.05
        pauses.append(clock.now - before)
        assert pace.room == 1
        begun = pace.begin()
        assert pace.room == 0
        pace.end(GONE, begun)
    assert pauses[0] < 1.0 < pauses[6] <= LONGEST + 0.1
    assert max(pauses) <= LONGEST + 0.1
    assert not pace.hopeless
    clock.now += PATIENCE
    assert pace.hopeless
    pace.end(ANSWERED, pace.begin())
    assert not pace.hopeless
    assert pace.room >= 32


def test_patience_is_for_servers_that_were_there_and_for_what_costs_nothing() -> None:
    assert not Pace(4).forgives(GONE)
    pace, _ = heard()
    assert pace.forgives(GONE)
    assert pace.forgives(THROTTLED)
    assert not pace.forgives(Attempt(Outcome.UNREACHABLE, usage=None))
    stingy = Pace(4, patient=False)
    stingy.end(ANSWERED, stingy.begin())
    assert stingy.forgives(GONE)
    assert not stingy.forgives(THROTTLED)  # where a bare call costs money


class Flaky(Model):
    """Plays a list of attempts."""

    asynchronous = True
    identity = {"adapter": "flaky", "model": "flaky"}  # noqa: RUF012

    def __init__(self, *plan: Attempt) -> None:
        self.plan = list(plan)

    def attempt(self, request: Request) -> Attempt:
        return self.plan.pop(0)

    async def attempt_async(self, request: Request) -> Attempt:
        return self.plan.pop(0)


def asked(model: Model, pace: Pace, **options: object) -> object:
    async def main() -> object:
        loop = asyncio.get_running_loop()
        real = loop.call_later
        # Pauses pass at once: the alarm rings in the next turn of the loop, and the clock says that
        # it is time.
        loop.call_later = lambda wait, call, *more: (advance(wait), real(0.0, call, *more))[1]  # type: ignore[method-assign]
        return await model.ask_async(Request("?"), pace, **options)  # type: ignore[arg-type]

    def advance(wait: float) -> None:
        pace._clock.now += wait + 0.01  # type: ignore[attr-defined]

    return asyncio.run(main())


def test_attempts_that_cost_nothing_are_repeated_until_the_server_is_back_and_counted() -> None:
    pace, _ = heard(1)
    reply = asked(Flaky(*[GONE] * 20, *[THROTTLED] * 5, ANSWERED), pace)
    assert (reply.outcome, reply.attempts, reply.usage.calls) == (Outcome.ANSWERED, 26, 6)  # type: ignore[attr-defined]


def test_attempts_that_may_have_been_charged_are_bounded() -> None:
    pace, _ = heard(1)
    cut = Attempt(Outcome.UNREACHABLE, usage=None)
    model = Flaky(*[cut] * 9)
    reply = asked(model, pace)
    assert (reply.attempts, len(model.plan)) == (4, 5)  # type: ignore[attr-defined]
    assert reply.usage.estimated  # type: ignore[attr-defined]


def test_a_server_that_was_never_there_is_given_up_soon() -> None:
    model = Flaky(*[GONE] * 9)
    reply = asked(model, Pace(1, clock=Clock()))
    assert (reply.outcome, reply.attempts) == (Outcome.UNREACHABLE, 4)  # type: ignore[attr-defined]


def test_again_is_asked_before_each_repeated_attempt() -> None:
    pace, _ = heard(1)
    counted = []

    async def again(tried: int) -> bool:
        counted.append(tried)
        return len(counted) < 3

    cut = Attempt(Outcome.UNREACHABLE, usage=None)
    reply = asked(Flaky(GONE, cut, *[GONE] * 9), pace, again=again)
    assert reply.attempts == 3  # type: ignore[attr-defined]
    assert counted == [0, 1, 1]  # what certainly cost nothing does not count


@pytest.mark.parametrize("tried", [0, 1, 3])
def test_attempts_of_earlier_sessions_count(tried: int) -> None:
    pace, _ = heard(1)
    reply = asked(Flaky(*[Attempt(Outcome.UNREACHABLE, usage=None)] * 9), pace, tried=tried)
    assert reply.attempts == 4 - tried  # type: ignore[attr-defined]
    model = Flaky(*[GONE] * 9)
    model.retry = Retry(sleep=lambda seconds: None)
    assert model.ask(Request("?"), tried=tried).attempts == 4 - tried


def test_a_session_that_ends_keeps_what_was_paid_and_begins_nothing() -> None:
    pace, _ = heard(1)
    paid = Attempt(Outcome.TIMEOUT, usage=Usage(5, 0, 1))

    async def again(tried: int) -> bool:
        pace.stop()
        return True

    reply = asked(Flaky(paid, ANSWERED), pace, again=again)
    assert (reply.outcome, reply.usage) == (Outcome.TIMEOUT, Usage(5, 0, 1))  # type: ignore[attr-defined]
    with pytest.raises(NotBegun):
        asked(Flaky(ANSWERED), pace)


def test_only_json_objects_are_lines() -> None:
    assert list(objects(['{"a": 1}', "", "half {", "[1]", "7", '{"b": 2}'])) == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("status", ["completed", "failed", "expired", "cancelled"])
def test_ended(status: str) -> None:
    assert BatchState("b", status).ended
    assert not BatchState("b", "in_progress").ended


def test_errors_of_the_client_are_one_line() -> None:
    with pytest.raises(BatchFault, match="APIError: no") as fault, faults(openai):
        raise openai.APIError("no", request=None, body=None)  # type: ignore[arg-type]
    assert not fault.value.gone
    with pytest.raises(KeyError), faults(openai):
        raise KeyError("not the client's")


def batch(name: str, status: str = "completed", *, token: str | None = None, **more: Any) -> Any:
    given = {"output_file_id": None, "error_file_id": None, "errors": None, **more}
    return SimpleNamespace(id=name, status=status, metadata=None if token is None else {TOKEN: token}, **given)


class Client:
    """What was sent is kept; answers are those that the test gives."""

    def __init__(self, batches: Sequence[Any] = (), contents: Mapping[str, str] | None = None) -> None:
        self.sent: list[dict[str, Any]] = []
        texts = contents or {}
        self.files = SimpleNamespace(create=self._upload, content=lambda name: SimpleNamespace(text=texts[name]))
        known = {one.id: one for one in batches}
        self.batches = SimpleNamespace(create=self._create, list=lambda limit: batches, retrieve=known.__getitem__)

    def _upload(self, **given: Any) -> Any:
        self.sent.append(given)
        return SimpleNamespace(id="file-1")

    def _create(self, **given: Any) -> Any:
        self.sent.append(given)
        return batch("b1", "validating")


def test_a_batch_carries_its_token_and_its_lines() -> None:
    client = Client()
    made = OpenAIBatches(client, openai).create([("a", {"x": 1}), ("ü", {"x": 2})], "t-7")
    assert made == BatchState("b1", "validating")
    upload, create = client.sent
    name, content = upload["file"]
    assert name == "t-7.jsonl"
    lines = [json.loads(line) for line in content.decode().split("\n")[:-1]]
    assert [(line["custom_id"], line["body"]) for line in lines] == [("a", {"x": 1}), ("ü", {"x": 2})]
    assert (create["metadata"], create["input_file_id"]) == ({TOKEN: "t-7"}, "file-1")


def test_faults_of_a_batch_are_told_in_a_few_words() -> None:
    errors = SimpleNamespace(data=[SimpleNamespace(message="line 3 is bad"), SimpleNamespace(message=None)])
    found = OpenAIBatches(Client([batch("b1", "failed", errors=errors, error_file_id="err")]), openai).look("b1")
    assert (found.fault, found.files) == ("line 3 is bad", ("err",))
    long = SimpleNamespace(data=[SimpleNamespace(message="x" * 1000)])
    assert len(OpenAIBatches(Client([batch("b1", errors=long)]), openai).look("b1").fault) == 300


def test_lines_of_both_files_whatever_stands_in_them() -> None:
    """An answer may hold a character that ends a line elsewhere: only a line feed ends one here."""
    answers = [{"custom_id": "a", "text": "one\u2028two\u0085three"}, {"custom_id": "b"}]
    contents = {
        "out": json.dumps(answers[0], ensure_ascii=False) + "\r\n\nno json\n[1]\n",
        "err": json.dumps(answers[1]),
    }
    state = BatchState("b1", "completed", ("out", "err"))
    assert list(OpenAIBatches(Client(contents=contents), openai).lines(state)) == answers


def two(seen: list[Any]) -> dict[str, Any]:
    def script(answer: str) -> Any:
        def say(request: Any) -> str:
            seen.append(request)
            return answer

        return ScriptedModel(say, name=f"says {answer}")

    return {"mini": {"use": script("7"), "temperature": 0.7}, "other": script("8")}


def problem(**other: Any) -> rrf.Problem:
    nodes: list[dict[str, Any]] = [
        {"id": "a", "prompt": "?"},
        {"id": "b", "prompt": "?", "model": "other", **other},
        {"id": "c", "prompt": "?"},
    ]
    judge = {"verifier": "other", "prompt": "Is {{ answer }} right?"}
    anchors = [{"id": "A", "node": "a", "source": judge, "sigma": 1.0}]
    return rrf.Problem(k=1, nodes=nodes, relations=[{"id": "r", "tail": "a", "head": "c"}], anchors=anchors)


def test_nodes_and_judges_choose_their_model(tmp_path: Path) -> None:
    seen: list[Any] = []
    result = acquire(problem(), two(seen), store=tmp_path / "r.sqlite")
    answers = result.items[0].answers
    assert {name: value[0] for name, value in answers.items()} == {"a": 7.0, "b": 8.0, "c": 7.0}
    asked = sorted((request.prompt, request.repeat, request.temperature) for request in seen if request.temperature)
    assert asked == [("?", 0, 0.7), ("?", 1, 0.7)]  # two nodes of one model ask the same: the second is a repeat
    assert "Is 7 right?" in {request.prompt for request in seen if request.temperature is None}
    assert sorted(request.repeat for request in seen if request.prompt == "?") == [0, 0, 1]
    with Journal(tmp_path / "r.sqlite") as journal:
        header = journal.header(journal.find("last"))
    assert {name: entry["identity"]["model"] for name, entry in header["models"].items()} == {
        "mini": "says 7",
        "other": "says 8",
    }
    assert header["models"]["mini"]["temperature"] == 0.7
    used = result.to_json()["models"]
    assert {name: (entry["answers"], entry["calls"]) for name, entry in used.items()} == {
        "mini": (2, 2),
        "other": (2, 2),
    }
    assert used["mini"]["output_tokens"] == 2  # a word is a token of the double


def test_a_name_that_is_none_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    seen: list[Any] = []
    with pytest.raises(InputError, match=r"node 'b': model 'othr' is not among .* did you mean 'other'"):
        acquire(problem(model="othr"), two(seen), store=tmp_path / "r.sqlite")
    assert seen == []


def test_a_run_goes_on_with_all_its_models(tmp_path: Path) -> None:
    store = tmp_path / "r.sqlite"
    acquire(problem(), two([]), store=store)
    with pytest.raises(Refused, match="can't be mixed"):
        acquire(resume="last", model={"mini": two([])["other"], "other": two([])["mini"]}, store=store)
    acquire(resume="last", model=two([]), store=store)


def test_what_the_call_says_goes_over_what_the_file_says() -> None:
    own = {"mini": {"use": "embedded", "temperature": 0.7}, "other": "scripted:x.json"}
    assert line_up(None, own) == own
    assert line_up({"other": "openai:gpt-4o"}, own) == {"mini": own["mini"], "other": "openai:gpt-4o"}
    assert line_up("embedded", {}) == {"model": "embedded"}
    assert line_up("embedded", {"mini": "openai:m"}) == {"mini": "embedded"}
    with pytest.raises(
        InputError, match=r"several models \(mini, other\); say which is meant, as in --model mini=embedded"
    ):
        line_up("embedded", own)


def test_one_backend_under_two_names_is_started_once(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"default": "7"}')
    spec = f"scripted:{tmp_path / 's.json'}"
    with contextlib.ExitStack() as stack:
        roster = Roster.start(
            {"a": {"use": spec, "temperature": 0.0}, "b": spec, "c": {"use": spec, "slots": 2}}, stack
        )
    assert roster["a"] is roster["b"]
    assert roster["a"] is not roster["c"]
    assert (roster.options("a"), roster.options("b")) == ({"temperature": 0.0}, {})


def test_a_problem_file_names_its_models(tmp_path: Path) -> None:
    for name in ("7", "8", "9"):
        (tmp_path / f"{name}.json").write_text(f'{{"default": "{name}"}}')
    file = tmp_path / "p.toml"
    file.write_text(
        f"""[models]
mini = "scripted:{tmp_path}/7.json"
other = {{ use = "scripted:{tmp_path}/8.json", slots = 2 }}
[[nodes]]
id = "a"
prompt = "?"
[[nodes]]
id = "b"
prompt = "?"
model = "other"
[[relations]]
id = "r"
tail = "a"
head = "b"
[[anchors]]
id = "judge"
node = "a"
sigma = 1.0
source = {{ verifier = "scripted:{tmp_path}/9.json", prompt = "{{{{ answer }}}}?" }}
[[anchors]]
id = "second"
node = "a"
sigma = 1.0
source = {{ verifier = "scripted:{tmp_path}/8.json", prompt = "{{{{ answer }}}}?" }}
"""
    )
    loaded = rrf.load(file)
    rrf.save(loaded, tmp_path / "again.toml")
    assert rrf.load(tmp_path / "again.toml") == loaded
    assert rrf.digest(loaded) == rrf.digest(loaded.model_copy(update={"models": {}}))  # whoever answers
    result = acquire(loaded, store=tmp_path / "r.sqlite")
    assert {name: value[0] for name, value in result.items[0].answers.items()} == {"a": 7.0, "b": 8.0}
    judge = f"scripted:{tmp_path}/9.json"
    used = {name: entry["answers"] for name, entry in result.models.items()}
    assert used == {"mini": 1, "other": 2, judge: 1}  # a judge that [models] has under another name is that one
    assert result.header["models"][judge]["identity"]["adapter"] == "scripted"
    assert acquire(resume="last", store=tmp_path / "r.sqlite").stopped_because == result.stopped_because
    swapped = acquire(loaded, {"mini": judge}, store=tmp_path / "r.sqlite")
    assert swapped.items[0].answers["a"] == (9.0,)
    with pytest.raises(InputError, match=r'\[models\]: mini: it needs use = "ADAPTER:NAME"'):
        rrf.Problem(nodes=[{"id": "a"}], models={"mini": {"us": "embedded"}})


def test_options_that_are_tables_are_found_again_on_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rrf_design.acquisition.settings import _entry

    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-one-0123")
    entry = {"use": "openai:m", "extra": {"top_k": 3, "stop": ["x"]}, "base_url": "http://127.0.0.1:9/v1"}
    with contextlib.ExitStack() as stack:
        roster = Roster.start({"m": entry}, stack)
        kept = _entry({**entry, "api_key": "hidden"}, roster["m"])
    assert {name: kept[name] for name in entry} == entry
    assert "api_key" not in kept


def test_what_is_started_is_closed_together() -> None:
    closed: list[str] = []

    class Closing(ScriptedModel):
        def close(self) -> None:
            closed.append(self.name)

    with contextlib.ExitStack() as stack:
        Roster.start({"mine": Closing(lambda request: "7", name="mine")}, stack)
    assert closed == []  # somebody else's
    with pytest.raises(InputError, match=r"\[models\] mini: it needs use"), contextlib.ExitStack() as stack:
        Roster.start({"mini": {"us": "embedded"}}, stack)
    with pytest.raises(InputError, match="at least one model"):
        Roster({})
