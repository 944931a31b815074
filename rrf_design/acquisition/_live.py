"""`acquire`: the loop with a real model behind it.

Calls run side by side, the journal has one writer.

Three things can go wrong, and all are resumable: the model can't be reached (the purchase is
released, the run pauses), the journal can't be written (`RetryLater`), the process dies.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rrf_design import files
from rrf_design.acquisition import _review as review
from rrf_design.acquisition._batch_driver import BatchDriver
from rrf_design.acquisition._concluding import conclude
from rrf_design.acquisition._driver import Driver
from rrf_design.acquisition._fetch import Fetcher
from rrf_design.acquisition._joined import alone, concluded, join_leases, may_share, share_run, work_on
from rrf_design.acquisition._leases import Leases
from rrf_design.acquisition._loop import Acquirer
from rrf_design.acquisition._progress import ProgressReport
from rrf_design.acquisition._purchases import Doubt
from rrf_design.acquisition.classes import with_room
from rrf_design.acquisition.journal import Journal
from rrf_design.acquisition.redaction import HIDDEN, Redactor, no_secret_inside, password_of, secret_name
from rrf_design.acquisition.result import Acquisition, collect, read_run
from rrf_design.acquisition.settings import Mode, Settings, header_of, same_models, shared_errors_of
from rrf_design.acquisition.sources.verifier import Verifier
from rrf_design.acquisition.stopping import default, hard_limits, limited, restore, summary
from rrf_design.acquisition.stores import store_address
from rrf_design.arguments import is_dataset
from rrf_design.derive import askable
from rrf_design.errors import InputError, Refused
from rrf_design.models.cache import AnswerCache
from rrf_design.models.roster import FIRST, Roster, line_up
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from rrf_design.acquisition.stopping import StoppingRule
    from rrf_design.models import Model, PriceTable
    from rrf_design.models.prices import CallTally, Spending
    from rrf_design.questions import Dataset
    from solvers.result import Progress

_YOUNG = 50_000
"""Objects that may be allocated before Python looks for cycles among them: some megabytes."""


def acquire(
    problem: Problem | Mapping[str, Problem] | Dataset | None = None,
    model: str | Model | Mapping[str, Any] | None = None,
    *,
    budget: float | None = None,
    money: float | None = None,
    calls: int | None = None,
    seconds: float | None = None,
    gain: float | None = None,
    mode: str | None = None,
    measured: Any = None,
    batch: int = 1,
    stop: StoppingRule | None = None,
    method: str = "auto",
    time_limit: float | None = None,
    seed: int = 0,
    responses: Any = None,
    reviews: str | os.PathLike[str] | None = None,
    review_file: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: str | None = None,
    join: str | None = None,
    doubt: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    prices: str | os.PathLike[str] | Mapping[str, Any] | PriceTable | None = None,
    consent: Callable[[Spending, bool], bool] | None = None,
    model_options: Mapping[str, Any] | None = None,
    batch_api: bool = False,
    constrained: bool = False,
    allow_commands: bool = False,
    isolation: str = "seccomp",
    progress: Progress | None = None,
    title: str | None = None,
) -> Acquisition:
    """Buy answers and checks until a stopping rule fires, then repair.

    The run is in the journal, and can be resumed at any moment.

    Parameters
    ----------
    problem : Problem, mapping of item names to problems, or Dataset
        Several problems share one budget. With `resume` it may be left out: the journal has it.
    model : str, Model, or mapping of names to them
        Who is asked: a name (default: the recipe's models, else "embedded"; when resuming, what the
        run began with), an adapter object, or several by name, as in a recipe's `[models]`: nodes
        say which of them is asked, the first one by default.
    budget : float, optional
        In the costs of the problem file; default: the problem's own.
    money : float, optional
        What the calls may really cost, by the price table.
    calls, seconds, gain : optional
        The run ends after so many calls, after so much working time, or when a round gains less
        margin per cost. Each replaces a limit of its kind and leaves the rest of the rule as it is.
    mode : {"agnostic", "adaptive", "triage", "expected"}, optional
        "agnostic" (default of problems): the schedule is fixed before any answer. "adaptive":
        residuals may steer. "triage" (default of a data set): what is missing or disputed, over all
        items, people last. "expected": what is expected to break most shared errors for its price
        first, by `measured`: an estimate, which decides purchases and nothing that is said of
        values.
    measured : Measurement, document or path, optional
        With mode="expected": what `measure` counted on other items.
    batch : int
        Purchases of one item that are decided on together.
    stop : StoppingRule, optional
        When it is enough; default: `rrf_design.acquisition.stopping.default`.
    method : str
        How a schedule is made: a method of `plan`, or "witness" for the paper's rule.
    time_limit : float, optional
        Seconds for each planning.
    seed : int
        Of the questions, where it is not 0.
    responses : optional
        Answers that exist already, by node (of several problems: by item, then by node). Of a data
        set: recorded answers, rows `id node ... value|text|status`; then nobody is asked for what
        they lack, unless a model is given too.
    reviews : path, optional
        A review file that was filled in.
    review_file : path, optional
        Where open reviews are written.
    store : path or address, optional
        Where the journal is; default: RRF_STORE, else `rrf-runs.sqlite`.
    resume : str, optional
        The run to go on with: its name, the beginning of it, or "last". Budget, money, prices and
        stopping rule are the run's own where they are not given again.
    join : str, optional
        The run on a PostgreSQL store to work on beside the processes that do already; models,
        limits and problems are the run's own. It ends when every item of the run is done.
    doubt : {"again", "skip"}, optional
        After a crash, what becomes of a paid call without outcome; default: "again".
    cache : path, optional
        A folder in which answers of models that are not local are kept across runs, and of a data
        set what people said about equal rows; None: nothing is kept.
    prices : path, mapping or PriceTable, optional
        Prices that go over those that come with the package.
    consent : callable, optional
        Asked before anything is bought: told what the run will take and whether a limit was set.
        False ends the call.
    model_options : mapping, optional
        For the models that are named without options of their own.
    batch_api : bool
        Questions go through the provider's batch interface: the call ends while they are pending,
        and `resume` collects them.
    constrained : bool
        Answers are bound to the grammar of their parser.
    allow_commands : bool
        Sources may run programs of the recipe.
    isolation : str
        How strictly programs of models are shut in.
    progress : callable, optional
        Told how far the run is; a run of one problem tells its story.
    title : str, optional
        What `rrf-design runs` calls it; default: the name of the problem, or how many items there
        are.

    Returns
    -------
    Acquisition
        `verdict` and `verdicts`, `items` with answers and repairs, `purchases`, what was `spent`,
        and `stopped_because`, which says why buying ended and is no verdict.

    Examples
    --------
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
    ('consistent', 1.0, {'a': [42.0], 'b': [42.0]})
    """
    table = problem if is_dataset(problem) else None
    if join is not None:
        own: dict[str, Any] = {"resume": resume, "budget": budget, "money": money, "calls": calls, "gain": gain}
        own |= {"mode": mode, "stop": stop, "responses": responses, "reviews": reviews, "seed": seed or None}
        for name, value in own.items():
            if value is not None:
                raise InputError(f"join goes with the run's own problems and limits: leave {name} out")
        ended = join_run(
            join,
            store=store,
            model=model,
            options=model_options,
            doubt=doubt,
            constrained=constrained,
            allow_commands=allow_commands,
            isolation=isolation,
            cache=cache,
            progress=progress,
        )
        if ended is not None:
            return ended
        resume = join
    if table is not None:
        from rrf_design.tables import recorded_run

        mode = mode or Mode.TRIAGE.value
        problem, model, responses = recorded_run(table, model, responses=responses, cache=cache, resume=resume)
    redactor = Redactor(password_of(store_address(store)))
    with _seldom_collected(), contextlib.ExitStack() as stack:
        journal = stack.enter_context(Journal(store, redactor=redactor, make=resume is None))
        run, problems, before = _begun(journal, problem, resume)
        limits = {"calls": calls, "seconds": seconds, "gain": gain}
        settings = _settings(
            problems,
            before,
            stop=stop,
            limits=limits,
            mode=mode,
            measured=measured,
            doubt=doubt,
            budget=budget,
            money=money,
            batch=batch,
            method=method,
            time_limit=time_limit,
            batch_api=batch_api,
        )
        entries = entries_of(model, model_options, before, _own(problems), problems)
        roster = _roster(entries, redactor, stack)
        known = _responses(problems, responses)
        fields = {item: askable(with_room(p)) for item, p in problems.items()}
        fetching: dict[str, Any] = {
            "seed": before.get("seed", seed) if before else seed,
            "constrained": constrained,
            "allow_commands": allow_commands,
            "isolation": isolation,
            "cache": _cache(cache, roster, stack),
        }
        fetcher = Fetcher(fields, roster, known=known, batch_api=settings.batch_api, **fetching)
        documents = {item: files.to_document(p) for item, p in problems.items()}
        no_secret_inside(documents, redactor)
        given = _price_table(prices if prices is not None or before is None else before.get("prices"))
        fetcher.prices = _priced(fetcher, problems, given, settings, consent=consent, fresh=before is None)
        if before is None:
            header = header_of(problems, roster, settings, seed, entries=entries, prices=fetcher.prices, title=title)
            run = journal.create(header, documents)
        else:
            same_models(run, before, roster)
        watch = None if progress is None else ProgressReport(progress)

        def begin() -> Acquirer:
            acquirer = Acquirer(
                fields,
                settings=settings,
                journal=journal,
                run=run,
                terms=fetcher.terms,
                instant=fetcher.instant,
                read_with=fetcher.read_with,
                watch=watch,
            )
            fetcher.state, fetcher.designs = acquirer.state, acquirer.designs
            for item, state in acquirer.state.items.items():
                fetcher.recall(item, fields[item], state)
            for item, said in known.items():
                acquirer.give(fetcher.numbers(item, fields[item], said), item, flush=False)
            for item, field in fields.items():  # what earlier runs were answered is not bought again
                acquirer.give(fetcher.kept(item, field), item, flush=False)
            if reviews is not None:
                acquirer.tell(*review.read_queue(reviews, acquirer, fetcher))
            return acquirer

        sharing = may_share(journal, run, settings, len(fields))
        if sharing and join is None:
            others = Fetcher({}, roster, known={}, prices=fetcher.prices, **fetching)
            leases = Leases(journal, run)
            left = share_run(leases, journal, begin, settings, fetcher=others, redactor=redactor, watch=watch)
            if left is not None:
                return replace(read_run(run, store=store), stopped_because=left[0], detail=left[1])
        stack.enter_context(alone(journal, run) if sharing else journal.holding(run))
        if sharing and concluded(journal, run):
            return read_run(run, store=store)
        journal.survive_power_cuts(not fetcher.all_local)
        acquirer = begin()
        driver = (BatchDriver if settings.batch_api else Driver)(acquirer, fetcher, redactor)
        driver.run()
        acquirer.conclude(conclude(acquirer.designs, acquirer.state, waiting=settings.mode is Mode.TRIAGE))
        if review_file is not None:
            review.write_queue(review_file, review.queue(acquirer, fetcher))
        because, detail = driver.ending or (summary(acquirer.stops), "")
        acquirer.end(because, detail)
        result = collect(run, acquirer.designs, acquirer.state, journal.header(run), because=because, detail=detail)
    if table is not None:
        from rrf_design.tables import keep_labels

        keep_labels(table, result, cache)
    return result


def join_run(
    join: str,
    *,
    store: str | os.PathLike[str] | None,
    model: Any,
    options: Mapping[str, Any] | None,
    doubt: str | None,
    cache: Any,
    progress: Progress | None,
    **fetching: Any,
) -> Acquisition | None:
    """Work on a run beside others until all its items are done.

    Returns how it stands where this process left before that or somebody concluded it, else None.
    """
    redactor = Redactor(password_of(store_address(store)))
    with _seldom_collected(), contextlib.ExitStack() as stack:
        journal = stack.enter_context(Journal(store, redactor=redactor, make=False))
        if not journal.shared:
            raise InputError(f"{journal.shown}: one process works on it; to join a run, give --store postgresql://...")
        run = journal.find(join)
        before = journal.header(run)
        settings = _settings({}, before, doubt=doubt)
        roster = _roster(entries_of(model, options, before, {}, {}), redactor, stack)
        same_models(run, before, roster)
        kept = _cache(cache, roster, stack)
        fetcher = Fetcher({}, roster, known={}, seed=before.get("seed", 0), cache=kept, **fetching)
        fetcher.prices = _price_table(before.get("prices"))
        leases = join_leases(journal, run, settings)
        watch = None if progress is None else ProgressReport(progress)
        left = work_on(leases, journal, before, settings, fetcher=fetcher, redactor=redactor, watch=watch)
        if left is None:
            with alone(journal, run):
                if not concluded(journal, run):
                    return None
    found = read_run(run, store=store)
    return found if left is None else replace(found, stopped_because=left[0], detail=left[1])


@contextlib.contextmanager
def _seldom_collected() -> Iterator[None]:
    """While a run goes on, Python looks for reference cycles less often: going through all that a
    run keeps again and again took a fifth of the processor time of a call.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(_YOUNG, before[0]), *before[1:]) if before[0] else None
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _begun(
    journal: Journal, problem: Problem | Mapping[str, Problem] | None, resume: str | None
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
    *,
    stop: StoppingRule | None = None,
    limits: Mapping[str, Any] = MappingProxyType({}),
    mode: str | None = None,
    measured: Any = None,
    doubt: str | None = None,
    **given: Any,
) -> Settings:
    """What is given, and where a run is resumed what it began with: all of that but its limits
    stays.
    """
    old = before["settings"] if before else {}
    given = {"budget": None, "money": None} | given
    own = [p.budget for p in problems.values() if p.budget is not None]
    stated = sum(own) if len(own) == len(problems) else None
    for name, otherwise in (("budget", stated), ("money", None)):
        if given[name] is None:
            given[name] = old.get(name, otherwise)
    given |= {name: old[name] for name in ("batch", "method") if name in old}
    if before:
        given["batch_api"] = old.get("batch_api", False)
    try:
        chosen = Mode(old.get("mode", mode or Mode.AGNOSTIC))
        policy = None if doubt is None else Doubt(doubt)
    except ValueError as error:
        raise InputError(
            f"{error}; modes are agnostic, adaptive, triage and expected, doubt is again or skip"
        ) from None
    if (chosen is Mode.EXPECTED) != (measured is not None or "shared" in old):
        raise InputError(
            "mode expected goes with what was measured of other items (--measured, of `measure --json`), and nothing"
            " else does"
        )
    if chosen is Mode.EXPECTED:
        recorded = {(first, second): rate for first, second, rate in old.get("shared", ())}
        given["shared"] = recorded or shared_errors_of(measured)
    if policy is Doubt.SAME:
        raise InputError("doubt: 'same' is chosen by the program where nothing can be charged twice; use again or skip")
    if stop is None and "rule" in old:
        stop = restore(old["rule"])
    if any(limit is not None for limit in limits.values()):
        stop = limited(stop or default(), **limits)
    return Settings(mode=chosen, stop=stop, doubt=policy, **given)


