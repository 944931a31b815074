from rrf_design.planning.proof._weak_supports import DENSE as DENSE

"""What no design can do: rows that every good design obeys, programs made of them, and the solvers
that refute them.

`cuts` and `hulls` make rows, `program` puts them together with prices and rules, `master` and
`pulp_master` solve it, `bounds` needs no solver. Whatever is called proven here holds for the real
numbers, not for a solver's floating-point ones.
"""
