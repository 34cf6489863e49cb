"""`python -m certificate CERTIFICATE [TEST]`: the checker by itself."""

from __future__ import annotations

import sys
from pathlib import Path

from .checking import check
from .reading import UnreadableError

NOT_READABLE = 2


def main(arguments: list[str]) -> int:
    """Prints what is proved; returns the exit code."""
    if not 1 <= len(arguments) <= 2:
        sys.stderr.write("usage: python -m certificate CERTIFICATE [TEST]\n")
        return NOT_READABLE
    try:
        found = check(*map(Path, arguments))
    except UnreadableError as error:
        sys.stderr.write(f"{arguments[0]}: {error}\n")
        return NOT_READABLE
    sys.stdout.writelines(f"{line}\n" for line in found.lines())
    return found.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
