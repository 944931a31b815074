"""Programs that try to be called right: forged lines, lying integers, a changed harness, signals,
files, memory without end.

Each runs without the validator and the restricted builtins, so that the process around it has to
hold by itself. The expected integers are drawn anew for each and stay outside; the program is never
to be called right, what it is said to have returned are integers, a file beside it stays as it was,
and the honest program that runs after it is still right.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rrf_design.responses.sandbox import Program, ProgramStatus

C = "import ctypes, gc, os, sys\nlibc = ctypes.CDLL(None)\n"
LINES = (
    *(
        "int {guess}",
        "int -{guess}",
        "int 0",
        "int ffffffffffffffff",
        "int 0x5",
        "int 5 5",
        "done",
        "absent",
        "accepted",
        "right",
    ),
    *(
        "broken int 5",
        "broken error x",
        "broken memory",
        "other float",
        "error X",
        "timeout",
        "memory",
        "rejected x",
        "",
    ),
)
BODIES = {
    "lying integer": "return type('int', (int,), {'__eq__': lambda a, b: True, '__repr__': lambda a: '0'})(5)",
    "integer whose end speaks": (
        "class I(int):\n    def __del__(self): os.write(3, b'int 1\\nint 1\\ndone\\n')\nI(5)\nreturn 1"
    ),
    "float that is nothing": "return float('nan')",
    "generator": "yield n",
    "deep recursion": "return solve(n) + 1",
    "changed builtins": "import builtins\nbuiltins.int = builtins.type = lambda *a: None\nreturn 1",
    "changed harness": "m = sys.modules['__main__']\nm._say = lambda *w: None\nreturn 1",
    "changed reader": "import json\njson.loads = json.dumps = None\nreturn 1",
    "search for what is expected": (
        "for o in gc.get_objects():\n    if type(o) is dict and 'expected' in o: return o['expected'][n]\nreturn -1"
    ),
    "read the parent": "return len(open(f'/proc/{os.getppid()}/environ').read())",
    "write a file": "open('CANARY', 'w').write('x')\nreturn 1",
    "link to a file": "os.symlink('CANARY', '/tmp/rrf-link')\nreturn 1",
    "kill the parent": "os.kill(os.getppid(), 9)\nreturn 1",
    "kill everything": "libc.kill(-1, 9)\nreturn 1",
    "fork": "os.fork()\nreturn 1",
    "thread": "import threading\nthreading.Thread(target=print).start()\nreturn 1",
    "memory": "return len([0] * 10**10)",
    "flood": "while True: os.write(3, b'int 1\\n' * 9000)",
    "leave": "os._exit(0)",
    "leave by exception": "raise SystemExit(0)",
    "other descriptors": (
        "for d in range(3, 300):\n    try: os.write(d, b'int 1\\nint 1\\ndone\\n')\n    except OSError:"
        " pass\nos._exit(0)"
    ),
}
HONEST = "def solve(n):\n    return 7 * n\n"


def program_case(box: Any, folder: Path, seed: int) -> dict[str, Any]:
    """One hostile program, and an honest one after it: what was `deceived`, and whether the sandbox
    raised.
    """
    rng = np.random.default_rng(seed)
    names = [*sorted(BODIES), *["forged lines"] * 6]
    trick = names[seed % len(names)]
    canary = folder / "CANARY"
    canary.write_text("as it was")
    source = _source(rng, BODIES[trick]) if trick in BODIES else _forged(rng)
    source = source.replace("CANARY", str(canary))
    wanted = [int(x) for x in rng.integers(10**12, 10**15, 2)]
    row: dict[str, Any] = {"trick": f"program: {trick}", "deceived": False, "raised": False}
    try:
        told = box.run(Program.build(source, [[1], [2]], expected=wanted, checked=False))
        ran = box.run(Program.build(source, [[1], [2]], checked=False))
        honest = box.run(Program.build(HONEST, [[1], [2]], expected=[7, 14]))
    except Exception:
        return {**row, "raised": True}
    row["deceived"] = (
        told.status is ProgramStatus.RIGHT
        or ProgramStatus.RIGHT in told.tests
        or (ran.status is ProgramStatus.RAN and any(type(value) is not int for value in ran.outputs))
        or honest.status is not ProgramStatus.RIGHT
        or canary.read_text() != "as it was"
    )
    return row


def _source(rng: Any, body: str) -> str:
    before = "" if rng.random() < 0.5 else "sys.setrecursionlimit(10**6)\n" if "recursion" in body else "x = 1\n"
    return C + before + "def solve(n):\n" + "".join(f"    {line}\n" for line in body.split("\n"))


def _forged(rng: Any) -> str:
    """Lines as the harness writes them, in some order, from the top or from inside the function,
    and then away.
    """
    lines = [
        LINES[int(at)].format(guess=int(rng.integers(100)))
        for at in rng.integers(len(LINES), size=int(rng.integers(1, 6)))
    ]
    text = "\n".join(lines) + ("\n" if rng.random() < 0.8 else "")
    end = "os._exit(0)" if rng.random() < 0.7 else "pass"
    write = f"os.write(3, {text.encode()!r}); {end}"
    if rng.random() < 0.4:
        return f"{C}{write}\ndef solve(n): return n\n"
    return f"{C}def solve(n):\n    {write}\n    return n\n"
