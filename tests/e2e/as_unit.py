"""Starts the program of a unit file with the rights that the file gives it, and no others, without a service manager.

    python as_unit.py UNIT ROOT

In its own mount namespace, as root: the settings of systemd.exec(5) are applied to ROOT and to this process, which
becomes the program. An unknown setting is an error, so that none is ignored. x86-64 only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shlex
import stat
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyseccomp

# From <linux/capability.h>, <linux/prctl.h>, <linux/sched.h> and <sys/mman.h>.
CAPABILITIES: Final = {
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_IPC_LOCK": 14,
    "CAP_SYS_NICE": 23,
    "CAP_BPF": 39,
}
LAST_CAPABILITY: Final = 40
PR_SET_KEEPCAPS, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 8, 24, 38, 47
PR_CAP_AMBIENT_RAISE: Final = 2
CAPABILITY_VERSION_3: Final = 0x20080522
NEW_NAMESPACES: Final = 0x7E02_0000
WRITE, EXECUTE = 2, 4
ENOSYS, EPERM, EAFNOSUPPORT = 38, 1, 97
FAMILIES: Final = {
    "AF_UNIX": 1,
    "AF_INET": 2,
    "AF_INET6": 10,
    "AF_NETLINK": 16,
    "AF_PACKET": 17,
    "AF_XDP": 44,
}
DEVICES: Final = ("null", "zero", "full", "random", "urandom")
"""Devices left by DevicePolicy=closed."""

APPLIED: Final = {
    *("ExecStart", "User", "Group", "StateDirectory", "StateDirectoryMode", "UMask"),
    *("AmbientCapabilities", "CapabilityBoundingSet", "NoNewPrivileges"),
    *("LimitMEMLOCK", "LimitNOFILE", "LimitRTPRIO", "LimitNICE"),
    *("RestrictAddressFamilies", "SystemCallArchitectures", "SystemCallFilter", "SystemCallErrorNumber"),
    *("MemoryDenyWriteExecute", "RestrictNamespaces", "ProtectSystem", "PrivateTmp", "PrivateMounts"),
    *("ProtectKernelTunables", "DevicePolicy", "DeviceAllow", "ProtectHome"),
}
ELSEWHERE: Final = {
    *("Type", "Restart", "RestartSec", "RestartPreventExitStatus"),  # of the manager around the program
    *(
        "ProtectClock",
        "ProtectKernelModules",
        "ProtectKernelLogs",
    ),  # calls that the filter above already lacks
    *("ProtectControlGroups", "ProtectHostname", "ProtectProc", "RestrictSUIDSGID", "LockPersonality"),
    *("RemoveIPC", "KeyringMode"),  # not used by the agent
}
"""Settings without effect on the agent beyond those above."""

Settings = dict[str, list[str]]
_libc = ctypes.CDLL(None, use_errno=True)


def read(unit: Path) -> Settings:
    """The settings of the section Service; a key may be repeated."""
    found: Settings = defaultdict(list)
    section = ""
    for line in unit.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif section == "Service" and line and line[0] not in "#;":
            key, _, value = line.partition("=")
            found[key].append(value)
    unknown = set(found) - APPLIED - ELSEWHERE
    if unknown:
        sys.exit(f"as_unit: {', '.join(sorted(unknown))}: not known here; say in as_unit.py what they mean")
    return found


def done(result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def lay_out(root: Path, settings: Settings, uid: int, gid: int) -> None:
    """Sets up the program's view of files: ROOT as installed, read-only except for its own folders."""
    mount("--make-rprivate", "/")
    mount("--bind", root, root)
    for name in " ".join(settings["StateDirectory"]).split():
        place = root / "var/lib" / name
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(int(settings["StateDirectoryMode"][0], 8))
        os.chown(place, uid, gid)
        mount("--bind", place, place)
    mount("-t", "proc", "proc", root / "proc")
    mount("--bind", root / "proc/sys", root / "proc/sys")
    mount("--bind", "/sys", root / "sys")
    for place in (root / "tmp", root / "var/tmp", root / "home", root / "root", root / "dev"):
        mount("-t", "tmpfs", "tmpfs", place)
    for name in DEVICES:
        device(root, Path("/dev") / name, 0o666, 0)
    for rule in settings["DeviceAllow"]:
        path = Path(rule.split()[0])
        if path.is_absolute() and path.exists():
            # From the package's udev rules.
            device(root, path, 0o660, gid)
    for place in (root, root / "proc/sys", root / "sys"):
        mount("-o", "remount,bind,ro", place)


