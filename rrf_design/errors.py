"""One root for every error a caller can act on; each subclass is named for the caller's next
step.
"""

from __future__ import annotations


class RRFError(Exception):
    """Root of all errors raised on purpose.

    The command line prints it as one line, never a traceback.
    """

    exit_code = 2


class InputError(RRFError, ValueError):
    """Fix the input: the message says what is wrong, in which entry of which file, and what to
    do.
    """


class BudgetError(RRFError):
    """Raise the budget: what is asked for costs more than may be spent."""

    def __init__(self, message: str, *, needed: float, available: float) -> None:
        super().__init__(message)
        self.needed = needed
        self.available = available


class RetryLater(RRFError):
    """Try again later: something outside (a model server, a database, a disk, a cluster's
    scheduler) did not answer this time. Nothing is lost; `--resume` goes on.
    """

    exit_code = 75


class MissingDependency(RRFError):
    """Install something: an optional part was asked for that is not on this machine."""


class Refused(RRFError):
    """Give up on this call: it would break a promise (another problem's plan, a second process on a
    run).
    """
