"""The form of policies and audits, the words in them that are no free choice, and what in them is information only.

A policy has no digest of its own: whoever has the file can write into it. So every key is known, every sentence is that of the figures beside it, and what
nobody can redo is named by `verify`: what is taken on trust, because the promise rests on it, and what is told beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any

from rrf_design.errors import Refused
from rrf_design.promises.family import CHECK_EVERYTHING
from rrf_design.promises.measuring import DEEPEST

if TYPE_CHECKING:
    from rrf_design.risk import PolicyChoice

VOIDED_BY = (
    "another model, prompt, check or price (the recipe's digest), another program of a check (its digest), other items (the population's digest), or a second look;"
    " drift, of a model or of what a check asks outside, is watched by audits"
)
PROVEN = "the cheapest policy that is proven to keep the risk"
UNPROVEN = "no policy is proven to keep the risk"

POLICY_INFORMATION = (
    *("measured", "stronger", "leaks", "twins", "order", "aside", "runs", "stopped_because", "truth"),
    *("stratify", "recipe.name", "population.table", "choice.ordered_by"),
)
"""Told beside the promise, and neither proven nor needed for it."""
POLICY_TRUST = (
    *(
        "models",
        "programs",
        "recipe.digest",
        "population.size",
        "population.digest",
        "strata",
        "drawn",
        "choice.streams",
    ),
    *("check_cost", "choice.policies[].cost", "choice.policies[].delivers", "choice.depth"),
)
"""What the promise rests on, beside the truths that the marks stand for: nobody can redo it from the document."""
AUDIT_INFORMATION = ("risk", "table", "columns", "truth", "items")
"""Told beside the bound. Columns are under the digest of the deliveries: they are proven with them, where these are at hand."""
_POLICY = (
    *("format", "version", "policy", "because", "risk", "confidence", "statement", "among", "sentence", "bound"),
    *("cost_per_item", "check_cost", "delivered_share", "wrong_answers", "measured", "policies", "drawn", "ladder"),
    *("seed", "order", "aside", "random_checks", "places", "stratify", "strata", "truth", "twins", "leaks", "stronger"),
    *("voided_by", "models", "programs", "runs", "recipe", "population", "choice"),
)
_AUDIT = (
    *("format", "version", "population", "drawn", "wrong", "bound", "confidence", "risk", "holds", "sentence"),
    *("table", "columns", "truth", "items", "wrong_items", "record"),
)
_OUTCOME = ("policy", "cost", "delivered", "counted", "wrong", "proven", "marks")
_KINDS: tuple[tuple[str, type | UnionType, str], ...] = (
    ("models", Mapping | None, "an object, or null for recorded answers"),
    ("programs", Mapping, "an object"),
    ("runs", list, "a list"),
    ("drawn", list, "a list"),
    ("leaks", list, "a list"),
    ("twins", list, "a list"),
    ("stronger", list, "a list"),
    ("measured", Mapping, "an object"),
    ("stratify", str | None, "a column's name, or null"),
    ("truth", str, "a text"),
    ("order", str, "a text"),
    ("aside", int, "a whole number"),
)
_WRONG = ("answers", "items", "more_than", "nodes", "by_node")


def seed_words(seed: int) -> str:
    """The seed that nobody chose leaves least to trust."""
    return f"seed {seed}{', the default' if seed == 0 else ', which somebody chose'}"


def policy_words(seed: int) -> str:
    """What `verify` leaves to the reader of a policy."""
    return (
        f"the truths of the pilot, that table, recipe and models are those that are named, and that {seed_words(seed)}, size and order of tests were fixed before any truth was seen,"
        f" with no other pilot of it ({', '.join(POLICY_TRUST)}); information, not proven: {', '.join(POLICY_INFORMATION)}"
    )


def audit_words(seed: int, *, same: bool = False) -> str:
    """What `verify` leaves to the reader of an audit. `same`: the delivered table was compared."""
    table = "" if same else ", that the delivered table is the one whose digest is named,"
    return (
        f"the labels{table} and that {seed_words(seed)}, was fixed before anything was looked at, with no other draw from these deliveries tried;"
        f" information, not proven: {', '.join(name for name in AUDIT_INFORMATION if not (same and name == 'columns'))}"
    )


def why_everything(cost: float, check: float) -> str:
    """Why everything is checked though a policy is proven."""
    return f"the cheapest proven policy costs {cost:.4g} an item, a check {check:.4g}"


def check_policy_form(data: Mapping[str, Any]) -> None:
    """Refused for a key that is missing or unknown, at any depth whose entries are claims."""
    _keys(data, _POLICY, "the policy", maybe=("stopped_because",))
    _keys(data["recipe"], ("name", "digest"), "recipe")
    _keys(data["population"], ("table", "size", "digest"), "population")
    _keys(data["wrong_answers"], _WRONG, "wrong_answers")
    for entry in data["policies"]:
        _keys(entry, _OUTCOME, "policies")
    for entry in data["wrong_answers"]["more_than"]:
        _keys(entry, ("k", "items", "bound"), "wrong_answers.more_than")
    for entry in data["wrong_answers"]["nodes"]:
        _keys(entry, ("node", "wrong", "bound"), "wrong_answers.nodes")
    names = [entry["policy"] for entry in data["policies"]]
    if len(set(names)) != len(names):
        raise Refused("two policies have the same name")
    if data["voided_by"] != VOIDED_BY:
        raise Refused("voided_by: is not in the words that every policy of this version has; pilot it anew")
    for key, kinds, words in _KINDS:
        if not isinstance(data[key], kinds) or isinstance(data[key], bool):
            raise Refused(f"{key}: should be {words}, not {data[key]!r:.40}")
    if data["models"] is None and (data["programs"] or data["runs"]):
        raise Refused("programs and runs: belong to a pilot whose models were asked, and none is named")
    for name, files in data["programs"].items():
        if not isinstance(files, Mapping) or any(type(digest) is not str for digest in files.values()):
            raise Refused(f"programs: {name!r:.40} should have a digest for each file")
    if (data["strata"] is None) != (data["stratify"] is None):
        raise Refused("stratify: names a column where items were drawn inside strata, and only there")
    deep = list(range(min(DEEPEST + 1, data["wrong_answers"]["answers"])))
    if [entry["k"] for entry in data["wrong_answers"]["more_than"]] != deep:
        raise Refused(f"wrong_answers.more_than: should have an entry for each k below {len(deep)}")


def check_reason(data: Mapping[str, Any], choice: PolicyChoice) -> None:
    """Why this policy: the sentence that its tests and costs give; and what belongs to a policy that checks everything."""
    everything = data["policy"] == CHECK_EVERYTHING
    if not everything:
        wanted = PROVEN
    elif choice.chosen is None:
        wanted = UNPROVEN
    else:
        cost = next(policy.cost for policy in choice.policies if policy.name == choice.chosen)
        if cost < data["check_cost"]:
            raise Refused(f"everything is checked, though a proven policy costs {cost:g}, less than a check")
        wanted = why_everything(cost, data["check_cost"])
    if data["because"] != wanted:
        raise Refused("because: is not what tests and costs say")
    if everything and (data["ladder"] is not None or data["bound"] != 0.0 or isinstance(data["bound"], bool)):
        raise Refused("a policy that checks everything has no ladder, and a bound of 0")
    checked = any(policy.checked_share > 0 for policy in choice.policies)
    if data["random_checks"] is not checked:
        raise Refused(f"random_checks: says {data['random_checks']!r:.40}, the tests say {checked!r}")


def check_audit_form(data: Mapping[str, Any]) -> None:
    """Refused for a key that is missing or unknown."""
    _keys(data, _AUDIT, "the certificate")
    _keys(data["columns"], ("id", "answer"), "columns")
    if type(data["columns"]["answer"]) is not str or not isinstance(data["columns"]["id"], str | None):
        raise Refused("columns: names that of the answers, and that of the ids or null")
    for key in ("table", "truth"):
        if type(data[key]) is not str:
            raise Refused(f"{key}: should be a text, not {data[key]!r:.40}")


def _keys(entry: Any, known: Collection[str], where: str, *, maybe: Collection[str] = ()) -> None:
    if not isinstance(entry, Mapping):
        raise Refused(f"{where}: should be an object")
    for key in sorted(set(known) ^ set(entry), key=str):
        if key not in maybe:
            fault = "missing" if key in known else "unknown"
            raise Refused(
                f"{where}: {key!r:.40} is {fault}; if another version of rrf-design wrote it, make it anew with this one"
            )
