"""What a run may still use: budget, money, calls and time, enforced where a purchase is reserved.

A limit that is looked at between rounds is no limit: by then the round has been asked. Here
everything under way counts as used until it is settled, repeated calls included, so no limit is
ever exceeded, also one that was lowered on resume.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from rrf_design.acquisition._state import RunState
from rrf_design.acquisition.settings import Settings, Terms
from rrf_design.acquisition.stopping import Because, Stop, hard_limits
from rrf_design.market import exact


class Ledger:
    """Reads the run's state and says what fits."""

    def __init__(self, state: RunState, settings: Settings, clock: Callable[[], float]) -> None:
        self._state, self._clock = state, clock
        self._budget = None if settings.budget is None else exact(settings.budget)
        self._money = None if settings.money is None else exact(settings.money)
        self._calls, self._seconds = hard_limits(settings.rule)

    def limit(self, budget: Fraction | None, money: Fraction | None, calls: int | None) -> None:
        """Other limits from now on: those in the books that several processes share."""
        self._budget, self._money, self._calls = budget, money, calls

    @property
    def left(self) -> Fraction | None:
        """What may still be committed, never less than nothing; None without a budget."""
        return None if self._budget is None else max(Fraction(0), self._budget - self._state.committed)

    @property
    def seconds(self) -> float:
        """Working time so far, pauses between sessions not counted."""
        return self._state.seconds_before + self._clock() - self._state.session_at

    def affordable(self, price: Fraction, ceiling: Fraction) -> bool:
        """Whether budget and money allow this at once, with everything under way counted as
        used.
        """
        return not (self._over_budget(price) or self._over_money(ceiling))

    def shortage(self, price: Fraction, terms: Terms) -> Stop | None:
        """What stands in the way of reserving this now; None if nothing does."""
        if self._over_budget(price):
            return Stop(Because.BUDGET, f"{float(price):g} more would exceed the budget", again=True)
        if self._over_money(exact(terms.ceiling)):
            detail = f"a call may cost {terms.ceiling:.6g}, and only {float(self._money_left):.6g} is left"
            return Stop(Because.MONEY, detail, again=True)
        if terms.calls and self._calls is not None and self._used_calls() + terms.calls > self._calls:
            detail = f"{self._state.calls} calls were made, {self._calls} are allowed"
            return Stop(Because.CALLS, detail, again=True)
        return self.overtime()

    def overtime(self) -> Stop | None:
        if self._seconds is None or self.seconds < self._seconds:
            return None
        return Stop(Because.TIME, f"{self.seconds:.1f} s have passed, {self._seconds:g} s are allowed", again=True)

    def allows_another_call(self) -> bool:
        """Whether one more call for a purchase under way fits; its money is reserved already."""
        return self.overtime() is None and (self._calls is None or self._used_calls() < self._calls)

    @property
    def _money_left(self) -> Fraction:
        return Fraction(0) if self._money is None else max(Fraction(0), self._money - self._state.committed_money)

    def _over_budget(self, price: Fraction) -> bool:
        return bool(price) and self._budget is not None and self._state.committed + price > self._budget

    def _over_money(self, ceiling: Fraction) -> bool:
        return bool(ceiling) and self._money is not None and self._state.committed_money + ceiling > self._money

    def _used_calls(self) -> int:
        return self._state.calls + self._state.calls_reserved + self._state.elsewhere.calls
