"""The process that programs are born from: it confines itself once, then forks a fresh child for
each program.

Run as a script with an empty environment; it imports the standard library and its two neighbours,
knows inputs and never expected outputs, holds no secret, and writes nothing but frames with
``os.write``, so that a fork has no buffer to flush. Requests and answers are one line of JSON each
on standard input and output; an answer is followed by as many raw bytes as its ``bytes`` says.

A child may say anything on its own result pipe: the bytes are passed on unread, and the parent
decides what they mean.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import gc
import importlib.util
import json
import os
import select
import signal
import sys
import time
import warnings
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any


def _neighbour(name: str) -> ModuleType:
    """A file beside this one, loaded on its own: the package around it has no place in this
    process.
    """
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


confine = _neighbour("_confine")
validator = _neighbour("_validator")

# fmt: off
_OFFERED = (
    "abs", "all", "any", "bin", "bool", "bytes", "chr", "dict", "divmod", "enumerate",
    "filter", "float", "frozenset", "hex", "int", "isinstance", "iter", "len", "list", "map",
    "max", "min", "next", "oct", "ord", "pow", "range", "repr", "reversed", "round",
    "set", "slice", "sorted", "str", "sum", "tuple", "zip", "ArithmeticError", "AssertionError", "AttributeError",
    "Exception", "IndexError", "KeyError", "LookupError", "NameError", "NotImplementedError", "OverflowError",
    "RecursionError", "RuntimeError", "StopIteration",
    "TypeError", "ValueError", "ZeroDivisionError",
)
# fmt: on
_BUILTINS: dict[str, Any] = {name: getattr(builtins, name) for name in _OFFERED}
_BUILTINS["print"] = lambda *_, **__: None
_MOST_BITS = 4096


class _CallTimeout(BaseException):
    """Raised by the timer inside a call that used up its CPU time."""


def _expired(_number: int, _frame: FrameType | None) -> None:
    raise _CallTimeout


def _say(*words: str) -> None:
    line = " ".join(words).encode("ascii", "replace").replace(b"\n", b" ")
    os.write(confine.RESULT_FD, line[:2048] + b"\n")


def _run_program(task: dict[str, Any]) -> None:
    """Validate, compile, execute; everything said before ``accepted`` is the harness's own word."""
    try:
        tree = ast.parse(task["source"])
        if task["checked"] and (reason := validator.violation(tree)) is not None:
            return _say("rejected", reason)
        code = compile(tree, "<program>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, OverflowError, MemoryError) as error:
        # CPython's parser raises MemoryError when its own stack is too deep.
        return _say("uncompilable", type(error).__name__, str(getattr(error, "msg", error)))
    _say("accepted")
    space: dict[str, Any] = {"__name__": "program"}
    space["__builtins__"] = dict(_BUILTINS) if task["checked"] else builtins
    outcome = _guarded(lambda: exec(code, space), task["call"])
    if outcome.startswith(("error", "memory", "timeout")):
        return _say("broken", outcome)
    entry = space.get(task["entry"])
    if not callable(entry):
        return _say("absent")
    for arguments in task["tests"]:
        _say(_guarded(lambda entry=entry, arguments=arguments: entry(*json.loads(arguments)), task["call"]))
    return _say("done")


def _guarded(call: Any, seconds: float) -> str:
    """One line for what the call did: the integer it returned, or what went wrong."""
    try:
        try:
            signal.setitimer(signal.ITIMER_PROF, seconds)
            value = call()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _CallTimeout:
        return "timeout"
    except MemoryError:
        return "memory"
    except BaseException as error:
        return f"error {type(error).__name__[:80]}"
    if type(value) is not int:
        return f"other {type(value).__name__[:80]}"
    return f"int {value:x}" if value.bit_length() <= _MOST_BITS else f"other int of {value.bit_length()} bits"


def _child(task: dict[str, Any], result: int, filter_program: bytes | None) -> None:
    """Never returns. Descriptors first, then limits, then the filter, then the program."""
    try:
        os.setpgid(0, 0)
        confine.die_with_parent()
        os.dup2(result, confine.RESULT_FD)
        os.closerange(0, confine.RESULT_FD)
        os.closerange(confine.RESULT_FD + 1, 65536)
        signal.signal(signal.SIGPROF, _expired)
        confine.limit(memory=task["memory"], cpu=task["cpu"])
        if filter_program is not None:
            confine.seccomp(filter_program)
    except BaseException:
        os._exit(70)
    code = 71
    try:
        _run_program(task)
        code = 0
    except MemoryError:
        code = 72
    finally:
        os._exit(code)


def _serve_one(task: dict[str, Any], filter_program: bytes | None, *, alone: bool) -> tuple[dict[str, Any], bytes]:
    """Fork, collect at most ``output`` bytes until the deadline, and leave nothing of the program
    alive.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _child(task, write, filter_program)
    os.close(write)
    deadline = time.monotonic() + task["wall"]
    collected = bytearray()
    end = "exit"
    poll = select.poll()
    poll.register(read, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            end = "wall"
            break
        piece = os.read(read, 65536)
        if not piece:
            break
        collected += piece
        if len(collected) > task["output"]:
            end = "output"
            break
    for target in [-child, child] + ([-1] if alone else []):
        # The group, the leader, and, inside a process namespace of our own, whatever else there may
        # be.
        if end != "exit" or target != child:
            with contextlib.suppress(OSError):
                os.kill(target, signal.SIGKILL)
    os.close(read)
    _, status, usage = os.wait4(child, 0)
    report = {
        "end": end,
        "code": os.waitstatus_to_exitcode(status),
        "cpu": usage.ru_utime + usage.ru_stime,
        "bytes": min(len(collected), task["output"]),
    }
    return report, bytes(collected[: task["output"]])


def _send(report: dict[str, Any], payload: bytes = b"") -> None:
    data = json.dumps(report).encode() + b"\n" + payload
    while data:
        data = data[os.write(1, data) :]


def _serve(layers: list[str], filter_program: bytes | None) -> None:
    alone = "namespaces" in layers
    _send({"layers": layers})
    with os.fdopen(0, "rb", closefd=False) as requests:
        for line in requests:
            report, payload = _serve_one(json.loads(line), filter_program, alone=alone)
            _send(report, payload)


def _layer(layers: list[str], name: str, without: list[str], build: Any) -> None:
    """Put on a layer if the machine has it; what is on is what the record will say."""
    if name in without:
        return
    try:
        build()
    except OSError:
        return
    layers.append(name)


def main(folder: str, without: list[str]) -> None:
    layers = ["limits"]
    if "namespaces" not in without:
        try:
            confine.namespaces(folder)
        except OSError:
            os._exit(confine.NO_NAMESPACES)  # half a namespace is none: the parent starts again without them
        layers.append("namespaces")
    _layer(layers, "no-root", without, confine.drop_user)
    if "namespaces" in layers:
        # Outside stays a process that only waits; the first process inside is the zygote, and if it
        # goes, all goes.
        inner = os.fork()
        if inner:
            os.closerange(0, 3)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) & 0xFF)
        confine.die_with_parent()
        confine.drop_capabilities()
    _layer(layers, "no-new-privileges", without, confine.no_new_privileges)
    _layer(layers, "landlock", without, confine.landlock)
    programs: list[bytes] = []
    _layer(layers, "seccomp", without, lambda: programs.append(_tried(confine.seccomp_program())))
    os.environ.clear()
    # Where they would print there is nothing, and a program must not die of a warning.
    warnings.simplefilter("ignore")
    sys.stdin = sys.stdout = sys.stderr = None
    gc.collect()
    gc.freeze()
    _serve(layers, programs[0] if programs else None)


def _tried(program: bytes) -> bytes:
    """The filter, after a child could put it on and was killed for a call it forbids."""
    child = os.fork()
    if child == 0:
        try:
            confine.seccomp(program)
            os.getppid()
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != -signal.SIGSYS:
        raise OSError("the filter does not hold here")
    return program


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
