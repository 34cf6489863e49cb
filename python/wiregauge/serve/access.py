"""Who may look: checks on every request, and headers on every answer.

The server listens on loopback only, yet every user of the machine and every page in the browser can connect to that.
So the name in `Host` must be ours (a foreign name that resolves to this machine is refused), a page of another origin
gets nothing, and where there is a token every address begins with it. The token is in the path, not in a cookie: the
browser sends a cookie of 127.0.0.1 to every port of it, whoever listens there.
"""

from __future__ import annotations

import os
import pwd
import secrets
from collections.abc import Mapping
from hmac import compare_digest
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CONTENT_POLICY", "Access", "is_shared", "new_token"]

CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page of the server may load, run and send: nothing that is not the server's own."""
_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_READING: Final = ("GET", "HEAD")
_FIRST_UID, _LAST_UID = 1000, 60_000
"""Accounts of people, as distributions number them."""
_NO_SHELL: Final = ("nologin", "false", "sync")


def new_token() -> str:
    """A token of 192 bits."""
    return secrets.token_urlsafe(24)


def is_shared() -> bool:
    """Whether other people have accounts on this machine."""
    own = os.getuid()
    return any(
        account.pw_uid != own
        and _FIRST_UID <= account.pw_uid < _LAST_UID
        and account.pw_shell.rsplit("/", 1)[-1] not in _NO_SHELL
        for account in pwd.getpwall()
    )


class Access:
    """Lets only requests through that may be answered; `token` None: every address is open to this machine."""

    def __init__(self, app: ASGIApp, *, port: int, token: str | None = None) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or refuses it with a sentence."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, with_headers)
            return
        if self._token is not None:
            scope = {**scope, "root_path": f"{scope.get('root_path', '')}/{self._token}"}
        await self._app(scope, receive, with_headers)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host") not in self._hosts:
            return PlainTextResponse("This address is not the server's own.\n", 421)
        reads = scope["method"] in _READING
        origin = headers.get("origin")
        if (origin is not None and origin not in self._origins) or (origin is None and not reads):
            return PlainTextResponse("A page of another origin gets nothing.\n", 403)
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            # A link in a mail may lead here; what it leads to cannot be read by where it stands.
            led = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
            if not (reads and led):
                return PlainTextResponse("A page of another origin gets nothing.\n", 403)
        if self._token is not None:
            first = scope["path"].lstrip("/").partition("/")[0]
            if not compare_digest(first.encode("utf-8", "surrogateescape"), self._token.encode()):
                return PlainTextResponse(
                    "The address needs its token: open the one that `wiregauge serve` printed.\n", 403
                )
        return None
