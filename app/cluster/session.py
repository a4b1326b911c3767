"""Ray itself: started on this machine for one command, or a running cluster that the command joins.

What is started here listens on this machine's loopback only, lets in who has its token, keeps its files in a folder of
its own, and ends with the command. The token goes by the environment: command lines and logs do not hold it.
Knows nothing of what is done on it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import secrets
import shutil
import socket
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexes.errors import ClusterError, SettingError

RAY = "ray"  # its name as an --engine
INSTALL = "python -m pip install -r requirements-ray.txt"
LOOPBACK = "127.0.0.1"
ANSWERS_WITHIN_S = 10.0
PROJECT = str(Path(__file__).parents[2])  # where workers find us, too
LOOPBACKS = (LOOPBACK, "localhost", "::1", "[::1]")
# A folder of our own, because Ray's usual one can be read by everybody on the machine. Sockets lie in it, whose paths
# are limited to about 100 characters; some systems' folders for temporary files are too long for that.
TEMPORARY = "/tmp" if os.name == "posix" else None
AUTH_MODE, TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"
NOTHING_SENT = {"RAY_USAGE_STATS_ENABLED": "0"}
NOT_NICE = {"RAY_worker_niceness": "0"}  # it would have workers wait for all else that the machine does
# Ray takes the address of the first network card for its own, even when told to be at 127.0.0.1, and then listens on
# all of them, unless it thinks that this is one of the systems where clusters are not meant to be.
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


@dataclass(frozen=True, slots=True)
class RayChoice:
    """What somebody chose: `address` is a running cluster's, HOST:PORT or auto; None: Ray of our own, here.

    actors is how many are to work; None: as many as fit.
    """

    address: str | None = None
    actors: int | None = None


def ray_choice(engine: str | None, address: str | None, actors: int | None) -> RayChoice | None:
    """The choice that a command's options make; None: no Ray. Raises SettingError for options that it alone has."""
    if engine == RAY:
        return RayChoice(address, actors)
    for option, value in {"--ray-address": address, "--actors": actors}.items():
        if value is not None:
            raise SettingError(f"{option} {value} is for --engine ray; add that, or leave {option} out")
    return None


@contextlib.contextmanager
def ray_session(address: str | None, say: Callable[[str], None]) -> Iterator[None]:
    """Ray, for as long as the block lasts.

    Raises SettingError if it is not installed or the address is none, ClusterError if it cannot be had.
    """
    if importlib.util.find_spec("ray") is None:
        raise SettingError(f"--engine ray needs Ray, which is not installed; install it with: {INSTALL}")
    if address is not None and address != "auto" and ("://" in address or not address.rpartition(":")[2].isdecimal()):
        raise SettingError(f"--ray-address is {address!r}; give HOST:PORT or auto, on one of the cluster's machines")
    say("Starting Ray on this machine" if address is None else f"Joining the Ray cluster at {address}")
    with _own() if address is None else _joined(address):
        yield


@contextlib.contextmanager
def _own() -> Iterator[None]:
    """Ray of our own on this machine."""
    folder = tempfile.mkdtemp(prefix="quotewright-ray-", dir=TEMPORARY)
    secret = {AUTH_MODE: "token", TOKEN: secrets.token_hex(32)}
    try:
        with _environment(NOTHING_SENT | NOT_NICE | ON_LOOPBACK | secret):
            import ray

            options = {"include_dashboard": False, "_node_ip_address": LOOPBACK, "_temp_dir": folder}
            with _running("local", options, "Ray could not be started here"):
                at = ray.get_runtime_context().gcs_address
                if at.rpartition(":")[0] != LOOPBACK:
                    raise ClusterError(
                        f"Ray would listen at {at}, beyond this machine, so it was ended; "
                        "import Quotewright's app.cluster.session before Ray"
                    )
                yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _joined(address: str) -> Iterator[None]:
    """A running cluster, of which this machine is one. Its token is where Ray looks for it."""
    host, _, port = address.rpartition(":")
    if host:
        _reach(host.strip("[]"), int(port))
    here = ON_LOOPBACK if host in LOOPBACKS else {}
    mode = {AUTH_MODE: os.environ.get(AUTH_MODE, "token")}
    failure = (
        f"the Ray cluster at {address} could not be joined: this machine must be part of it, with the same "
        "version of Ray, and have its token in RAY_AUTH_TOKEN, in the file that RAY_AUTH_TOKEN_PATH names, or in "
        "~/.ray/auth_token"
    )
    with _environment(NOTHING_SENT | here | mode), _running(address, {}, failure):
        yield


def _reach(host: str, port: int) -> None:
    """Find out at once whether anything is there; Ray tries for minutes. Raises ClusterError."""
    try:
        socket.create_connection((host, port), ANSWERS_WITHIN_S).close()
    except OSError as error:
        raise ClusterError(f"there is no Ray cluster at {host}:{port} ({error}); give another --ray-address") from error


@contextlib.contextmanager
def _running(address: str, options: dict[str, Any], failure: str) -> Iterator[None]:
    """Ray, started or joined."""
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # it reports each step, and what we handle as errors
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ray.util.annotations.RayDeprecationWarning)
        try:
            found = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, (PROJECT, os.environ.get("PYTHONPATH"))))}}
            ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL, runtime_env=found, **options)
        except Exception as error:  # it raises whatever its parts do
            raise ClusterError(f"{failure} ({type(error).__name__}: {error})") from error
        try:
            yield
        finally:
            ray.shutdown()


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """These environment variables, in here and in the processes started in here."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