def _roster(entries: Mapping[str, Mapping[str, Any]], redactor: Redactor, stack: contextlib.ExitStack) -> Roster:
    """The models, started; their keys and passwords are hidden from now on."""
    for entry in entries.values():
        redactor.add(str(value) for name, value in entry.items() if secret_name(name))
        redactor.add(part for value in entry.values() if isinstance(value, str) for part in password_of(value))
    roster = Roster.start(entries, stack)
    redactor.add(value for name, value in os.environ.items() if secret_name(name))  # also of a .env file
    for _, adapter in roster.items():
        redactor.add(getattr(adapter, "secrets", ()))
    return roster


def _price_table(given: Any) -> PriceTable | None:
    from rrf_design.models import PriceTable

    return given if given is None or isinstance(given, PriceTable) else PriceTable.load(given)


def _priced(
    fetcher: Fetcher,
    problems: Mapping[str, Problem],
    given: PriceTable | None,
    settings: Settings,
    *,
    consent: Callable[[Spending, bool], bool] | None,
    fresh: bool,
) -> PriceTable:
    """The prices of the run's models, for calls as large as it can make.

    The user agrees to what a new run may spend and its servers are looked at, or nothing is bought.
    """
    from rrf_design.models.batches import DISCOUNT
    from rrf_design.models.prices import REMEDY, PriceTable, Spending, own_judge, price_of

    tallies = _tallies(fetcher, problems)
    found = {model.name: price_of(model, given, tallies[model.name].largest) for model in fetcher.models}
    batching = {m.name: m for m in fetcher.models if settings.batch_api and m.batches() is not None}
    if settings.batch_api and not batching:
        raise InputError(
            "none of the run's models has a batch interface (openai:NAME and anthropic:NAME have one); leave"
            " --batch-api out"
        )
    for name, one in batching.items():  # the list has the price of a call on its own; a user's table is taken as it is
        price = found[name]
        if one.listed and price is not None and not (given and given.counted(one)):
            found[name] = price.times(DISCOUNT)
    unknown = tuple(name for name, price in found.items() if price is None)
    if settings.money is not None and unknown:
        raise InputError(
            f"no price is known of model {unknown[0]!r}, and a money budget needs one; {REMEDY.format(unknown[0])},"
            " or leave the money budget out"
        )
    judges = tuple(own_judge(check, model) for check, model in _own_judges(fetcher).items())
    loose = [model.name for model in fetcher.models if not model.bounded]
    if settings.money is not None and loose:
        raise InputError(f"model {loose[0]} is asked without a limit on its answers, so no money budget can be kept")
    if fresh and consent is not None:
        calls, _ = hard_limits(settings.rule)
        said = any(limit is not None for limit in (settings.budget, settings.money, calls))
        asked = {name: tally for name, tally in tallies.items() if tally.most.calls}
        hosted = {model.name for model in fetcher.models if model.listed is not None}
        if not consent(replace(Spending.of(asked, found, hosted), judges=judges), said):
            raise Refused("nothing was asked and nothing was spent")
    for model in fetcher.models if fresh else ():
        if tallies[model.name].most.calls:
            model.preflight()
    known = {name: price for name, price in found.items() if price is not None}
    return PriceTable(known, "the run's prices" if given is None else given.source, unknown)


