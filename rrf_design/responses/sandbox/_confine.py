"""The layers that hold a program: uid, namespaces, Landlock, rlimits and a seccomp allow-list,
straight from the kernel.

This file runs inside the sandbox's own process, imports the standard library only, and needs no
helper program: what a privileged launcher such as bubblewrap would set up is a handful of system
calls, made here through ctypes.

Defence in depth: the seccomp filter alone leaves a program no call that reaches a file, a socket, a
process or a signal. The other layers hold if the filter, or the kernel behind one of the allowed
calls, has a hole.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
NOBODY = 65534
RESULT_FD = 3
NO_NAMESPACES = 75  # the zygote's exit code when it could not enter any

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_PRIVATE = _NEWNS | _NEWUTS | _NEWIPC | _NEWPID | _NEWNET
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_REC, _MS_PRIVATE = 1, 2, 4, 8, 32, 1 << 14, 1 << 18
_MNT_DETACH = 2

# What CPython needs to compute and to write its result: memory, its own clock and timer, the end.
# By architecture:
# (audit name, pivot_root, calls allowed as they are, write, calls allowed without PROT_EXEC, calls
# answered "not permitted").
# The last kind are looks at files that CPython itself takes, as when a SyntaxError wants to quote
# its line.
_MACHINES: dict[str, tuple[int, int, tuple[int, ...], int, tuple[int, ...], tuple[int, ...]]] = {
    "x86_64": (
        0xC000003E,
        155,
        # munmap brk rt_sigprocmask rt_sigreturn mremap madvise setitimer getpid exit gettimeofday
        # sigaltstack gettid
        # futex restart_syscall clock_gettime exit_group getrandom
        (11, 12, 14, 15, 25, 28, 38, 39, 60, 96, 131, 186, 202, 219, 228, 231, 318),
        1,
        (9, 10),  # mmap mprotect
        (2, 4, 257, 262),  # open stat openat newfstatat
    ),
    "aarch64": (
        0xC00000B7,
        41,
        # exit exit_group futex setitimer clock_gettime restart_syscall sigaltstack rt_sigprocmask
        # rt_sigreturn gettimeofday
        # getpid gettid brk munmap mremap madvise getrandom
        (93, 94, 98, 103, 113, 128, 132, 135, 139, 169, 172, 178, 214, 215, 216, 233, 278),
        64,
        (222, 226),
        (56, 79),
    ),
}
_MACHINE = _MACHINES.get(platform.machine()) if sys.platform == "linux" and sys.maxsize > 2**32 else None


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _prctl(option: int, *arguments: object) -> None:
    padded = [*arguments, *[ctypes.c_ulong(0)] * (4 - len(arguments))]
    _check(LIBC.prctl(option, *padded))


def no_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))


def die_with_parent() -> None:
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(9))


def drop_user() -> None:
    """Root becomes nobody for good; limits on processes do not hold for root."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def namespaces(folder: str) -> None:
    """Own mounts (an empty read-only root), processes, network without a route, IPC and host name.

    The caller must fork afterwards: only a child enters the new process namespace.
    """
    if _MACHINE is None:
        raise OSError("no namespaces on this system")
    if os.geteuid() == 0:
        try:
            _check(LIBC.unshare(_PRIVATE))
            _empty_root(folder)
            return
        except PermissionError:
            drop_user()  # a container's root may lack the right; anybody may still own a user namespace
    user, group = os.geteuid(), os.getegid()
    _prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(1))  # else the maps below belong to root after a change of user
    _check(LIBC.unshare(_NEWUSER | _PRIVATE))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{NOBODY} {user} 1"), ("gid_map", f"{NOBODY} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    _empty_root(folder)


def _empty_root(folder: str) -> None:
    assert _MACHINE is not None
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _check(LIBC.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))
    _check(LIBC.mount(b"tmpfs", folder.encode(), b"tmpfs", ctypes.c_ulong(flags), b"size=4k,nr_inodes=2,mode=0555"))
    os.chdir(folder)
    _check(LIBC.syscall(ctypes.c_long(_MACHINE[1]), b".", b"."))
    _check(LIBC.umount2(b".", _MNT_DETACH))
    os.chdir("/")
    _check(LIBC.mount(None, b"/", None, ctypes.c_ulong(flags | _MS_REMOUNT | _MS_RDONLY), None))


def drop_capabilities() -> None:
    """Whatever the user namespace granted is given back."""
    for capability in range(64):
        if LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break
    header = struct.pack("Ii", 0x20080522, 0)  # the capability interface of 64 bits, this process
    _check(LIBC.capset(header, b"\0" * 24))


def landlock() -> None:
    """No path may be opened, no TCP port used, no process outside signalled: a rule set without any
    exception.
    """
    if _MACHINE is None:
        raise OSError("no Landlock on this system")
    version = _check(LIBC.syscall(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint(1)))
    rights = 13 + (version >= 2) + (version >= 3) + (version >= 5)
    files = (1 << rights) - 1
    network = 3 if version >= 4 else 0
    scoped = 3 if version >= 6 else 0
    rules = struct.pack("QQQ", files, network, scoped)[: 8 if version < 4 else 16 if version < 6 else 24]
    fd = _check(LIBC.syscall(ctypes.c_long(444), rules, ctypes.c_size_t(len(rules)), ctypes.c_uint(0)))
    try:
        _check(LIBC.syscall(ctypes.c_long(446), ctypes.c_int(fd), ctypes.c_uint(0)))
    finally:
        os.close(fd)


def limit(*, memory: int, cpu: int) -> None:
    """ProgramLimits of one program.

    At the end of its CPU time comes SIGXCPU, and a second later what nobody can block.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (RESULT_FD + 1, RESULT_FD + 1))


def seccomp_program() -> bytes:
    """The filter: the calls of the table, ``write`` to the result only, no executable memory; the
    rest kills.
    """
    if _MACHINE is None:
        raise OSError("no seccomp filter for this machine")
    audit, _, plain, write, memory, denied = _MACHINE
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, deny, kill = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
    body: list[tuple[int, object, object, int]] = [
        (load, 0, 0, 4),
        (equal, 0, "kill", audit),
        (load, 0, 0, 0),
        (at_least, "kill", 0, 0x40000000),  # the x32 calls of the same machine
        *((equal, "allow", 0, number) for number in plain),
        (equal, "write", 0, write),
        *((equal, "memory", 0, number) for number in memory),
        *((equal, "deny", 0, number) for number in denied),
        (give, 0, 0, kill),
    ]
    places = {"write": len(body)}
    body += [(load, 0, 0, 16), (equal, "allow", "kill", RESULT_FD)]
    places["memory"] = len(body)
    body += [(load, 0, 0, 32), (any_bit, "kill", "allow", 4)]  # argument 2 & PROT_EXEC
    places["deny"] = len(body)
    body += [(give, 0, 0, deny)]
    places["kill"] = len(body)
    body += [(give, 0, 0, kill)]
    places["allow"] = len(body)
    body += [(give, 0, 0, allow)]

    def jump(target: object, here: int) -> int:
        return places[target] - here - 1 if isinstance(target, str) else 0

    return b"".join(
        struct.pack("HBBI", code, jump(yes, here), jump(no, here), value)
        for here, (code, yes, no, value) in enumerate(body)
    )


def seccomp(program: bytes) -> None:
    """Install the filter for good; it can't be taken off, not even by its owner."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    _prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.c_char_p(header))
