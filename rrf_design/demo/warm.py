"""Compile everything that the demo and a first problem need: `python -m rrf_design.demo.warm`, at
set-up.

Solvers, decoders and the verifier keep their kernels in a cache, each compiled on first use.
Certifying, verifying and repairing a small field meets those that `solvers.warm` can't know of.
"""

from __future__ import annotations


def main(n_jobs: int = 2) -> None:
    """The solvers' kernels, then those of certificates, of their verifier and of repair."""
    from solvers.warm import main as warm_solvers

    warm_solvers(n_jobs)
    _use_everything()


def _use_everything() -> None:
    """Certify, verify and repair six wordings of one question, one answer of them wrong: each takes
    its usual path.

    The six all touch each other; a chain is verified along its edges, by another kernel, and a star
    around its hub, by a third.
    """
    from rrf_design.certificates import certify, verify
    from rrf_design.checker.kernel import all_compiled as checker_compiled
    from rrf_design.problem import Problem
    from rrf_design.repairing import repair
    from solvers.kernels.kernel import all_compiled as solvers_compiled

    names = "abcdef"
    pairs = [(x, y) for i, x in enumerate(names) for y in names[:i]]
    problem = Problem(
        k=2,
        epsilon=0.1,
        nodes=[{"id": name} for name in names],
        relations=[{"id": x + y, "tail": x, "head": y} for x, y in pairs],
        anchors=[{"id": "check", "node": "a", "value": 42.0}],
    )
    chain = Problem(
        nodes=[{"id": str(i)} for i in range(30)],
        relations=[{"id": f"r{i}", "tail": str(i), "head": str(i + 1)} for i in range(29)],
        anchors=[{"id": f"a{i}", "node": str(i)} for i in range(30)],
    )
    leaves = [f"n{i}" for i in range(200)]  # so many that their sets can't be walked
    star = Problem(
        nodes=[{"id": name} for name in ("hub", *leaves)],
        relations=[{"id": f"to-{name}", "tail": "hub", "head": name} for name in leaves],
        anchors=[{"id": f"at-{name}", "node": name, "value": 0.0} for name in leaves],
    )
    with solvers_compiled(), checker_compiled():
        verify(certify(problem))
        for k in (1, 4):  # large supports have a search of their own
            verify(certify(chain, k=k, budgets=[]))
        verify(certify(star, k=2, budgets=[]))
        repair(problem, {**dict.fromkeys(names, 42.0), "b": 17.0})


if __name__ == "__main__":
    main()
