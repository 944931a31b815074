"""The verifier: re-proves every number of a certificate from the operator alone, and trusts nobody.

Here bytes become a document, the checks (`steps`) are made of it, and whatever happens becomes one
answer.

`verify` is total: whatever bytes it is given, it ends with valid, with refused and the reason, or
with "can't be read", in bounded time and memory. Sizes are compared with limits before anything of
that size is made; a search ends at the time limit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rrf_design.checker._steps import Check, Documented, Progress, Steps
from rrf_design.checker.document import parse
from rrf_design.checker.wording import ON_TRUST
from rrf_design.errors import InputError, Refused

TIME_LIMIT = 600.0  # seconds for all searches together, unless another limit is given
MOST_BYTES = 1 << 27  # of a certificate: its operator stands in a file of its own when it is large
LONGEST_REASON = 500


PROMISES = ("rrf-policy", "rrf-audit", "rrf-delivered")
"""Documents of promises about a whole data set."""


@runtime_checkable
class _Promised(Protocol):
    """What holds a document that can be proved again."""

    @property
    def document(self) -> Any: ...


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """Whether the certificate holds. `gamma_lower` is what was re-proved; None when it was
    refused.
    """

    valid: bool
    gamma_lower: float | None
    reason: str
    robust_lower: float | None = None
    checks: tuple[Check, ...] = ()
    taken_on_trust: str = ""
    """What a valid certificate leaves to its reader: its premises, and entries that are information
    only.
    """

    def __repr__(self) -> str:
        line = f"Verification({'valid' if self.valid else 'refused'}: {self.reason}"
        return f"{line[:199]})"

    def _repr_html_(self) -> str:
        return f"<p>{'Valid' if self.valid else 'Refused'}: {escape(self.reason[:LONGEST_REASON])}</p>"

    def to_json(self) -> dict[str, Any]:
        return {
            "valid": self.valid,
            "gamma_lower": self.gamma_lower,
            "reason": self.reason,
            "robust_lower": self.robust_lower,
            "taken_on_trust": self.taken_on_trust,
            "checks": [{"name": c.name, "detail": c.detail, "seconds": c.seconds} for c in self.checks],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Verification:
        """What `to_json` told, again; it proves nothing anew."""
        return cls(**{**data, "checks": tuple(Check(**one) for one in data["checks"])})


def verify(
    certificate: str | os.PathLike[str] | Documented | _Promised,
    *,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Re-prove a certificate from its operator alone, by a search of the checker's own.

    γ_k ≥ `gamma_lower` is proven again for every support of at most 2k nodes, and everything else
    that the certificate says is computed again from the record. Of a policy, an audit or a delivery
    every draw, count and test is made again; what is proven is its sentence, the `reason`. A bad
    document never raises: it is refused.

    Parameters
    ----------
    certificate
        Its file, or the object; InputError when there is no such file.
    time_limit
        Seconds for the searches (default: ten minutes); what is not proved by then is refused.
    progress
        Called with the share of a search that is done, and what is re-proved of the margin so far:
        nothing below, the witness above.

    Returns
    -------
    A `Verification`: `valid`, what was re-proved of γ (`gamma_lower`), the `reason`, and every
    check with what it took.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "forged.json"
    >>> _ = path.write_text('{"format": "rrf-certificate", "version": 3}')
    >>> rrf.verify(path).valid
    False
    """
    checks: list[Check] = []
    limit = TIME_LIMIT if time_limit is None else time_limit
    try:
        with np.errstate(all="ignore"):  # what overflows fails a test; it is no news
            if isinstance(certificate, _Promised):
                attached = certificate if isinstance(certificate, Documented) else None
                document, folder = certificate.document, None
            else:
                path = _path(certificate)
                document, attached, folder = parse(_read(path)), None, path.parent
            if document is not None and document.get("format") in PROMISES:
                return _promise(document)
            Steps(document, attached, folder, checks, limit, progress).run()
            lower, robust = float(document["margin"]["lower"]), float(document["uncertainty"]["robust_lower"])
    except Refused as refusal:
        return Verification(False, None, _printable(str(refusal)), None, tuple(checks))
    except InputError:
        raise
    except Exception as fault:  # the last net: a document that leads a check astray is no certificate
        reason = f"can't be read: a check failed with {type(fault).__name__}"
        return Verification(False, None, reason, None, tuple(checks))
    return Verification(True, lower, "every claim was re-proved", robust, tuple(checks), ON_TRUST)


def _promise(document: Any) -> Verification:
    """What is proven of a whole data set: its sentence; no margin is."""
    from rrf_design.checker import delivery, looks, promise_words, promises

    if document["format"] == delivery.DELIVERED:
        sentence = delivery.prove_delivery(document).sentence
        words = promise_words.delivery_words(document["seed"], same=False)
    elif document["format"] == promises.POLICY:
        policy = promises.prove_policy(document)
        sentence, ledger = policy.sentence, looks.check_looks(policy.document)
        count = int((document.get("looks") or {"count": 1})["count"])
        words = f"{promise_words.policy_words(document['seed'], looks=count)}; {ledger}"
    else:
        sentence = str(promises.prove_audit(document).document["sentence"])
        words = promise_words.audit_words(document["record"]["seed"])
    return Verification(True, None, sentence, None, (), words)


def _path(certificate: Any) -> Path:
    try:
        path = Path(certificate)
        os.fspath(path).encode()
        if "\0" in str(path):
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(f"{certificate!r:.80}: is no path of a certificate") from None
    return path


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror or error})") from None
    if len(content) > MOST_BYTES:
        raise Refused(f"can't be read: the file is larger than {MOST_BYTES} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("not a JSON document (not UTF-8 text)") from None


def _printable(reason: str) -> str:
    """Names come from the document: cut to a length, and only what every terminal takes."""
    text = reason.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "…"
