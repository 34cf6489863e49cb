"""Checks whether external programs, and AF_XDP sockets, that parts of the instrument need are available."""

from __future__ import annotations

import errno
import shutil
import socket
from collections.abc import Callable
from typing import Any

__all__ = ["programs_here"]

_PROGRAMS = (
    ("ptp4l", "synchronised clocks (PTP)", "apt install linuxptp"),
    ("phc2sys", "synchronised clocks (PTP)", "apt install linuxptp"),
    ("chronyc", "what chrony says of the clocks", "apt install chrony"),
    ("tshark", "reading captures with the dissector", "apt install tshark"),
)
_AF_XDP = 44
"""The address family; Python's socket module has no name for it."""


def programs_here(which: Callable[[str], str | None] = shutil.which) -> list[dict[str, Any]]:
    """The programs: each with `name`, whether it is `found`, what it is `for`, its path as `detail`, and the `cure`."""
    found = []
    for name, use, cure in _PROGRAMS:
        place = which(name)
        found.append(
            {
                "name": name,
                "found": place is not None,
                "for": use,
                "detail": place or "",
                "cure": "" if place else cure,
            }
        )
    wrong, cure = _xdp()
    return [
        *found,
        {
            "name": "AF_XDP",
            "found": not wrong,
            "for": "the sender backends xdp and xdp-live",
            "detail": wrong,
            "cure": cure,
        },
    ]


def _xdp() -> tuple[str, str]:
    """The reason why an AF_XDP socket cannot be opened, and the cure; empty where it can."""
    try:
        socket.socket(_AF_XDP, socket.SOCK_RAW, 0).close()
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            return error.strerror or str(error), "run as root, or give the program CAP_NET_RAW and CAP_BPF"
        return error.strerror or str(error), "a kernel with CONFIG_XDP_SOCKETS; --backend packet needs none"
    return "", ""
