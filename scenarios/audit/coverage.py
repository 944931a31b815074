"""Where the project computes what the paper contains: every numbered statement, table, figure, algorithm, experiment and worked example, in the paper's order.

An entry names a page and on it a condition, a table, or an example of `worked-examples`; a test holds every name to the code. What only argues, cites or describes is not listed.
"""

from __future__ import annotations

from dataclasses import dataclass

from scenarios.base import Table


@dataclass(frozen=True, slots=True)
class PaperItem:
    """`where` are places on pages: `PAGE condition KEY`, `PAGE table NAME`, or `worked-examples example NAME`."""

    section: str
    item: str
    where: tuple[str, ...]


# Section or appendix | what stands there | where it is computed
_LISTED = """
2 | Definition: relational observability margin | certificate-ladder condition exact; benchmark-margin condition exact
3 | Theorem: consistency blindness | consistency-truth condition blind; worked-examples example blind risk; worked-examples example three paraphrases
3 | Theorem: exact uniform identifiability | spectral-difficulty condition identifiable; worked-examples example identifiability
3 | Theorem: deterministic stability | robustness-sweeps condition noise; spectral-difficulty condition stability; worked-examples example noisy stability
3 | Theorem: matching minimax obstruction | worked-examples example minimax
3 | Four predicted consequences; 'error must grow as the margin decreases' | paper-audit condition order-of-errors; spectral-difficulty condition association
4 | Proposition: algorithmic condition (null-space property) | worked-examples example stable convex recovery; worked-examples example convex failure
4 | Algorithm: sparse field repair | benchmark-repair condition right; robustness-sweeps condition decoders
5 | Table: theory-predicted phenomena | consistency-truth condition blind; anchor-transition condition size; duplicate-saturation condition size; spectral-difficulty condition association
5 | Figure: consistency blindness and anchor transition | consistency-truth table summary; anchor-transition table summary
5 | Table: natural real-model logs | real-model table natural; paper-audit condition families; paper-audit condition one-question
5 | Figure: one quantity across model and task strata | real-model table replay; cross-model table replay; paper-audit condition margin-size
5 | Table: within-stratum rank prediction | published-replay condition spearman; paper-audit condition correlations; paper-audit condition model-free
5 | Pooled association, interval, AUC gain, coefficient, permutation | published-replay table statistics; paper-audit condition pooled; paper-audit condition two-models; cross-model condition pooled
6 | Three regimes, and acquisition by witness | acquisition-policies condition witness; paper-audit condition witnesses
B | A complete two-node example; component sizes | worked-examples example two node formula; worked-examples example large component
C | Relation Laplacian | worked-examples example laplacian formula
C | Gauge directions, holonomy | worked-examples example holonomy
C | Proposition: group-spark characterisation | worked-examples example identifiability
C | Propositions: budget monotonicity, row augmentation | duplicate-saturation condition chords; worked-examples example monotone
C | Duplicate normalisation | duplicate-saturation condition copies; negative-controls condition duplicates; worked-examples example literal duplicates
C | Scaling and coordinate dependence | paper-audit condition units; worked-examples example scaling
C | Algorithm: exact margin and witness; numerical zero | robustness-sweeps condition tolerances; robustness-sweeps condition witnesses; rigour condition lower; rigour condition upper
C | Certificates for larger fields | certificate-ladder condition sound; certificate-ladder condition pairs
C | Perturbing the operator | robustness-sweeps condition perturbation
C | Anchor placement as restricted observability | planner-comparison condition proved
C | A four-node worked spectrum | paper-audit condition pair; worked-examples example four node spectrum
D | Lemma and proposition: indistinguishable fields, two-field error | worked-examples example blind risk
D | Lemmas: difference support, partition of a sparse vector | worked-examples example disconnected pairs; worked-examples example minimax
D | Corollary: correctness of the ideal decoder | rigour condition rivals; worked-examples example one outlier
D | Corollary: separate relation and anchor tolerances | worked-examples example separate tolerances
D | Approximate sparsity and model mismatch | noise-laws condition tail
D | Misspecified corruption budget | published-replay condition budget; worked-examples example budget dependence
E | Propositions: modulus upper and lower bound; two-point lemma | worked-examples example minimax
E | Zero margin and unbounded ambiguity | negative-controls condition uncovered; worked-examples example disconnected pairs
E | Gaussian-noise corollary | noise-laws condition lower
F | The ideal residual decoder | benchmark-repair condition right
F | Definition: group robust null-space property; example | worked-examples example stable convex recovery; worked-examples example convex failure
F | Theorem: stable convex recovery | worked-examples example stable convex recovery
F | Proximal-gradient solver | worked-examples example proximal rate
F | Regularisation: a logarithmic grid | robustness-sweeps table penalty-grid
F | Discrete candidates and code repair | real-model table repairs; real-model table programs
F | Optimisation diagnostics; unconverged runs apart | robustness-sweeps table decoders; anchor-transition table summary
G | Theorem: local restricted injectivity; corollary: local stability | declared-relations condition nonlinear; worked-examples example curvature; worked-examples example candidate centred
G | Candidate-centred certificate | worked-examples example candidate centred
G | Multiplicative and Boolean relations; sparse Gauss–Newton | worked-examples example nonlinear relations
G | Failure outside the local region | worked-examples example nonlinear ambiguity; worked-examples example curvature
H | Design problem; no submodularity: complementary anchors | planner-comparison condition proved; planner-comparison condition counterexamples
H | Algorithm: witness-guided acquisition | planner-comparison table summary; acquisition-policies condition witness
H | Proposition: small-component anchor necessity | anchor-transition condition transition; worked-examples example component criterion
H | Reliability-aware design; robust formulation | noise-laws condition whitening; relation-error condition declared
H | Stopping rules | acquisition-policies condition promise
H | A counterexample to degree-based anchoring | planner-comparison condition counterexamples
J | S1: consistency–truth separation | consistency-truth condition wrong; consistency-truth condition visible
J | S2: anchor phase transition | anchor-transition condition transition; anchor-transition condition exact-repair
J | S3: duplicate saturation | duplicate-saturation condition copies; duplicate-saturation condition gain
J | S4: spectral difficulty prediction | spectral-difficulty condition association; spectral-difficulty condition logistic
J | Noise and operator sweeps | robustness-sweeps condition noise; robustness-sweeps condition perturbed-repair
J | Convex versus exact decoder | robustness-sweeps table outcomes
J | Seeds and replication: master seeds 0 to 4 | spectral-difficulty condition masters
K | Models and data sets | real-model condition logs; real-model condition checkpoints; paper-audit condition printed-items
K | Table: ten designs and their margins | published-replay condition margins; paper-audit condition anchors
K | Baselines and repair procedures | real-model table natural; real-model table choices-by-item
K | Primary outcomes, opportunity cases | cross-model table opportunity-tests; cross-model table recall-tests
K | Statistical analysis; six validation conditions | real-model condition association; real-model condition coefficient; real-model condition permutation
L | Table: natural response logs | real-model table natural; paper-audit condition families
L | Table: real-error replay by task, model and design | published-replay condition cells; real-model table replay; paper-audit condition fields-and-items
L | Table: predictive statistics | published-replay table statistics; paper-audit condition two-models; paper-audit condition coefficient; paper-audit condition separation
L | Tables: mathematics and code by family | paper-audit condition families; real-model table families
L | Consistency–truth audit on real logs | real-model table consistency; real-model table shared-examples
L | Hidden-only code errors | real-model table programs
L | Corruption-budget robustness | real-model table repairs; published-replay condition budget
L | Parser sensitivity | real-model table parser-outcomes
L | Relation-weight sensitivity | real-model table weight-outcomes
L | Exact-margin tolerance | real-model table tolerances
L | Query budgets | real-model table budgets
L | Failure-case taxonomy | real-model table failures; real-model table repairs-by-item
L | Tables: catalogues | real-model table catalogue; paper-audit condition printed-items
M | Three paraphrases and a shared wrong answer | worked-examples example three paraphrases
M | One outlier among four transformed answers | worked-examples example one outlier
M | Scaling relation; affine shift | paper-audit condition units; worked-examples example scaling; worked-examples example affine shift
M | Two disconnected pairs; a large component | worked-examples example disconnected pairs; worked-examples example large component
M | A partial anchor; literal duplicates | worked-examples example partial anchor; worked-examples example literal duplicates
M | Positive margin but convex failure | worked-examples example convex failure
M | Noisy stability; near-null direction | worked-examples example noisy stability; worked-examples example near null
M | Code signature collision; nonlinear ambiguity | worked-examples example signature collision; worked-examples example nonlinear ambiguity
M | Model accuracy and recovery difficulty | worked-examples example models a and b
M | Anchor bias; budget dependence | worked-examples example anchor bias; worked-examples example budget dependence
N | Sparse node corruption: report wrong-node counts | premise-on-real-answers condition premise; real-model table repairs
N | Future directions: do natural errors concentrate on the worst directions? | error-directions condition gauge; error-directions condition witness
O | Proposition: Gaussian high-probability recovery | noise-laws condition gaussian; noise-laws condition bound
O | Sub-Gaussian and heavy-tailed noise | noise-laws condition heavy; noise-laws condition median
O | Heteroscedastic and correlated measurements | noise-laws condition whitening; noise-laws condition shrinkage; noise-laws condition shared
O | Proposition: Gaussian local minimax obstruction | noise-laws condition lower
O | Proposition: oracle approximation inequality | noise-laws condition tail
O | Operator error and calibration uncertainty | paper-audit condition operator-paper; paper-audit condition operator-ours; relation-error condition ignored
P | Within-stratum rank association, cluster bootstrap | cross-model condition shuffles; cross-model condition signs
P | Within-item permutation test | published-replay condition permutation; cross-model condition pooled
P | Grouped cross-validation; hierarchical and hurdle models | cross-model condition prediction; cross-model table tests
P | Four negative controls | negative-controls condition consistency; negative-controls condition uncovered; negative-controls condition duplicates; negative-controls condition shuffled
Q | Anchored Laplacians; proposition: sparse anchor coverage | worked-examples example laplacian formula; worked-examples example component criterion
Q | A two-node field in closed form, and its limits | worked-examples example two node formula; worked-examples example weak and strong anchors
Q | Duplicates under a fixed budget; correlated copies | duplicate-saturation condition copies; paper-audit condition correlated-copies
Q | A path graph with one anchor | worked-examples example path bound
Q | Adding measurements | worked-examples example monotone
Q | Typed transports and gauge transformations | worked-examples example orthogonal gauge; worked-examples example invertible transports; worked-examples example holonomy
Q | Audit recipe for a new design | certificate-ladder condition verified; worked-examples example minimax
"""


def _parsed(line: str) -> PaperItem:
    section, item, where = line.split(" | ")
    return PaperItem(section, item, tuple(where.split("; ")))


ITEMS: tuple[PaperItem, ...] = tuple(_parsed(line) for line in _LISTED.strip().splitlines())


def table() -> Table:
    return Table.of(
        "coverage",
        [{"section": i.section, "in_the_paper": i.item, "computed": "; ".join(i.where)} for i in ITEMS],
        caption="Statements, tables, figures, algorithms, experiments and examples of the paper in its order (sections by number, appendices by letter), and the page with its condition, table or example that computes each.",
        shown=None,
    )
