"""The models of one run, by name: started once, closed together.

The first one is asked where nothing is said.

An entry is `{ use = "openai:NAME", temperature = 0.7, base_url = ... }`: what a request can say
(temperature, top_p, seed, max_tokens) goes into every request to it, the rest makes the adapter.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.models.base import Model
from rrf_design.models.registry import get

if TYPE_CHECKING:
    from rrf_design.models.base import Request

REQUEST_OPTIONS = ("max_tokens", "temperature", "top_p", "seed")
"""Options of an entry that belong to its requests; they are sent only where they are set."""

Entry = str | Model | Mapping[str, Any]
FIRST = "model"
"""How the only model of a run is called where nobody gave it a name."""


def line_up(given: Entry | Mapping[str, Entry] | None, own: Mapping[str, Entry]) -> Mapping[str, Entry]:
    """The run's models by name: those of the file (`own`), and over them what the call says.

    A single one without a name stands for the file's only model.
    """
    if given is None:
        return own
    if isinstance(given, Mapping):
        return {**own, **given}
    if len(own) > 1:
        listed = ", ".join(own)
        shown = given if isinstance(given, str) else "..."
        raise InputError(
            f"there are several models ({listed}); say which is meant, as in --model {next(iter(own))}={shown}"
        )
    return {next(iter(own), FIRST): given}


class Roster:
    """A mapping from names to adapters that are ready to be asked."""

    def __init__(self, models: Mapping[str, Model], options: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        if not models:
            raise InputError("a run needs at least one model")
        self._models = dict(models)
        self._options = {name: dict((options or {}).get(name, {})) for name in self._models}
        self._specs: dict[str, str | Model] = {}
        self.first = next(iter(self._models))

    @classmethod
    def of(cls, given: Model | Roster) -> Roster:
        return given if isinstance(given, Roster) else cls({given.name: given})

    @classmethod
    def start(cls, entries: Mapping[str, Entry], stack: contextlib.ExitStack) -> Self:
        """Start every model of these entries; what is started here is closed with the stack."""
        models: dict[str, Model] = {}
        started: dict[str, Model] = {}
        specs: dict[str, str | Model] = {}
        options: dict[str, dict[str, Any]] = {}
        for name, entry in entries.items():
            table = dict(entry) if isinstance(entry, Mapping) else {"use": entry}
            if not isinstance(table.get("use"), str | Model):
                raise InputError(f'[models] {name}: it needs use = "ADAPTER:NAME"{suggestion("use", table)}')
            specs[name] = spec = table.pop("use")
            options[name] = {key: table.pop(key) for key in REQUEST_OPTIONS if key in table}
            same = json.dumps([spec, table], sort_keys=True, default=id)
            if same in started:  # one backend under two names is started once
                models[name] = started[same]
                continue
            try:
                models[name] = started[same] = get(spec, **table)
            except InputError as error:
                raise type(error)(f"[models] {name}: {error}" if len(entries) > 1 else str(error)) from None
            if models[name] is not spec:  # made here, so closed here
                stack.enter_context(models[name])
        found = cls(models, options)
        found._specs = specs
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)

    def items(self) -> Iterator[tuple[str, Model]]:
        return iter(self._models.items())

    def name(self, wanted: str | None) -> str:
        """The entry that a node or a judge means; a name that is none is an error."""
        if wanted is None:
            return self.first
        if wanted not in self._models:
            known = ", ".join(self._models)
            raise InputError(
                f"model {wanted!r} is not among the run's models ({known}){suggestion(wanted, self._models)}"
            )
        return wanted

    def called(self, wanted: str) -> str:
        """The entry that a judge means: its name, or the model itself where an entry uses it."""
        own = (name for name, model in self._models.items() if wanted in (model.name, self._specs.get(name)))
        return wanted if wanted in self._models else self.name(next(own, wanted))

    def __contains__(self, name: object) -> bool:
        return name in self._models

    def __getitem__(self, name: str) -> Model:
        return self._models[name]

    def options(self, name: str) -> Mapping[str, Any]:
        """What every request to this model says."""
        return self._options[name]

    def request(self, name: str, prompt: str, **own: Any) -> Request:
        """A request to this model: its options, and over them what the question itself says."""
        from rrf_design.models.base import Request

        unset: dict[str, Any] = {"temperature": None, "top_p": None, "seed": None}
        return Request(prompt, **{**unset, **self._options[name], **own})
