"""How many programs a second the sandbox runs here; for the benchmark scenario, never for a
test.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from rrf_design.responses.sandbox.records import Isolation, Level, Program, ProgramStatus
from rrf_design.responses.sandbox.runner import Sandbox

_SOURCE = """
def solve(n):
    total = 0
    while n:
        total += n % 10
        n //= 10
    return total + {index}
"""


@dataclass(frozen=True, slots=True)
class Throughput:
    """``right`` of ``programs`` gave the expected integers; a rate counts only if all did."""

    programs: int
    right: int
    seconds: float
    workers: int
    isolation: Isolation

    @property
    def rate(self) -> float:
        return self.programs / self.seconds


def throughput(
    programs: int = 500, *, workers: int | None = None, tests: int = 8, require: Level | str = Level.SECCOMP
) -> Throughput:
    """Run many different small programs with ``tests`` calls each; starting the workers is not
    counted.
    """
    inputs = [[12345 * i] for i in range(tests)]
    batch = [
        Program.build(
            _SOURCE.format(index=index),
            inputs,
            expected=[sum(map(int, str(argument))) + index for (argument,) in inputs],
        )
        for index in range(programs)
    ]
    with Sandbox(workers=workers, require=require) as sandbox:
        sandbox.run_many(batch[: 4 * sandbox.workers])
        start = time.perf_counter()
        results = sandbox.run_many(batch)
        seconds = time.perf_counter() - start
        right = sum(result.status is ProgramStatus.RIGHT for result in results)
        return Throughput(programs, right, seconds, sandbox.workers, sandbox.isolation)
