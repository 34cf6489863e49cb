"""The join code that an agent prints and a user types once: it identifies the agent and proves authorisation.

32 characters of Crockford's base 32: the first 80 bits of the SHA-256 of the agent's certificate, and 80 bits of a
secret; see `crates/agent/src/remote/join_code.rs`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

from wiregauge.runner.lab.errors import LabError

__all__ = ["JoinCode"]

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LOOKS_LIKE: Final = str.maketrans({"O": "0", "I": "1", "L": "1", "-": None, " ": None})
_HALF: Final = 10
_CHARACTERS: Final = 32


@dataclass(frozen=True, slots=True)
class JoinCode:
    """A join code."""

    fingerprint: bytes
    secret: bytes = field(repr=False)

    @classmethod
    def read(cls, text: str) -> JoinCode:
        """Parses a join code. Raises LabError where it is invalid."""
        letters = text.upper().translate(_LOOKS_LIKE)
        if len(letters) != _CHARACTERS or not set(letters) <= set(_ALPHABET):
            raise LabError(
                "this is no join code: it has 32 letters and digits in groups of four, "
                "as `wiregauge agent serve` prints it"
            )
        number = 0
        for letter in letters:
            number = number << 5 | _ALPHABET.index(letter)
        whole = number.to_bytes(2 * _HALF, "big")
        return cls(whole[:_HALF], whole[_HALF:])

    def is_of(self, certificate: bytes) -> bool:
        """Whether the agent with this certificate (DER) printed it."""
        return hashlib.sha256(certificate).digest()[:_HALF] == self.fingerprint