def _own_judges(fetcher: Fetcher) -> dict[str, str]:
    """Checks whose verifier is a model that answers a question of its item, and that model: errors
    of one model come together, so its word is hardly a measurement of its own.
    """
    answering: dict[str, set[int]] = {}
    for (item, _), question in fetcher.questions.items():
        answering.setdefault(item, set()).add(id(question.model))
    judging = {key: source.model for key, source in fetcher.sources.items() if isinstance(source, Verifier)}
    return {name: model.name for (item, name), model in judging.items() if id(model) in answering.get(item, ())}


def _tallies(fetcher: Fetcher, problems: Mapping[str, Problem]) -> dict[str, CallTally]:
    """What everything that can be asked takes, by the name of the model."""
    from rrf_design.models.prices import CallTally

    found: dict[str, CallTally] = {model.name: CallTally() for model in fetcher.models}
    judges = {key: source for key, source in fetcher.sources.items() if isinstance(source, Verifier)}
    asked = {key: (one.model, one.request) for key, one in fetcher.questions.items()}
    asked |= {key: (one.model, one.request) for key, one in judges.items()}
    for (item, name), (model, request) in asked.items():
        problem = problems[item]
        entry = problem.node_by_id.get(name) or problem.block_by_id.get(name)
        always = problem.structure.market.asks[name].included if entry is None else entry.cost is None
        found[model.name].add(request, always=always, attempts=model.retry.attempts)
    return found


