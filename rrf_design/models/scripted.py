"""Answers from a file or a function: the model for tests, demonstrations and rehearsals, failures
included.

A script is stateless in the prompt: which rule answers depends on the request alone, so a resumed
run hears the same. A rule may begin with failures; they are consumed attempt by attempt within one
``ask``, which is what retries are about.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from rrf_design.models._faults import classify
from rrf_design.models.base import RETRYABLE, Again, Attempt, Model, Outcome, Reply, Request, Retry, Usage

Script = Callable[[Request], str | Attempt]
_RULE_KEYS = frozenset({"prompt", "pattern", "text", "outcome", "failures", "detail"})


class ScriptedModel(Model):
    """``scripted:FILE`` with rules, or a function from a request to a text (or a whole
    :class:`Attempt`).

    The file is JSON: ``{"rules": [{"prompt": exact} or {"pattern": regex}, with "text" or
    "outcome", and optionally "failures": ["rate_limited", ...]}], "default": text}``. Without a
    default, a prompt that no rule knows fails.
    """

    local = True
    supports_grammar = True  # a script decides its own text; the grammar is part of the request it sees

    def __init__(
        self,
        script: str | Path | Mapping[str, Any] | Script,
        *,
        name: str = "scripted",
        slots: int = 1,
        retry: Retry | None = None,
    ) -> None:
        self.name = name
        self.slots = slots
        # Nothing real is on the other side, so there is nothing to wait for.
        self.retry = retry or Retry(sleep=lambda _: None)
        self._local = threading.local()
        self._rules: list[dict[str, Any]] = []
        self._default: str | None = None
        if callable(script):
            self._function: Script | None = script
            self.kept = False
            source = getattr(script, "__qualname__", type(script).__qualname__)
        else:
            self._function = None
            source = self._read(script)
        self._identity = {"adapter": "scripted", "model": name, "script": source}

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._identity

    def ask(self, request: Request, *, again: Again | None = None, tried: int = 0) -> Reply:
        self._local.attempt = 0
        return super().ask(request, again=again, tried=tried)

    def attempt(self, request: Request) -> Attempt:
        number = getattr(self._local, "attempt", 0)
        self._local.attempt = number + 1
        answer = self._function(request) if self._function else self._scripted(request, number)
        if isinstance(answer, Attempt):
            return answer
        # A word is a token here: the double is cut at the limit like every other model.
        words = [word.end() for word in re.finditer(r"\S+", answer)]
        cut = len(words) > request.max_tokens
        text = answer[: words[request.max_tokens - 1]] if cut else answer
        usage = Usage(len(request.prompt.split()), min(len(words), request.max_tokens), 1)
        return classify(text, "length" if cut else "stop", usage, request.document(), {"text": text})

    def _scripted(self, request: Request, number: int) -> str | Attempt:
        for rule in self._rules:
            exact = rule.get("prompt") == request.prompt
            if exact or ("pattern" in rule and rule["pattern"].search(request.prompt)):
                failures = rule["failures"]
                if number < len(failures):
                    return _failed(failures[number], request, rule["detail"])
                text: str = rule["text"]
                return _failed(rule["outcome"], request, rule["detail"], text) if rule["outcome"] else text
        if self._default is None:
            return _failed(Outcome.FAILED, request, "no rule of the script knows this prompt")
        return self._default

    def _read(self, script: str | Path | Mapping[str, Any]) -> str:
        """Check the script and keep its rules; returns the digest that identifies it."""
        if isinstance(script, Mapping):
            document, where = dict(script), "script"
        else:
            where = str(script)
            try:
                document = json.loads(Path(script).read_text(encoding="utf-8"))
            except OSError as error:
                raise InputError(f"{where}: can't read the script ({error.strerror})") from None
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}: the script is not JSON ({error})") from None
        if not isinstance(document, dict) or not set(document) <= {"rules", "default"}:
            raise InputError(f"{where}: a script has the keys rules and default")
        self._default = document.get("default")
        self._rules = [_rule(rule, f"{where}: rule {i}") for i, rule in enumerate(document.get("rules", []), 1)]
        digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
        return f"sha256:{digest}"


def _rule(rule: object, where: str) -> dict[str, Any]:
    if not isinstance(rule, dict):
        raise InputError(f"{where}: a rule is an object")
    if unknown := set(rule) - _RULE_KEYS:
        raise InputError(f"{where}: unknown key {sorted(unknown)[0]!r}; known: {', '.join(sorted(_RULE_KEYS))}")
    if ("prompt" in rule) == ("pattern" in rule):
        raise InputError(f"{where}: it needs either prompt or pattern")
    if "text" not in rule and "outcome" not in rule:
        raise InputError(f"{where}: it needs a text or an outcome")
    checked = {"text": "", "detail": "scripted", **rule}
    try:
        if "pattern" in rule:
            checked["pattern"] = re.compile(rule["pattern"])
        checked["failures"] = [Outcome(failure) for failure in rule.get("failures", [])]
        checked["outcome"] = Outcome(rule["outcome"]) if "outcome" in rule else None
    except (re.error, ValueError) as error:
        raise InputError(f"{where}: {error}") from None
    if fatal := [failure for failure in checked["failures"] if failure not in RETRYABLE]:
        raise InputError(f"{where}: {fatal[0].value!r} is never retried; make it the rule's outcome")
    return checked


def _failed(outcome: Outcome, request: Request, detail: str, text: str = "") -> Attempt:
    unpaid = outcome is Outcome.UNREACHABLE
    usage = Usage() if unpaid else Usage(len(request.prompt.split()), len(text.split()), 1)
    return Attempt(outcome, text, usage, request.document(), {"outcome": outcome.value}, detail)
