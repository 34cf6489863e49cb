"""The Wireshark dissector for messages, ARINC 664 and protocol control frames, in Wireshark's own terms.

It is one Lua file, which Wireshark loads on any system without a compiler.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

from wiregauge.files import write_whole

__all__ = ["NAME", "DissectorError", "install", "text"]

NAME = "wiregauge.lua"
_SECONDS = 30.0
_USUAL = Path("~/.local/lib/wireshark/plugins")


class DissectorError(Exception):
    """The dissector cannot be installed; the text says why and what to do."""


def text() -> str:
    """The dissector's Lua code."""
    return files(__name__).joinpath(NAME).read_text(encoding="utf-8")


def install() -> Path:
    """Installs the dissector in the user's Wireshark folder; returns the file. An older one is replaced."""
    folder = _plugin_folder()
    target = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(target, text())
    except OSError as error:
        raise DissectorError(f"{target}: cannot be written: {error.strerror}") from error
    return target


def _plugin_folder() -> Path:
    """The plugin folder reported by the installed Wireshark; without one, the usual one on Linux."""
    tshark = shutil.which("tshark")
    if tshark is not None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            answer = subprocess.run(
                [tshark, "-G", "folders"], capture_output=True, text=True, check=False, timeout=_SECONDS
            )
            found = re.search(r"^Personal Lua Plugins:\s*(\S.*)$", answer.stdout, re.MULTILINE)
            if found is not None:
                return Path(found[1].strip())
    return _USUAL.expanduser()
