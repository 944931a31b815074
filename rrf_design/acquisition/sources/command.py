"""source = { command = ["program", "argument"] }: a program of the user's, only when commands are
allowed.
"""

from __future__ import annotations

import json
import math
import subprocess
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.sources.base import Asked, Fetched, Place, Source
from rrf_design.errors import InputError

if TYPE_CHECKING:
    pass


class Command(Source):
    """A program of the user's: the anchor and the answers as JSON on its input, numbers as JSON on
    its output.
    """

    kind = "command"
    local = False

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        if not place.tools.allow_commands:
            raise InputError("its source is a command; commands run only with --allow-commands")
        command, seconds = options.pop("command"), options.pop("seconds", 60.0)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise InputError(f"seconds is {seconds!r:.60}; give a number")
        if not isinstance(command, list | tuple) or not command or not all(isinstance(part, str) for part in command):
            raise InputError(f"command is {command!r:.60}; give a list of a program and its arguments")
        if not 0.0 < seconds < math.inf:
            raise InputError(f"seconds is {seconds:g}; give the seconds that the command may take, more than zero")
        self.command, self.seconds = list(command), float(seconds)

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
        except (ValueError, RecursionError):
            return Fetched("the command printed no number", evidence=evidence)
        numbers = given if isinstance(given, list) else [given]
        if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
            return Fetched("the command printed no number", evidence=evidence)
        return self.fitting(numbers, "commanded", evidence=evidence)
