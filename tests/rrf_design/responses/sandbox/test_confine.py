from __future__ import annotations

import struct

import pytest

from rrf_design.responses.sandbox import _confine as confine

ALLOW, KILL = 0x7FFF0000, 0x80000000
DENY = 0x00050001


def evaluate(program: bytes, *, number: int, arch: int, arguments: tuple[int, ...] = ()) -> int:
    """A small interpreter of the filter language: what would the kernel decide about this call?"""
    padded = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("IIQ6Q", number, arch, 0, *padded)
    place, value = 0, 0
    while True:
        code, yes, no, constant = struct.unpack_from("HBBI", program, 8 * place)
        place += 1
        if code == 0x20:
            value = struct.unpack_from("I", data, constant)[0]
        elif code == 0x06:
            return int(constant)
        else:
            met = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[code]
            place += yes if met else no


@pytest.mark.parametrize("machine", list(confine._MACHINES))
def test_filter_decides_every_call(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "_MACHINE", confine._MACHINES[machine])
    arch, _, plain, write, memory, denied = confine._MACHINES[machine]
    program = confine.seccomp_program()
    for number in range(600):
        verdict = evaluate(program, number=number, arch=arch)
        if number in plain or number in memory:
            assert verdict == ALLOW
        elif number in denied:
            assert verdict == DENY
        else:
            assert verdict == KILL, number
        assert evaluate(program, number=number, arch=arch ^ 1) == KILL
        assert evaluate(program, number=number | 0x40000000, arch=arch) == KILL
    for fd in (0, 1, 2, 4, 1000):
        assert evaluate(program, number=write, arch=arch, arguments=(fd,)) == KILL
    assert evaluate(program, number=write, arch=arch, arguments=(confine.RESULT_FD,)) == ALLOW
    for number in memory:
        assert evaluate(program, number=number, arch=arch, arguments=(0, 4096, 3)) == ALLOW
        assert evaluate(program, number=number, arch=arch, arguments=(0, 4096, 5)) == KILL


def test_unknown_machines_have_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "_MACHINE", None)
    for layer in (confine.seccomp_program, confine.landlock, lambda: confine.namespaces("/")):
        with pytest.raises(OSError, match="no "):
            layer()
