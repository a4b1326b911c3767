"""Serves an application on an address until Ctrl-C; the engine's models load meanwhile.

Ctrl-C cancels the answers that are being written, so that the process ends after their current forward pass.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from app.commands.terminal import say
from indexes.errors import SettingError

GRACE_S = 5  # for replies to be sent after Ctrl-C
CONNECTIONS_WAITING = 128


class _Server(uvicorn.Server):
    """uvicorn's, which says when it is asked to stop: it waits for replies, and they for the model."""

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # of connections that are cut now
        await super().shutdown(sockets)


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that takes connections already. Raises SettingError if the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS_WAITING)
    except (OSError, UnicodeError) as error:
        raise SettingError(f"cannot serve on {host}:{port} ({error}); choose another port with --port") from error


def address(listening: socket.socket) -> str:
    """The address for people and programs."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(application: FastAPI, listening: socket.socket, load: Callable[[], None]) -> None:
    """Serve on a socket until Ctrl-C, and `load` meanwhile."""
    config = uvicorn.Config(
        application,
        http="h11",  # this and the loop are what is tested, whatever faster ones are installed
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody's word on who asks is taken
        timeout_graceful_shutdown=GRACE_S,
    )
    say(f"Quotewright is on {address(listening)} (Ctrl-C stops it)")
    loading = threading.Thread(target=load, daemon=True)
    loading.start()
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again when everything is closed
        _Server(config, application.state.stop).run(sockets=[listening])
    say("Stopped.")
    if loading.is_alive():
        os._exit(0)  # taking libraries down under a thread that loads a model ends in an abort
