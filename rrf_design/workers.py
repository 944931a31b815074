"""Work shared out over processes or machines by joblib, in order; a piece of work that keeps killing its worker is an error, not a wait.

Joblib's Dask backend never hears of a future that was lost with its worker, so on a cluster every piece has a time limit. Pieces may
run twice there: nothing that costs money may be one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from multiprocessing import TimeoutError as LateError
from typing import Any

from rrf_design.errors import RetryLater

PATIENCE = 900.0
"""Seconds that one piece of work may take on a cluster."""


def is_serial(n_jobs: int | None) -> bool:
    """Whether work stays in this process: nobody asked for more, here or by `joblib.parallel_config`."""
    from joblib import effective_n_jobs

    return effective_n_jobs(n_jobs) == 1 and not _on_cluster()


def shared_out(tasks: Iterable[Any], *, n_jobs: int | None, patience: float = PATIENCE) -> Iterator[Any]:
    """Results of joblib tasks in their order; RetryLater when one does not come back from a cluster."""
    from joblib import Parallel

    limit = patience if _on_cluster() else None
    results = Parallel(n_jobs=n_jobs, return_as="generator", timeout=limit)(tasks)
    try:
        yield from results
    except LateError:
        raise RetryLater(
            f"a piece of work did not come back from the cluster within {patience:g} s; it may have killed its workers. Run it"
            " without the cluster, or look at the workers' logs"
        ) from None


def _on_cluster() -> bool:
    from joblib.parallel import get_active_backend

    return "Dask" in type(get_active_backend()[0]).__name__
