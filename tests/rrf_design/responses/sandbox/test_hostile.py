"""Attacks on the sandbox.

Each runs twice, with the validator and without it, and the damage is looked for from outside.

The detail expected without the validator shows that the attack got as far as the kernel and was
stopped there, not by a typo.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from rrf_design.responses.sandbox import Level, Program, ProgramLimits, Sandbox
from rrf_design.responses.sandbox import ProgramStatus as Status

SECRET = "canary-8412-secret"
LIMITS = ProgramLimits(call=0.15, cpu=1, wall=4.0)
FORBIDDEN = "forbidden system call"
NUMBERS = {"x86_64": (41, 101, 310, 434, 425, 321, 319), "aarch64": (198, 117, 270, 434, 425, 280, 279)}
SOCKET, PTRACE, VM_READ, PIDFD, URING, BPF, MEMFD = NUMBERS.get(os.uname().machine, NUMBERS["x86_64"])
C = "import ctypes, os, sys\nlibc = ctypes.CDLL(None)\n"


def solve(body: str, before: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"{before}def solve(n):\n{lines}"


# name: (source, status without the validator, pattern of the detail there). PORT, CANARY, VICTIM
# and PARENT are filled in.
ATTACKS: dict[str, tuple[str, Status, str]] = {
    "fork bomb": (solve("while True: os.fork()", C), Status.CRASH, FORBIDDEN),
    "vfork": (solve("return libc.vfork()", C), Status.CRASH, FORBIDDEN),
    "thread bomb": (
        solve("while True: _thread.start_new_thread(solve, (n,))", "import _thread\n"),
        Status.CRASH,
        FORBIDDEN,
    ),
    "memory bomb at once": (solve("return len([0] * 10**10)"), Status.MEMORY, "memory"),
    "memory bomb by doubling": (solve("s = bytes(10**6)\nwhile True: s = bytes(2 * len(s))"), Status.MEMORY, "memory"),
    "memory bomb that holds on": (
        solve("held = []\nwhile True:\n    try: held.append(bytes(10**6))\n    except BaseException: pass"),
        Status.TIMEOUT,
        "timeout|CPU|wall",
    ),
    "memory bomb by mmap": (
        solve("while libc.mmap(None, ctypes.c_size_t(2**28), 3, 34, -1, 0) != -1: pass\nreturn 1", C),
        Status.WRONG,
        "",
    ),
    "infinite loop": (solve("while True: pass"), Status.TIMEOUT, "timeout"),
    "infinite loop that swallows the timer": (
        solve("while True:\n    try: spin()\n    except BaseException: pass", "def spin():\n    while True: pass\n"),
        Status.TIMEOUT,
        "CPU|wall",
    ),
    "infinite loop at the top": ("while True: pass", Status.TIMEOUT, "outside the function"),
    "blocked signals": (
        solve("libc.sigprocmask(0, b'\\xff' * 128, None)\nwhile True: pass", C),
        Status.TIMEOUT,
        "CPU|wall",
    ),
    "backtracking pattern": (
        solve("return len(re.match('(a+)+$', 'a' * 60 + 'b').group())", "import re\n"),
        Status.TIMEOUT,
        "timeout|CPU",
    ),
    "huge power": (solve("return 10 ** 10 ** 10"), Status.TIMEOUT, "timeout|CPU"),
    "huge shift": (solve("return 1 << 10**12"), Status.MEMORY, "memory"),
    "huge integer returned": (solve("return 1 << 10**7"), Status.NON_INTEGER, "int of 10000001 bits"),
    "huge integer printed": (solve("return len(str(1 << 10**6))"), Status.CRASH, "ValueError"),
    "deep recursion": (solve("return solve(n) + 1"), Status.CRASH, "RecursionError"),
    "deep recursion without a limit": (
        solve("sys.setrecursionlimit(10**9)\ndef f(x): return sorted([x], key=f)\nreturn f(0)", "import sys\n"),
        Status.CRASH,
        "signal 11|MemoryError|RecursionError",
    ),
    "deeply nested source": ("x = " + "(" * 30000 + ")" * 30000, Status.COMPILE_FAILURE, "Error|parenthes"),
    "deeply nested signs": ("x = " + "-" * 60000 + "1", Status.COMPILE_FAILURE, "Error"),
    "endless source": ("x = 1\n" * 20000, Status.REJECTED, "bytes of source"),
    "null bytes": ("x = 1\0", Status.COMPILE_FAILURE, "null"),
    "walk to subclasses": (
        solve(
            "for c in ().__class__.__base__.__subclasses__():\n"
            "    if c.__name__ == '_wrap_close':\n"
            "        return c.__init__.__globals__['system']('echo > CANARY')"
        ),
        Status.CRASH,
        FORBIDDEN,
    ),
    "walk through a generator frame": (
        solve("return len((i for i in ()).gi_frame.f_builtins['open']('CANARY').read())"),
        Status.CRASH,
        "PermissionError",
    ),
    "walk through a traceback": (
        solve(
            "try: 1 // 0\n"
            "except ZeroDivisionError as e:\n"
            "    f = e.__traceback__.tb_frame\n"
            "    while f.f_back: f = f.f_back\n"
            "    return f.f_globals['os'].system('echo > CANARY')"
        ),
        Status.CRASH,
        FORBIDDEN,
    ),
    "walk inside a format string": (
        solve("return int('{0.__globals__[CANARY_KEY]}'.format(solve))"),
        Status.CRASH,
        "KeyError",
    ),
    "builtins of the harness": (
        solve("return len(__builtins__.open('CANARY').read())"),
        Status.CRASH,
        "PermissionError",
    ),
    "eval": (solve("return eval(\"__import__('os').getppid()\")"), Status.CRASH, FORBIDDEN),
    "read a file": (
        solve("return int.from_bytes(open('CANARY', 'rb').read(), 'big')"),
        Status.CRASH,
        "PermissionError",
    ),
    "read a file by system call": (
        solve("return libc.open(b'CANARY', 0)", C),
        Status.WRONG,
        "",
    ),
    "list the disk": (solve("return len(os.listdir('/'))", C), Status.CRASH, "PermissionError"),
    "read its own environment": (
        solve("return int.from_bytes(os.environ['RRF_CANARY'].encode(), 'big')", C),
        Status.CRASH,
        "KeyError",
    ),
    "read the C environment": (
        solve("libc.getenv.restype = ctypes.c_char_p\nreturn int.from_bytes(libc.getenv(b'RRF_CANARY'), 'big')", C),
        Status.CRASH,
        "TypeError",
    ),
    "read the parent's environment": (
        solve("return int.from_bytes(open('/proc/PARENT/environ', 'rb').read(), 'big')"),
        Status.CRASH,
        "PermissionError",
    ),
    "write its own memory file": (solve("open('/proc/self/mem', 'r+b')"), Status.CRASH, "PermissionError"),
    "create a file": (solve("open('CANARY.new', 'w').write('x')"), Status.CRASH, "PermissionError"),
    "create a file where it stands": (solve("open('new', 'w').write('x')"), Status.CRASH, "PermissionError"),
    "remove a file": (solve("os.unlink('CANARY')", C), Status.CRASH, FORBIDDEN),
    "rename a file": (solve("os.rename('CANARY', 'CANARY.gone')", C), Status.CRASH, FORBIDDEN),
    "truncate a file": (solve("os.truncate('CANARY', 0)", C), Status.CRASH, FORBIDDEN),
    "make a folder": (solve("os.mkdir('CANARY.d')", C), Status.CRASH, FORBIDDEN),
    "change the mode": (solve("os.chmod('CANARY', 0)", C), Status.CRASH, FORBIDDEN),
    "TCP connection": (
        solve(
            "s = libc.socket(2, 1, 0)\n"
            "a = (2).to_bytes(2, 'little') + (PORT).to_bytes(2, 'big') + bytes([127, 0, 0, 1]) + bytes(8)\n"
            "return libc.connect(s, a, 16)",
            C,
        ),
        Status.CRASH,
        FORBIDDEN,
    ),
    "UDP packet": (solve("return libc.socket(2, 2, 0)", C), Status.CRASH, FORBIDDEN),
    "socket by number": (solve(f"return libc.syscall({SOCKET}, 1, 1, 0)", C), Status.CRASH, FORBIDDEN),
    "import a network module": (
        solve("return 1", "import urllib.request\n"),
        Status.CRASH,
        "outside the function: (ModuleNotFound|Permission|Import)Error|" + FORBIDDEN,
    ),
    "kill the parent": (solve("os.kill(os.getppid(), 9)", C), Status.CRASH, FORBIDDEN),
    "signal the harness": (solve("libc.kill(PARENT, 10)", C), Status.CRASH, FORBIDDEN),
    "kill another process": (solve("libc.kill(VICTIM, 9)", C), Status.CRASH, FORBIDDEN),
    "kill everything": (solve("os.kill(-1, 9)", C), Status.CRASH, FORBIDDEN),
    "trace another process": (solve(f"libc.syscall({PTRACE}, 16, VICTIM, 0, 0)", C), Status.CRASH, FORBIDDEN),
    "read another process": (
        solve(f"libc.syscall({VM_READ}, PARENT, 0, 0, 0, 0, 0)", C),
        Status.CRASH,
        FORBIDDEN,
    ),
    "hold another process": (solve(f"libc.syscall({PIDFD}, VICTIM, 0)", C), Status.CRASH, FORBIDDEN),
    "run a shell": (solve("os.execv('/bin/sh', ['sh', '-c', 'echo > CANARY'])", C), Status.CRASH, FORBIDDEN),
    "spawn a shell": (solve("libc.system(b'echo > CANARY')", C), Status.CRASH, FORBIDDEN),
    "become root": (solve("os.setuid(0)", C), Status.CRASH, FORBIDDEN),
    "new namespaces": (solve("libc.unshare(0x10000000)", C), Status.CRASH, FORBIDDEN),
    "mount": (solve("libc.mount(b'a', b'/', b'tmpfs', 0, None)", C), Status.CRASH, FORBIDDEN),
    "raise its limits": (
        solve("libc.setrlimit(9, (ctypes.c_ulong * 2)(2**40, 2**40))", C),
        Status.CRASH,
        FORBIDDEN,
    ),
    "take the filter off": (solve("libc.prctl(22, 0, 0, 0, 0)", C), Status.CRASH, FORBIDDEN),
    "ignore the CPU limit": (
        solve("signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", "import signal\n"),
        Status.CRASH,
        FORBIDDEN,
    ),
    "executable memory": (solve("libc.mmap(None, 4096, 7, 34, -1, 0)", C), Status.CRASH, FORBIDDEN),
    "io_uring": (solve(f"libc.syscall({URING}, 8, 0)", C), Status.CRASH, FORBIDDEN),
    "bpf": (solve(f"libc.syscall({BPF}, 0, 0, 0)", C), Status.CRASH, FORBIDDEN),
    "memory file": (solve(f"libc.syscall({MEMFD}, b'x', 0)", C), Status.CRASH, FORBIDDEN),
    "calls of another ABI": (solve("libc.syscall(0x40000000 + 57)", C), Status.CRASH, FORBIDDEN),
    "sleep": (solve("time.sleep(10**6)", "import time\n"), Status.CRASH, FORBIDDEN),
    "wait for input": (solve("return len(os.read(0, 10))", C), Status.CRASH, FORBIDDEN),
    "flood of output": (solve("while True: os.write(3, b'x' * 60000)", C), Status.CRASH, "too much output"),
    "flood of standard output": (solve("while True: os.write(1, b'x' * 60000)", C), Status.CRASH, FORBIDDEN),
    "flood by print": (solve("while True: print('x' * 1000)"), Status.TIMEOUT, "timeout"),
    "flood of warnings": (
        solve("while True: warnings.warn('x' * 1000)", "import warnings\n"),
        Status.TIMEOUT,
        "timeout",
    ),
    "close the result": (solve("os.close(3)\nwhile True: pass", C), Status.CRASH, FORBIDDEN),
    "forge results and go": (
        solve("os.write(3, b'int 1\\nint 1\\ndone\\n')\nos._exit(0)", C),
        Status.WRONG,
        "",
    ),
    "forge too many results": (solve("os.write(3, b'int 1\\n' * 9)\nreturn 1", C), Status.CRASH, "ended before"),
    "forge strange results": (
        solve("os.write(3, b'int 0x1\\nright\\ndone\\n\\xff\\x00')\nos._exit(0)", C),
        Status.CRASH,
        "unreadable|ended before",
    ),
    "forge a line of the harness": (
        solve("os.write(3, b'broken int 1\\n')\nos._exit(0)", C),
        Status.CRASH,
        "ended before|unreadable",
    ),
    "write after the end": (
        solve(
            "atexit.register(os.write, 3, b'int 1\\n')\nsys.setswitchinterval(1e-6)\nreturn 1",
            C + "import atexit, sys\n",
        ),
        Status.WRONG,
        "",
    ),
    "an integer whose end speaks": (
        solve(
            "class I(int):\n    def __del__(self): os.write(3, b'int 1\\nint 1\\ndone\\n')\nI(5)\nreturn 1",
            C,
        ),
        Status.CRASH,
        "ended before",
    ),
    "a generator for an integer": (solve("yield n"), Status.NON_INTEGER, "generator"),
    "not a number": (solve("return float('nan')"), Status.NON_INTEGER, "float"),
    "change what equal means": (
        solve("import builtins\nbuiltins.int = builtins.type = lambda *a: None\nreturn 1"),
        Status.CRASH,
        "",
    ),
    "forge a verdict": (
        solve("os.write(3, b'rejected\\nright right\\ndone\\n')\nos._exit(0)", C),
        Status.CRASH,
        "ended before|unreadable",
    ),
    "forge in a type name": (
        solve("return type('int 5\\nint 67932', (), {})()"),
        Status.NON_INTEGER,
        "int 5 int 67932",
    ),
    "an integer that equals everything": (
        solve("return type('int', (int,), {'__eq__': lambda a, b: True})(5)"),
        Status.NON_INTEGER,
        "int",
    ),
    "change the harness": (
        solve("m = sys.modules['__main__']\nm._say = lambda *w: None\nreturn 1", "import sys\n"),
        Status.CRASH,
        "ended before",
    ),
    "break the harness's modules": (
        solve("import json\njson.loads = None\nreturn 1"),
        Status.WRONG,
        "",
    ),
    "search memory for the expected values": (
        solve(
            "for o in gc.get_objects():\n"
            "    if type(o) is dict and 'expected' in o: return o['expected'][n]\n"
            "return -1",
            "import gc\n",
        ),
        Status.WRONG,
        "",
    ),
    "leave at once": (solve("os._exit(0)", C), Status.CRASH, "ended before"),
    "leave by exception": (solve("raise SystemExit(0)"), Status.CRASH, "SystemExit"),
    "crash the interpreter": (solve("return ctypes.string_at(0)", C), Status.CRASH, "signal 11"),
    "abort": (solve("os.abort()", C), Status.CRASH, FORBIDDEN + "|signal 6"),
    "truth for an integer": (solve("return n > 0"), Status.NON_INTEGER, "bool"),
}
EXPECTED = [424_242, 424_243]


@dataclass
class World:
    """What an attack could harm, and how to see whether it did."""

    canary: Path
    listener: socket.socket
    victim: subprocess.Popen[bytes]
    signals: list[int] = field(default_factory=list)

    def fill(self, source: str) -> str:
        values = {
            "CANARY": self.canary,
            "PORT": self.listener.getsockname()[1],
            "VICTIM": self.victim.pid,
            "PARENT": os.getpid(),
        }
        return re.sub(
            r"(?<![A-Za-z_])(CANARY|PORT|VICTIM|PARENT)(?![A-Za-z_])", lambda m: str(values[m.group()]), source
        )

    def unharmed(self) -> None:
        assert self.canary.read_text() == SECRET
        assert os.listdir(self.canary.parent) == [self.canary.name]
        assert self.victim.poll() is None
        assert self.signals == []
        with pytest.raises(BlockingIOError):
            self.listener.accept()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="rrf-canary-") as folder:
        # Readable and writable by everybody: only the sandbox stands between a program and the
        # file.
        Path(folder).chmod(0o777)
        canary = Path(folder) / "canary.txt"
        canary.write_text(SECRET)
        canary.chmod(0o666)
        yield from _watched(canary)


def _watched(canary: Path) -> Iterator[World]:
    patch = pytest.MonkeyPatch()
    patch.setenv("RRF_CANARY", SECRET)
    before = signal.getsignal(signal.SIGUSR1)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as victim,
    ):
        listener.setblocking(False)
        world = World(canary, listener, victim)
        signal.signal(signal.SIGUSR1, lambda number, _: world.signals.append(number))
        yield world
        signal.signal(signal.SIGUSR1, before)
        victim.kill()
    patch.undo()


@pytest.fixture(scope="module")
def box(world: World) -> Iterator[Sandbox]:
    with Sandbox(workers=1, limits=LIMITS) as sandbox:
        yield sandbox


def attack(box: Sandbox, world: World, name: str, *, checked: bool) -> tuple[Status, str]:
    """Run one attack and look at the world afterwards."""
    source = world.fill(ATTACKS[name][0])
    assert box.isolation.layers  # the zygote runs; from here on no process may be added
    own = psutil.Process()
    before = {process.pid for process in own.children(recursive=True)}
    result = box.run(Program.build(source, [[0], [1]], expected=EXPECTED, checked=checked))
    world.unharmed()
    assert result.status is not Status.RIGHT
    secrets = {int.from_bytes(SECRET.encode(), "big"), len(SECRET), *EXPECTED}
    assert not secrets & {value for value in result.outputs if value is not None}
    assert {process.pid for process in own.children(recursive=True)} <= before
    honest = box.run(Program.build("def solve(n): return n + 424242", [[0], [1]], expected=EXPECTED))
    assert honest.status is Status.RIGHT
    return result.status, result.detail


def test_there_are_enough_attacks() -> None:
    assert len(ATTACKS) >= 40


@pytest.mark.parametrize("name", ATTACKS)
def test_without_the_validator(box: Sandbox, world: World, name: str) -> None:
    _, status, detail = ATTACKS[name]
    seen = attack(box, world, name, checked=False)
    assert seen[0] is status, seen
    assert re.search(detail, seen[1]), seen


@pytest.mark.parametrize("name", ATTACKS)
def test_with_the_validator(box: Sandbox, world: World, name: str) -> None:
    status, detail = attack(box, world, name, checked=True)
    if "import" in ATTACKS[name][0] or "__" in ATTACKS[name][0]:
        assert status is Status.REJECTED, (status, detail)
    assert FORBIDDEN not in detail  # no program that the validator lets through gets as far as a system call


# Attacks that would do bounded damage if they succeeded, so that a layer can be tried with the
# others off.
_FILES = (
    "read a file",
    "read a file by system call",
    "list the disk",
    "create a file",
    "read the parent's environment",
)
_REACH = ("TCP connection", "signal the harness", "remove a file", "rename a file", "truncate a file", "make a folder")


@pytest.fixture(scope="module", params=["seccomp", "seccomp namespaces", "seccomp landlock"])
def weak(request: pytest.FixtureRequest, world: World) -> Iterator[Sandbox]:
    without = request.param.split()
    with Sandbox(workers=1, limits=LIMITS, require=Level.LIMITS, without=without) as sandbox:
        if not {"namespaces", "landlock"} & set(sandbox.isolation.layers):
            pytest.skip(f"left out: attacks without {' and '.join(without)}, because this machine has no other layer")
        yield sandbox


@pytest.mark.parametrize("name", [*_FILES, *_REACH])
def test_the_other_layers_hold_by_themselves(weak: Sandbox, world: World, name: str) -> None:
    attack(weak, world, name, checked=False)
