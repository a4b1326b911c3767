"""Who can reach an address, and whether that is meant: said before anything is loaded."""

from __future__ import annotations

import ipaddress

from indexes.errors import SettingError


def check_reach(host: str, keys: bool, page: bool, open_to_all: bool) -> None:
    """Raises SettingError where other machines could ask and nobody said that they may."""
    if is_loopback(host) or open_to_all:
        return
    if not keys:
        raise SettingError(
            f"{host} can be reached from other machines: set keys (QUOTEWRIGHT_API_KEYS=key1,key2), or say --open"
        )
    if page:
        raise SettingError(
            f"{host} can be reached from other machines, and the page asks for no key: say --auth, --no-page or --open"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
