"""Files sent to the browser within an event's reply: no address is made at which anybody else could fetch them."""

from __future__ import annotations

import base64
import secrets
from typing import Any

from app.documents.uploads import Original
from indexes.errors import SettingError

MOST_BYTES = 50 * 2**20


def text_download(name: str, text: str) -> dict[str, Any]:
    """A text for the browser to save."""
    return _file(name, "text/plain", text.encode("utf-8", "replace"), False)


def original_download(original: Original, page: int | None) -> dict[str, Any]:
    """An uploaded file, to be opened at a page if it is a PDF, else to be saved. Raises SettingError if too large."""
    try:
        size = original.path.stat().st_size
        if size > MOST_BYTES:
            raise SettingError(f"{original.name} is larger than {MOST_BYTES // 2**20} MB: open it where you have it")
        data = original.path.read_bytes()
    except OSError as error:
        raise SettingError(f"{original.name} cannot be read ({error.strerror}); upload it again") from error
    return _file(original.name, original.media_type, data, original.inline) | {"page": page or 1}


def _file(name: str, media_type: str, data: bytes, inline: bool) -> dict[str, Any]:
    """What the page's script makes a file of; the key tells two equal files apart, which both are wanted."""
    encoded = base64.b64encode(data).decode("ascii")
    return {"name": name, "type": media_type, "base64": encoded, "inline": inline, "key": secrets.token_hex(4)}
