"""Who may ask: API keys, the Host and Origin of requests, and how slowly a body may arrive.

Web pages must not reach a server on this machine through somebody's browser: a page's requests carry its Origin, and a
page whose name is made to mean 127.0.0.1 (DNS rebinding) sends that name as the Host. All of it is decided before
any of the body is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import error_response
from app.api.reach import is_loopback

OPEN_PATHS = ("/healthz", "/openapi.json")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
BODY_TIMEOUT_S = 60.0


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _host_of(authority: str) -> str | None:
    """The name in a Host header or an origin, without its port; None if there is none."""
    try:
        return urlsplit(authority if "://" in authority else f"//{authority}").hostname
    except ValueError:
        return None


def _announced_bytes(headers: Headers) -> int:
    """The length that a body says it has; bodies that say none are counted while they are read."""
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0


@dataclass(frozen=True, slots=True)
class Access:
    """What is let in. keys are digests, none: everybody; hosts are the names that the server answers to, None: all;
    origins are those of web pages elsewhere that may ask (CORS); pages are whether paths outside /v1/ are a page's."""

    keys: tuple[bytes, ...]
    hosts: frozenset[str] | None
    origins: frozenset[str]
    pages: bool = False

    def person(self, authorization: str | None) -> str | None:
        """Who sends this header: a name for the key, or "" where none is needed; None: nobody who may ask.

        Takes as long for a wrong key as for a right one.
        """
        if not self.keys:
            return ""
        scheme, _, key = (authorization or "").partition(" ")
        given = _digest(key.strip().encode("latin-1"))  # as headers are decoded
        matches = [hmac.compare_digest(given, known) for known in self.keys]
        return f"key:{given.hex()[:32]}" if any(matches) and scheme.lower() == "bearer" else None

    def protects(self, path: str) -> bool:
        """Whether a path needs a key: all do but a few, and a page's."""
        return path not in OPEN_PATHS and not (self.pages and not path.startswith("/v1/"))

    def refusal(self, path: str, headers: Headers) -> tuple[int, str] | None:
        """Why a request is not let in, as status and message; keys apart."""
        host, origin = headers.get("host", ""), headers.get("origin")
        name = _host_of(host)
        if self.hosts is not None and name not in self.hosts:
            return 403, (
                f"this server does not answer to the Host {host!r}; use one of {', '.join(sorted(self.hosts))}, "
                "or name it in the setting allowed_hosts"
            )
        if origin is not None and origin not in self.origins:
            same = urlsplit(origin).netloc == host if _host_of(origin) else False
            named = self.hosts is not None and _host_of(origin) in self.hosts - set(LOCAL_NAMES)
            if not (same or named):
                return 403, f"web pages of {origin!r} may not ask this server; name them in the setting cors_origins"
        return None


def make_access(
    host: str, keys: Sequence[str], allowed_hosts: Sequence[str], origins: Sequence[str], pages: bool = False
) -> Access:
    """What a server bound to `host` lets in. On this machine alone only local names are its Host; elsewhere every name,
    unless `allowed_hosts` are given."""
    local = {*LOCAL_NAMES, host.lower()} if is_loopback(host) else set()
    names = {name.lower() for name in allowed_hosts} | local
    digests = tuple(_digest(key.encode("utf-8", "surrogateescape")) for key in keys)
    return Access(digests, frozenset(names) or None, frozenset(origins), pages)


class Gate:
    """The middleware: refuses, or notes in the request's state who asks."""

    def __init__(self, app: ASGIApp, access: Access, most_bytes: int, body_timeout_s: float = BODY_TIMEOUT_S) -> None:
        self._app = app
        self._access = access
        self._most_bytes = most_bytes
        self._body_timeout_s = body_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), scope["path"]
        if refused := self._access.refusal(path, headers):
            await error_response(refused[1], refused[0])(scope, receive, send)
            return
        scope.setdefault("state", {})["person"] = person = self._access.person(headers.get("authorization"))
        if not self._access.protects(path):
            await self._app(scope, receive, send)
        elif person is None and not (scope["method"] == "OPTIONS" and self._access.origins):  # preflights carry no keys
            message = "this server needs an API key: send the header Authorization: Bearer KEY with a key that it knows"
            await error_response(message, 401, headers={"WWW-Authenticate": "Bearer"})(scope, receive, send)
        elif _announced_bytes(headers) > self._most_bytes:
            message = f"the body has more than {self._most_bytes} bytes; send less"
            await error_response(message, 413, headers={"Connection": "close"})(scope, receive, send)
        else:
            await self._app(scope, self._timed(receive), send)

    def _timed(self, receive: Receive) -> Receive:
        """`receive` whose body has to be there in time; afterwards it waits as long as it takes."""
        deadline = asyncio.get_running_loop().time() + self._body_timeout_s
        whole = False

        async def timed() -> Message:
            nonlocal whole
            try:
                async with asyncio.timeout_at(None if whole else deadline):
                    message = await receive()
            except TimeoutError:
                slow = f"the body did not arrive within {self._body_timeout_s:g} s; send it faster"
                raise HTTPException(408, slow) from None
            whole = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        return timed