def entries_of(
    model: str | Model | Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    before: Mapping[str, Any] | None,
    own: Mapping[str, Any],
    problems: Mapping[str, Problem],
) -> dict[str, dict[str, Any]]:
    """The run's models with their options, by name; when resuming without a word on them, as the
    run began. `options` go to the models that are named without any.

    Models that the verifiers of the problems name and that are not among them join them under
    their own names.
    """
    given = dict(options or {})
    if model is None and before is not None:
        entries = {name: {**entry, **given} for name, entry in _before(before, given).items()}
    else:
        entries = {
            str(name): {**given, **entry} if isinstance(entry, Mapping) else {"use": entry, **given}
            for name, entry in (line_up(model, own) or {FIRST: "embedded"}).items()
        }
    used = (entry.get("use") for entry in entries.values())
    known = {*entries, *(getattr(use, "name", use) for use in used)}
    sources = (anchor.source for problem in problems.values() for anchor in problem.anchors)
    judges = (source.get("verifier") for source in sources if isinstance(source, Mapping))
    return entries | {name: {"use": name} for name in judges if isinstance(name, str) and name not in known}


def _own(problems: Mapping[str, Problem]) -> Mapping[str, Any]:
    """The `[models]` of the problem files; several files name the same ones, or one of them
    does.
    """
    found: Mapping[str, Any] = {}
    for item, problem in problems.items():
        if problem.models and found and problem.models != found:
            raise InputError(
                f"item {item!r}: its [models] are not those of the other files; one run has one list of models"
            )
        found = found or problem.models
    return found


def _before(before: Mapping[str, Any], given: Collection[str]) -> dict[str, dict[str, Any]]:
    """The models that a run began with; runs of older versions had one.

    What was never kept must be among the options `given` again.
    """
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
