"""`acquire`: the loop with a real model behind it. Calls run side by side, the journal has one writer.

What can go wrong ends in one of three ways, all of them resumable: the model can't be reached (the purchase is released
and the run pauses), the journal can't be written (`RetryLater`; what is under way is in doubt), the process dies (same).
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rrf_design import files
from rrf_design.acquisition import review
from rrf_design.acquisition.batching import BatchDriver
from rrf_design.acquisition.classes import with_room
from rrf_design.acquisition.concluding import conclude
from rrf_design.acquisition.driving import Driver
from rrf_design.acquisition.fetching import Fetcher
from rrf_design.acquisition.header import header_of, same_models
from rrf_design.acquisition.journal import Journal
from rrf_design.acquisition.loop import Acquirer
from rrf_design.acquisition.purchases import Doubt
from rrf_design.acquisition.redaction import HIDDEN, Redactor, password_of, secret_name
from rrf_design.acquisition.result import Acquisition, collect
from rrf_design.acquisition.settings import Mode, Settings
from rrf_design.acquisition.sources import Toolbox
from rrf_design.acquisition.stopping import Because, default, hard_limits, limited, restore, summary
from rrf_design.acquisition.stores import store_address
from rrf_design.acquisition.telling import Teller
from rrf_design.bundles import Limits, Strategy, Surroundings, bundled
from rrf_design.derive import askable
from rrf_design.errors import InputError, Refused
from rrf_design.itemwise import for_each_item
from rrf_design.models.cache import AnswerCache
from rrf_design.models.roster import FIRST, Roster, line_up
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from rrf_design.models import Model, Price, PriceTable
    from rrf_design.models.spending import Spending

Problems = Problem | Mapping[str, Problem]
YOUNG = 50_000
"""Objects that may be allocated during a run before Python looks among them for cycles; some megabytes."""


@bundled(limits=Limits, strategy=Strategy, surroundings=Surroundings)
@for_each_item("rrf_design.handover", "acquire_dataset")
def acquire(
    problem: Problems | None = None,
    model: str | Model | Mapping[str, Any] | None = None,
    *,
    budget: float | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: str | None = None,
    limits: Limits | None = None,
    strategy: Strategy | None = None,
    surroundings: Surroundings | None = None,
) -> Acquisition:
    """Buy until a stopping rule fires, then repair; the run is in the journal and can be resumed at any moment.

    `problem` is one problem or a mapping from item names to problems (a data set under one budget). `model` is a name
    (default: the recipe's models, else "embedded"; when resuming, what the run began with), an adapter object, or several by name, as in a recipe's `[models]`: nodes say which of them is asked, the first one by default. `budget` counts the costs of the problem file (default: the problem's own). With `resume`
    the problem is read from the journal, and so are budget, money, prices and the stopping rule where they are not given again. `limits` are on calls, seconds,
    gain and real money; they replace those of the same kind and leave the rest of the rule as it is. `strategy` says how it is decided
    (mode, batch, stop, method, doubt, seed), `surroundings` what there is beside the model: recorded `responses`, `reviews`, `prices`, a `cache` of answers,
    what may be executed, and `progress`, which is told how far the run is. Prices come with the package; `prices` go over them. `consent` is asked before anything is
    bought: it is told what the run will take and whether a limit was set, and its False ends the call.
    `strategy.batch_api` hands the questions in through the provider's batch interface: the call ends while they are pending, and `resume` collects them.

    Returns an `Acquisition`: `verdict` and `verdicts`, `items` with answers and repairs, `purchases`, what was `spent`, and
    `stopped_because`, which says why buying ended and is no verdict.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> from rrf_design.models.scripted import ScriptedModel
    >>> problem = rrf.Problem(
    ...     nodes=[{"id": "a", "prompt": "6 * 7?"}, {"id": "b", "prompt": "42 / 1?"}],
    ...     relations=[{"id": "same", "tail": "a", "head": "b"}],
    ...     anchors=[{"id": "x", "node": "a", "value": 42.0, "cost": 1.0}],
    ... )
    >>> store = pathlib.Path(tempfile.mkdtemp()) / "runs.sqlite"
    >>> run = rrf.acquire(problem, ScriptedModel(lambda request: "42"), budget=2.0, store=store)
    >>> run.verdict.value, run.spent, dict(run.repaired)
    ('certified', 1.0, {'a': [42.0], 'b': [42.0]})
    """
    plan, around = strategy or Strategy(), surroundings or Surroundings()
    redactor = Redactor(password_of(store_address(store)))
    with seldom_collected(), contextlib.ExitStack() as stack:
        journal = stack.enter_context(Journal(store, redactor=redactor, make=resume is None))
        run, problems, before = _problems(journal, problem, resume)
        settings = _settings(problems, before, budget, limits or Limits(), plan)
        table = _prices(around.prices if around.prices is not None or before is None else before.get("prices"))
        entries = entries_of(model, around.model_options, before, _own(problems))
        entries |= {name: {"use": name} for name in judges_among(problems, entries)}
        for entry in entries.values():
            redactor.add(str(value) for name, value in entry.items() if secret_name(name))
            redactor.add(part for value in entry.values() if isinstance(value, str) for part in password_of(value))
        roster = Roster.start(entries, stack)
        redactor.add(value for name, value in os.environ.items() if secret_name(name))  # also of a .env file
        for _, adapter in roster.items():
            redactor.add(getattr(adapter, "secrets", ()))
        known = _responses(problems, around.responses)
        seed = before.get("seed", plan.seed) if before else plan.seed
        tools = Toolbox(
            model=lambda name: roster[roster.called(name)],
            options=lambda name: roster.options(roster.called(name)),
            price=lambda adapter, usage: fetcher.money(adapter, usage),
            allow_commands=around.allow_commands,
            isolation=around.isolation,
        )
        fields = {item: askable(with_room(p)) for item, p in problems.items()}
        fetcher = Fetcher(
            fields,
            roster,
            known=known,
            seed=seed,
            tools=tools,
            constrained=around.constrained,
            cache=_cache(around.cache, roster, stack),
            batch_api=settings.batch_api,
        )
        if settings.batch_api and all(adapter.batches() is None for _, adapter in roster.items()):
            raise InputError(
                "none of the run's models has a batch interface (openai:NAME and anthropic:NAME have one); leave --batch-api out"
            )
        documents = {item: files.to_document(p) for item, p in problems.items()}
        _no_secret_inside(documents, redactor)
        fetcher.prices = table = _priced(
            fetcher,
            problems,
            given=table,
            settings=settings,
            consent=around.consent if before is None else None,
            fresh=before is None,
        )
        if before is None:
            header = header_of(problems, roster, settings, seed, entries=entries, prices=table, title=around.title)
            run = journal.create(header, documents)
        else:
            same_models(run, before, roster)
        stack.enter_context(journal.holding(run))
        journal.survive_power_cuts(not fetcher.all_local)
        acquirer = Acquirer(
            fields,
            settings=settings,
            journal=journal,
            run=run,
            terms=fetcher.terms,
            instant=fetcher.instant,
            watch=None if around.progress is None else Teller(around.progress),
        )
        fetcher.state = acquirer.state
        driver = (BatchDriver if settings.batch_api else Driver)(acquirer, fetcher, redactor)
        for item, field in fields.items():
            fetcher.recall(item, field, acquirer.state.items[item])
        for item, given in known.items():
            acquirer.give(fetcher.numbers(item, fields[item], given), item, flush=False)
        for item, field in fields.items():  # what earlier runs were answered is not bought again
            acquirer.give(fetcher.kept(item, field), item, flush=False)
        if around.reviews is not None:
            acquirer.tell(*review.read_queue(around.reviews, acquirer, fetcher))
        driver.run()
        acquirer.conclude(conclude(acquirer.designs, acquirer.state, waiting=settings.mode is Mode.TRIAGE))
        if around.review_file is not None:
            review.write_queue(around.review_file, review.queue(acquirer, fetcher))
        because, detail = summary(acquirer.stops), ""
        if driver.paused:
            because, detail = Because.PAUSED.value, driver.paused
        elif isinstance(driver, BatchDriver) and driver.pending:
            because, detail = Because.PENDING.value, driver.pending
        acquirer.end(because, detail)
        return collect(run, acquirer.designs, acquirer.state, journal.header(run), because=because, detail=detail)


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """While a run goes on, Python looks for reference cycles less often: a run keeps what it allocates (states, events, fields), and going
    through all of it again and again took a fifth of the processor time of a call."""
    before = gc.get_threshold()
    gc.set_threshold(max(YOUNG, before[0]), *before[1:]) if before[0] else None
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _problems(
    journal: Journal, problem: Problems | None, resume: str | None
) -> tuple[str, dict[str, Problem], dict[str, Any] | None]:
    """The run's name, its problems, and its header if it is an old one."""
    given = None if problem is None else {"": problem} if isinstance(problem, Problem) else dict(problem)
    if resume is None:
        if not given:
            raise InputError("there is nothing to acquire; give a problem, or the run to resume")
        return "", given, None
    run = journal.find(resume)
    before = journal.header(run)
    stored = {item: files.from_document(document) for item, document in journal.problems(run).items()}
    if given is not None and {i: files.digest(p) for i, p in given.items()} != before["digests"]:
        raise InputError(f"run {run}: it belongs to another problem; resume it without a problem, or with its own")
    return run, stored, before


def _settings(
    problems: Mapping[str, Problem],
    before: Mapping[str, Any] | None,
    budget: float | None,
    limits: Limits,
    plan: Strategy,
) -> Settings:
    old = before["settings"] if before else {}
    if budget is None:
        own = [p.budget for p in problems.values() if p.budget is not None]
        budget = old.get("budget", sum(own) if len(own) == len(problems) else None)
    try:
        chosen = Mode(old.get("mode", plan.mode or Mode.AGNOSTIC))
        policy = Doubt(plan.doubt) if plan.doubt is not None else None
    except ValueError as error:
        raise InputError(f"{error}; modes are agnostic, adaptive and triage, doubt is again or skip") from None
    stop = plan.stop
    if stop is None and "rule" in old:
        stop = restore(old["rule"])
    if limits != Limits():
        stop = limited(default() if stop is None else stop, limits)
    if policy is Doubt.SAME:
        raise InputError("doubt: 'same' is chosen by the program where nothing can be charged twice; use again or skip")
    return Settings(
        budget=budget,
        money=old.get("money") if limits.money is None else limits.money,
        mode=chosen,
        batch=old.get("batch", plan.batch),
        stop=stop,
        method=old.get("method", plan.method),
        doubt=policy,
        time_limit=plan.time_limit,
        batch_api=old.get("batch_api", False) if before else plan.batch_api,
    )


def _prices(given: Any) -> PriceTable | None:
    from rrf_design.models import PriceTable

    return given if given is None or isinstance(given, PriceTable) else PriceTable.load(given)


def _priced(
    fetcher: Fetcher,
    problems: Mapping[str, Problem],
    *,
    given: PriceTable | None,
    settings: Settings,
    consent: Callable[[Spending, bool], bool] | None,
    fresh: bool,
) -> PriceTable:
    """The prices of the run's models, for calls as large as it can make. The user agrees to what a new run may spend and its servers
    are looked at, or nothing is bought."""
    from rrf_design.models.prices import REMEDY, PriceTable, price_of
    from rrf_design.models.spending import Spending

    tallies = fetcher.tallies(problems)
    found = {model.name: price_of(model, given, tallies[model.name].largest) for model in fetcher.models}
    if settings.batch_api:  # the list has the price of a call on its own; a table of the user's is taken as it is
        found |= {
            m.name: _discounted(found[m.name])
            for m in fetcher.models
            if m.listed and m.batches() and not (given and given.counted(m))
        }
    unknown = tuple(name for name, price in found.items() if price is None)
    if settings.money is not None and unknown:
        raise InputError(
            f"no price is known of model {unknown[0]!r}, and a money budget needs one; {REMEDY.format(unknown[0])},"
            " or leave the money budget out"
        )
    loose = [model.name for model in fetcher.models if not model.bounded]
    if settings.money is not None and loose:
        raise InputError(f"model {loose[0]} is asked without a limit on its answers, so no money budget can be kept")
    if consent is not None:
        calls, _ = hard_limits(settings.rule)
        said = any(limit is not None for limit in (settings.budget, settings.money, calls))
        asked = {name: tally for name, tally in tallies.items() if tally.most.calls}
        hosted = {model.name for model in fetcher.models if model.listed is not None}
        if not consent(Spending.of(asked, found, hosted), said):
            raise Refused("nothing was asked and nothing was spent")
    for model in fetcher.models if fresh else ():
        if tallies[model.name].most.calls:
            model.preflight()
    known = {name: price for name, price in found.items() if price is not None}
    return PriceTable(known, "the run's prices" if given is None else given.source, unknown)


def _discounted(price: Price | None) -> Price | None:
    from rrf_design.models.batches import DISCOUNT
    from rrf_design.models.prices import Price

    return None if price is None else Price(price.input * DISCOUNT, price.output * DISCOUNT, price.call * DISCOUNT)


def entries_of(
    model: str | Model | Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    before: Mapping[str, Any] | None,
    own: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """The run's models with their options, by name; when resuming without a word on them, as the run began. `options` go to
    the models that are named without any."""
    given = dict(options or {})
    if model is None and before is not None:
        return {name: {**entry, **given} for name, entry in _before(before, given).items()}
    chosen = line_up(model, own) or {FIRST: "embedded"}
    return {
        str(name): {**given, **entry} if isinstance(entry, Mapping) else {"use": entry, **given}
        for name, entry in chosen.items()
    }


def _own(problems: Mapping[str, Problem]) -> Mapping[str, Any]:
    """The `[models]` of the problem files; several files name the same ones, or one of them does."""
    found: Mapping[str, Any] = {}
    for item, problem in problems.items():
        if problem.models and found and problem.models != found:
            raise InputError(
                f"item {item!r}: its [models] are not those of the other files; one run has one list of models"
            )
        found = found or problem.models
    return found


def judges_among(problems: Mapping[str, Problem], entries: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    """The models that verifiers name and that are not among the run's: they join them under their own names."""
    used = (entry.get("use") for entry in entries.values())
    known = {*entries, *(getattr(use, "name", use) for use in used)}
    sources = (anchor.source for problem in problems.values() for anchor in problem.anchors)
    named = (source.get("verifier") for source in sources if isinstance(source, Mapping))
    return dict.fromkeys(name for name in named if isinstance(name, str) and name not in known)


def _before(before: Mapping[str, Any], given: Collection[str]) -> dict[str, dict[str, Any]]:
    """The models that a run began with; runs of older versions had one. What was never kept must be among the options `given` again."""
    found = {}
    kept = before.get("models") or {FIRST: {"use": before["spec"], **before["options"]}}
    for name, entry in kept.items():
        if entry.get("use") is None:
            raise InputError(f"run {before['run']}: it was begun with an adapter object; give it again as model")
        for option, value in entry.items():
            if isinstance(value, str) and HIDDEN in value and option not in given:
                words = f"its {option} holds a password, which is never kept; give it again"
                raise InputError(f"run {before['run']}: {words}")
        found[name] = {option: value for option, value in entry.items() if option not in ("name", "identity")}
    return found


def _cache(folder: str | os.PathLike[str] | None, roster: Roster, stack: contextlib.ExitStack) -> AnswerCache | None:
    """The kept answers; not opened where no model's answers are kept."""
    if folder is None or not any(model.kept for _, model in roster.items()):
        return None
    return stack.enter_context(AnswerCache(folder))


def _responses(problems: Mapping[str, Problem], given: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Known responses by item; for a single problem they may be given by node directly."""
    if not given:
        return {}
    if list(problems) == [""]:
        return {"": given.get("", given) if isinstance(given.get("", given), Mapping) else given}
    for item in given:
        if item not in problems:
            raise InputError(f"responses: there is no item {item!r}")
    return dict(given)


def _no_secret_inside(documents: Mapping[str, Any], redactor: Redactor) -> None:
    """The journal keeps the problem word for word, so a secret in it would be kept as well."""
    for item, document in documents.items():
        text = json.dumps(document, ensure_ascii=False)
        if redactor.text(text) != text:
            where = f"item {item!r}: " if item else ""
            raise InputError(f"{where}the problem contains a key or password; take it out, the journal would keep it")
