"""`acquire`: the loop with a real model behind it. Calls run side by side in threads, the journal has one writer.

What can go wrong ends in one of three ways, all of them resumable: the model can't be reached (the purchase is released
and the run pauses), the journal can't be written (`RetryLater`; what is under way is in doubt), the process dies (same).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from rrf_design import files
from rrf_design.acquisition import review
from rrf_design.acquisition.fetching import Fetcher
from rrf_design.acquisition.header import header, same_model
from rrf_design.acquisition.journal import Event, Journal
from rrf_design.acquisition.loop import Acquirer, Mode, Settings
from rrf_design.acquisition.result import Acquisition, collect, conclude
from rrf_design.acquisition.secrets import Redactor, password_of, secret_name
from rrf_design.acquisition.sources import Toolbox, Unreachable
from rrf_design.acquisition.state import Buys, Doubt, Purchase, Settlement
from rrf_design.acquisition.stopping import Because, Rule, restore, summary
from rrf_design.errors import InputError
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from rrf_design.models import Model, PriceTable

Problems = Problem | Mapping[str, Problem]


def acquire(
    problem: Problems | None = None,
    model: str | Model | None = None,
    *,
    budget: float | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: str | None = None,
    mode: str = "agnostic",
    batch: int = 1,
    stop: Rule | None = None,
    method: str = "auto",
    money: float | None = None,
    prices: str | os.PathLike[str] | Mapping[str, Any] | PriceTable | None = None,
    responses: Mapping[str, Any] | None = None,
    reviews: str | os.PathLike[str] | None = None,
    review_file: str | os.PathLike[str] | None = None,
    allow_commands: bool = False,
    isolation: str = "seccomp",
    constrained: bool = False,
    doubt: str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    model_options: Mapping[str, Any] | None = None,
    progress: Callable[[Event], None] | None = None,
) -> Acquisition:
    """Buy until a stopping rule fires, then repair; the run is in the journal and can be resumed at any moment.

    `problem` is one problem or a mapping from item names to problems (a data set under one budget). `model` is a name
    (default "embedded"; when resuming, what the run began with) or an adapter object. `budget` counts the costs of the problem file (default: the problem's own), `money` what the calls really cost by the price table `prices`. With `resume`
    the problem is read from the journal, and so are budget, money and `stop` where they are not given again. `reviews` is a filled-in review file, `review_file` where to write the open ones.
    """
    redactor = Redactor(password_of(os.fspath(store)) if store is not None else ())
    with contextlib.ExitStack() as stack:
        journal = stack.enter_context(Journal(store, redactor=redactor))
        run, problems, before = _problems(journal, problem, resume)
        settings = _settings(problems, before, budget, money, mode, batch, stop, method, doubt, time_limit)
        table = _prices(prices)
        spec, options = _spec(model, model_options, before)
        redactor.add(str(value) for name, value in options.items() if secret_name(name))
        adapter = _model(spec, options, stack)
        redactor.add(getattr(adapter, "secrets", ()))
        if settings.money is not None:
            if table is None:
                raise InputError("a money budget needs a price table; give prices, or leave the money budget out")
            table.price(adapter)
        known = _responses(problems, responses)
        seed = before.get("seed", seed) if before else seed
        tools = Toolbox(
            model=_finder(adapter, stack),
            price=None if table is None else table.cost,
            allow_commands=allow_commands,
            isolation=isolation,
        )
        fetcher = Fetcher(problems, adapter, known=known, prices=table, seed=seed, tools=tools, constrained=constrained)
        _no_secret_inside(problems, redactor)
        if before is None:
            documents = {item: files.to_document(p) for item, p in problems.items()}
            run = journal.create(header(problems, adapter, settings, seed, spec=spec, options=options), documents)
        else:
            same_model(run, before, adapter)
        stack.enter_context(journal.holding(run))
        journal.survive_power_cuts(not fetcher.all_local)
        acquirer = Acquirer(
            problems,
            settings=settings,
            journal=journal,
            run=run,
            terms=fetcher.terms,
            instant=fetcher.instant,
            watch=progress,
        )
        driver = _Driver(acquirer, fetcher, redactor)
        for item, given in known.items():
            acquirer.give(given, item)
        if reviews is not None:
            acquirer.tell(*review.read_queue(reviews, acquirer, fetcher))
        driver.run()
        open_reviews = review.queue(acquirer, fetcher) if driver.paused is None else []
        if review_file is not None:
            review.write_queue(review_file, open_reviews)
        concluded = None if driver.paused or open_reviews else conclude(acquirer.designs, acquirer.state)
        if concluded is not None:
            acquirer.conclude(concluded)
        because = Because.PAUSED.value if driver.paused else summary(acquirer.stops)
        acquirer.end(because, driver.paused or "")
        return collect(
            run, acquirer.designs, acquirer.state, journal.header(run), because=because, detail=driver.paused or ""
        )


class _Driver:
    """Keeps the model's slots busy between `ask` and `tell`."""

    def __init__(self, acquirer: Acquirer, fetcher: Fetcher, redactor: Redactor) -> None:
        self.acquirer, self.fetcher, self.redactor = acquirer, fetcher, redactor
        self.paused: str | None = None
        self._answered = any(
            e.buys is Buys.ANSWER and e.ok for s in acquirer.state.items.values() for e in s.settled.values()
        )

    def run(self) -> None:
        slots = max(1, self.fetcher.model.slots)
        if slots == 1:
            self._one_by_one()
            return
        under_way: dict[Future[Settlement], Purchase] = {}
        with ThreadPoolExecutor(slots) as pool:
            while True:
                with self._interruptible():
                    for purchase in self._ask(slots - len(under_way)):
                        under_way[pool.submit(self._fetch, purchase)] = purchase
                if not under_way:
                    break
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                self._tell({under_way.pop(future): future for future in done})

    def _one_by_one(self) -> None:
        while purchases := self._ask(1):
            for purchase in purchases:
                future: Future[Settlement] = Future()
                try:
                    future.set_result(self._fetch(purchase))
                except Unreachable as error:
                    future.set_exception(error)
                except KeyboardInterrupt:
                    self.paused = "interrupted"
                    return  # the call may have been answered: it is in doubt, and the journal says so on resume
                self._tell({purchase: future})

    def _ask(self, count: int) -> tuple[Purchase, ...]:
        """The next purchases that are ours to fetch; those for people wait in the queue."""
        while self.paused is None and count > 0:
            asked = self.acquirer.ask(count)
            ours = tuple(purchase for purchase in asked if not purchase.deferred)
            if ours or not asked:
                return ours
        return ()

    def _fetch(self, purchase: Purchase) -> Settlement:
        return self.fetcher.fetch(purchase, self.acquirer.state.items[purchase.item])

    def _tell(self, done: Mapping[Purchase, Future[Settlement]]) -> None:
        settled = []
        for purchase, future in done.items():
            try:
                settlement = future.result()
            except Unreachable as error:
                self._pause(purchase, str(error))
                continue
            if settlement.outcome == "failed" and not self._answered and purchase.buys is Buys.ANSWER:
                # Not one answer so far: a wrong key or model name would burn the whole budget in failures.
                detail = settlement.evidence.get("reply", {}).get("detail", "")
                self._pause(purchase, f"the backend refuses the call: {detail}")
                continue
            self._answered |= settlement.ok and purchase.buys is Buys.ANSWER
            settled.append(settlement)
        # What a local model said can be had again for nothing, so its commit may wait for the next intent.
        self.acquirer.tell(*settled, flush=not self.fetcher.local)

    def _pause(self, purchase: Purchase, reason: str) -> None:
        self.paused = self.redactor.text(f"{self.fetcher.model.name}: {reason}")
        self.acquirer.release(purchase, self.paused)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C stops asking; what is under way is waited for and settled."""
        try:
            yield
        except KeyboardInterrupt:
            self.paused = "interrupted"


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
    money: float | None,
    mode: str,
    batch: int,
    stop: Rule | None,
    method: str,
    doubt: str | None,
    time_limit: float | None,
) -> Settings:
    old = before["settings"] if before else {}
    if budget is None:
        own = [p.budget for p in problems.values() if p.budget is not None]
        budget = old.get("budget", sum(own) if len(own) == len(problems) else None)
    try:
        chosen = Mode(old.get("mode", mode))
        policy = Doubt(doubt) if doubt is not None else None
    except ValueError as error:
        raise InputError(f"{error}; modes are agnostic and adaptive, doubt is again or skip") from None
    if stop is None and "rule" in old:
        stop = restore(old["rule"])
    if policy is Doubt.SAME:
        raise InputError("doubt: 'same' is chosen by the program where nothing can be charged twice; use again or skip")
    return Settings(
        budget=budget,
        money=old.get("money") if money is None else money,
        mode=chosen,
        batch=old.get("batch", batch),
        stop=stop,
        method=old.get("method", method),
        doubt=policy,
        time_limit=time_limit,
    )


def _prices(given: Any) -> PriceTable | None:
    from rrf_design.models import PriceTable

    return given if given is None or isinstance(given, PriceTable) else PriceTable.load(given)


def _spec(
    model: str | Model | None, options: Mapping[str, Any] | None, before: Mapping[str, Any] | None
) -> tuple[str | Model, dict[str, Any]]:
    """The model and its options as asked for; when resuming without a word on them, as the run began."""
    if model is not None or not before:
        return "embedded" if model is None else model, dict(options or {})
    if before["spec"] is None:
        raise InputError(f"run {before['run']}: it was begun with an adapter object; give it again as model")
    return str(before["spec"]), dict(before["options"]) | dict(options or {})


def _model(model: str | Model, options: Mapping[str, Any], stack: contextlib.ExitStack) -> Model:
    from rrf_design import models

    adapter = models.get(model, **options)
    if adapter is not model:  # made here, so closed here
        stack.enter_context(adapter)
    return adapter


def _finder(adapter: Model, stack: contextlib.ExitStack) -> Callable[[str], Model]:
    """Verifiers by name: each model is started once; the run's own model is reused."""
    started: dict[str, Model] = {adapter.name: adapter}

    def find(name: str) -> Model:
        if name not in started:
            started[name] = _model(name, {}, stack)
        return started[name]

    return find


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


def _no_secret_inside(problems: Mapping[str, Problem], redactor: Redactor) -> None:
    """The journal keeps the problem word for word, so a secret in it would be kept as well."""
    for item, problem in problems.items():
        text = files.dumps(problem, "json")
        if redactor.text(text) != text:
            where = f"item {item!r}: " if item else ""
            raise InputError(f"{where}the problem contains a key or password; take it out, the journal would keep it")
