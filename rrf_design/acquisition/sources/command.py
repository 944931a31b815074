"""source = { command = ["program", "argument"] }: a program of the user's, only when commands are allowed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from rrf_design.acquisition.sources.base import Asked, Fetched, Place, Source
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor


class Command(Source):
    """A program of the user's: the anchor and the answers as JSON on its input, numbers as JSON on its output."""

    kind = "command"
    local = False

    def __init__(self, anchor: Anchor, rows: int, *, command: Sequence[str], seconds: float) -> None:
        super().__init__(anchor, rows)
        if not command or not all(isinstance(part, str) for part in command):
            raise InputError("command must be a list of a program and its arguments")
        self.command, self.seconds = list(command), seconds

    @classmethod
    def read(cls, place: Place, options: dict[str, Any]) -> Self:
        if not place.tools.allow_commands:
            raise InputError("its source is a command; commands run only with --allow-commands")
        seconds = float(options.pop("seconds", 60.0))
        return cls(place.anchor, place.rows, command=options.pop("command"), seconds=seconds)

    def fetch(self, asked: Asked) -> Fetched:
        nodes = self.anchor.nodes
        told = {
            "anchor": self.anchor.id,
            "nodes": list(nodes),
            "rows": self.rows,
            "texts": {name: asked.texts[name] for name in nodes if name in asked.texts},
            "values": {name: list(asked.values[name]) for name in nodes if name in asked.values},
        }
        try:
            done = subprocess.run(
                self.command, input=json.dumps(told), capture_output=True, text=True, timeout=self.seconds, check=False
            )
        except FileNotFoundError:
            return Fetched("the command was not found", evidence={"command": self.command[0]})
        except (subprocess.TimeoutExpired, OSError, UnicodeDecodeError) as error:
            return Fetched(f"the command failed: {type(error).__name__}", evidence={"command": self.command[0]})
        evidence = {
            "command": self.command[0],
            "code": done.returncode,
            "output": done.stdout[:2000],
            "errors": done.stderr[:2000],
        }
        if done.returncode != 0:
            return Fetched(f"the command ended with code {done.returncode}", evidence=evidence)
        try:
            given = json.loads(done.stdout)
            numbers = [float(x) for x in given] if isinstance(given, list) else [float(given)]
        except (ValueError, TypeError):
            return Fetched("the command printed no number", evidence=evidence)
        return self.fitting(numbers, "commanded", evidence=evidence)