def device(root: Path, path: Path, mode: int, gid: int) -> None:
    made = root / path.relative_to("/")
    os.mknod(made, stat.S_IFCHR, path.stat().st_rdev)
    os.chown(made, 0, gid)
    made.chmod(mode)


def calls(names: str) -> Iterator[str]:
    """Names of system calls, groups resolved by systemd's own list."""
    for name in names.split():
        if not name.startswith("@"):
            yield name
            continue
        told = subprocess.run(
            ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
        ).stdout
        members = [line.strip() for line in told.splitlines()[1:]]
        yield from calls(" ".join(one for one in members if one and not one.startswith("#")))


def filtered(settings: Settings) -> pyseccomp.SyscallFilter:
    """The filter with the remaining system calls."""
    allowed: set[str] = set()
    for names in settings["SystemCallFilter"]:
        if names.startswith("~"):
            allowed -= set(calls(names[1:]))
        else:
            allowed |= set(calls(names))
    # A manager can always start the program.
    allowed |= {*calls("@default"), "execve"}
    made = pyseccomp.SyscallFilter(pyseccomp.ERRNO(EPERM))
    equal, masked = pyseccomp.EQ, pyseccomp.MASKED_EQ
    special: dict[str, list[tuple[Any, ...]]] = {
        # Forbid memory that is writable and executable at once, or executable later.
        "mmap": [(2, masked, WRITE | EXECUTE, value) for value in (0, WRITE, EXECUTE)],
        "mprotect": [(2, masked, EXECUTE, 0)],
        "pkey_mprotect": [(2, masked, EXECUTE, 0)],
        "clone": [(0, masked, NEW_NAMESPACES, 0)],
        "socket": [(0, equal, FAMILIES[name]) for name in settings["RestrictAddressFamilies"][0].split()],
    }
    for name in sorted(allowed - {"clone3", "unshare", "setns"}):
        try:
            for rule in special.get(name, []):
                made.add_rule(pyseccomp.ALLOW, name, pyseccomp.Arg(*rule))
            if name not in special:
                made.add_rule(pyseccomp.ALLOW, name)
        except (OSError, RuntimeError, ValueError):  # a call of other machines
            if name in special:
                raise
    made.add_rule(pyseccomp.ERRNO(ENOSYS), "clone3")
    return made


def become(settings: Settings, uid: int, gid: int) -> None:
    """Switches to the user, with the capabilities and limits of the unit."""
    assert settings["LimitMEMLOCK"] == ["infinity"]
    limits = {
        resource.RLIMIT_MEMLOCK: resource.RLIM_INFINITY,
        resource.RLIMIT_NOFILE: int(settings["LimitNOFILE"][0]),
        resource.RLIMIT_RTPRIO: int(settings["LimitRTPRIO"][0]),
        # Counted down from 20.
        resource.RLIMIT_NICE: 20 - int(settings["LimitNICE"][0]),
    }
    for limit, value in limits.items():
        # Some containers may not raise limits; then capabilities must suffice.
        with contextlib.suppress(ValueError):
            resource.setrlimit(limit, (value, value))
    ambient = {CAPABILITIES[name] for name in settings["AmbientCapabilities"][0].split()}
    bounding = {CAPABILITIES[name] for name in settings["CapabilityBoundingSet"][0].split()}
    for number in set(range(LAST_CAPABILITY + 1)) - bounding:
        done(_libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0))
    done(_libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    words = [sum(1 << number - 32 * word for number in ambient if number // 32 == word) for word in (0, 1)]
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)(*(word for word in words for _ in range(3)))
    done(_libc.capset(header, sets))
    for number in ambient:
        done(_libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0))
    os.umask(int(settings["UMask"][0], 8))
    done(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def main() -> None:
    unit, root = Path(sys.argv[1]), Path(sys.argv[2])
    settings = read(unit)
    users = (line.split(":") for line in (root / "etc/passwd").read_text().splitlines())
    uid, gid = next((int(one[2]), int(one[3])) for one in users if one[0] == settings["User"][0])
    allowed = filtered(settings)
    lay_out(root, settings, uid, gid)
    os.chroot(root)
    os.chdir("/")
    become(settings, uid, gid)
    allowed.load()
    command = shlex.split(settings["ExecStart"][0])
    state = ":".join(f"/var/lib/{name}" for name in " ".join(settings["StateDirectory"]).split())
    os.execve(command[0], command, {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "STATE_DIRECTORY": state})


if __name__ == "__main__":
    main()
