"""Options that belong together travel together, so that no public function has more than eight parameters.

A verb names the few things that it is about, and takes the rest in bundles: which margin is meant (`Measure`), how the work is
done (`Backend`), what a run may use up (`Limits`), and so on; the noise has its own room (`rrf_design.noise.Noise`). The fields of a
bundle may also be given as keywords of their own: `repair(problem, answers, epsilon=0.1)` is short for
`repair(problem, answers, noise=Noise(epsilon=0.1))`. That is done in one place, here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.acquisition.stopping import StoppingRule
    from rrf_design.certificates.checker.errors import Tail, Tolerances
    from rrf_design.certificates.uncertainty import Uncertainty
    from rrf_design.models import PriceTable
    from rrf_design.models.spending import Spending
    from rrf_design.planning.contract import Objective
    from solvers.result import Progress

Function = TypeVar("Function", bound=Callable[..., Any])
MEANS = ("n_jobs", "time_limit", "front_end", "seed", "progress")
"""What a planner takes of a `Backend`."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Which margin a planner is after."""

    k: int | None = None
    """How many units may be wrong; None: as the problem says."""
    objective: Objective | str | None = None
    """"gamma", "gamma_sigma" or "robust"; None: what the problem declares decides."""
    jointly: bool = False
    """Whether held blocks of one `[[noise]]` covariance are whitened together in every selection (`rrf_design.planning.jointly`)."""


@dataclass(frozen=True, slots=True)
class Backend:
    """How the work is done; nothing here changes what is true, only how long it takes and how much of it is proven."""

    n_jobs: int | None = None
    """Processes, as joblib counts them; the result does not depend on it."""
    time_limit: float | None = None
    """Seconds; None: as the verb thinks right, infinite: none."""
    front_end: str = "ortools"
    """Of mixed-integer programs: "ortools", "pulp" or "pulp:NAME"."""
    seed: int = 0
    progress: Progress | None = None
    """Called now and then with the share that is done, the bounds so far and words (`solvers.result.Progress`)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """For the chosen method alone: a decoder's penalty, weights, beta ..."""

    def __post_init__(self) -> None:
        if self.time_limit is not None and not self.time_limit >= 0:
            raise InputError(f"time_limit: must be a number of seconds, not {self.time_limit!r}")

    @classmethod
    def of(cls, given: Backend | None, verb: str, *used: str, **told: Any) -> Backend:
        """What is given, with what is `told` beside it; InputError where a field is set that the verb has no use for."""
        made = replace(given or cls(), **{name: value for name, value in told.items() if value is not None})
        refuse_unused(made, verb, used)
        return made

    @property
    def seconds(self) -> float | None:
        """The time limit as searches take it: None for none."""
        return without_infinity(self.time_limit)


def without_infinity(time_limit: float | None) -> float | None:
    return None if time_limit == float("inf") else time_limit


