"""Threshold tests: which supports can't be proven to have λ_min(G_SS) ≥ θ?

All three kernels (dense scalar, dense blocks, sparse) answer that one question and share its
vocabulary. N is G − θI with a diagonal shrunk by a bound on every rounding error involved (see
`solvers._gram`), so that a support whose elimination runs through with positive pivots is proven
harmless in exact arithmetic; the others are reported.

Centres. If N_SS is not positive semidefinite, scale it to unit diagonal, C, and let x be an
eigenvector of the negative eigenvalue; at the node i where |x_i| is largest, Σ_{j∈S∖i} ‖C_ij‖ > 1.
So every harmful set of s nodes holds a centre: a node whose s − 1 largest ‖C_ij‖ sum to more than
1. Search branches on centres only, each excluding the centres before it, so every harmful set is
met exactly once; and after eliminating a centre the remainder (a Schur complement) is the same
question with one node less. The heaviest centres go first: most harmful sets hold one of them, the
rest is then searched without them, and a lower incumbent turns up early.
"""