@dataclass(frozen=True, slots=True)
class Claims:
    """What a certificate is to claim beside the margin, and what else it may take for granted."""

    delta: float | None = None
    """The error that is acceptable, where the problem does not say it."""
    largest_error: float | None = None
    """R of the minimax theorem: a bound on every error."""
    uncertainty: Uncertainty | None = None
    tolerances: Tolerances | None = None
    tail: Tail | None = None
    budgets: Sequence[int] | None = None
    """Further values of k."""
    supports: Sequence[Sequence[str]] | None = None
    """A family of node sets, for a bound that holds relative to it only."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a repair has beside the answers."""

    candidates: Mapping[str, Any] | None = None
    """Values that a node may have, for the discrete methods."""
    anchors: Any = None
    """Values of anchors for this field, instead of the problem's."""
    truth: Any = None
    """Used for nothing but the failure labels."""
    hidden: Mapping[str, bool] | None = None
    """Whether an error was visible to the relations, where that is known; for the labels, too."""
    reviews: Any = None
    """Of a data set: a review list that was filled in."""
    resume: str | os.PathLike[str] | None = None
    """Of a data set: a file that keeps rows as they come, so that a second call goes on where the first stopped."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Ends that a user sets for a run beside its budget and its rule. None leaves each as it is."""

    calls: int | None = None
    seconds: float | None = None
    gain: float | None = None
    """Of the margin, per cost."""
    money: float | None = None
    """What the calls may really cost, by the price table."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a run decides what to buy next, and when it is enough."""

    mode: str | None = None
    """"agnostic" (default), "adaptive", or "triage" (the default of a data set)."""
    batch: int = 1
    stop: StoppingRule | None = None
    method: str = "auto"
    doubt: str | None = None
    """After a crash, a paid call without outcome: "again" (default) or "skip"."""
    seed: int = 0
    time_limit: float | None = None
    """Seconds for each planning."""
    batch_api: bool = False
    """Questions go through the provider's batch interface; the call ends while they are pending."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run finds around it: answers and reviews that exist, prices, what it may execute, who watches."""

    responses: Any = None
    reviews: str | os.PathLike[str] | None = None
    """A review file that was filled in."""
    review_file: str | os.PathLike[str] | None = None
    """Where open reviews are written."""
    prices: str | os.PathLike[str] | Mapping[str, Any] | PriceTable | None = None
    cache: str | os.PathLike[str] | None = None
    """A folder in which answers of models that are not local are kept across runs; None: nothing is kept."""
    model_options: Mapping[str, Any] | None = None
    constrained: bool = False
    allow_commands: bool = False
    isolation: str = "seccomp"
    consent: Callable[[Spending, bool], bool] | None = None
    """Asked before anything is bought: told what the run will take and whether a limit was set; False ends the call."""
    progress: Progress | None = None
    """Told how far the run is; a run of one field tells its story."""
    title: str | None = None
    """What `runs` calls it; default: the name of the problem, or how many items there are."""


def refuse_unused(bundle: Any, verb: str, used: Sequence[str]) -> None:
    """InputError where a field of a bundle is set that nobody would look at."""
    plain = type(bundle)()
    for entry in fields(bundle):
        if entry.name not in used and getattr(bundle, entry.name) != getattr(plain, entry.name):
            raise InputError(f"{verb}: it has no use for {entry.name}; leave it out")


def bundled(*, rest: str | None = None, **bundles: Any) -> Callable[[Function], Function]:
    """Let a function take the fields of its bundles as keywords of their own; what it is called with stays bundled.

    `bundles` maps parameters to their classes. A keyword that no bundle has is refused by its name, as Python does; where `rest`
    names a bundle, it goes to the `options` of that one, and who reads them refuses it.
    """

    def decorate(function: Function) -> Function:
        own = set(signature(function).parameters)
        home = {
            entry.name: parameter
            for parameter, kind in bundles.items()
            for entry in fields(kind)
            if entry.name not in own
        }

        @wraps(function)
        def verb(*arguments: Any, **given: Any) -> Any:
            loose: dict[str, dict[str, Any]] = {}
            for name in [name for name in given if name not in own]:
                if name in home:
                    loose.setdefault(home[name], {})[name] = given.pop(name)
                elif rest is None:
                    raise _unknown(function.__name__, name, [*own, *home])
                else:
                    loose.setdefault(rest, {}).setdefault("options", {})[name] = given.pop(name)
            for parameter, told in loose.items():
                bundle = given.get(parameter)
                given[parameter] = bundles[parameter](**told) if bundle is None else replace(bundle, **told)
            return function(*arguments, **given)

        return cast(Function, verb)

    return decorate


def _unknown(verb: str, name: str, known: Sequence[str]) -> TypeError:
    from rrf_design.files import suggestion

    return TypeError(f"{verb}() got an unexpected keyword argument {name!r}{suggestion(name, known)}")
