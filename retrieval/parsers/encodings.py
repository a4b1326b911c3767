"""Bytes to text, in whatever encoding people's files are."""

from __future__ import annotations

import codecs

import charset_normalizer

from indexes.errors import DocumentError

BOMS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16"} | {
    codecs.BOM_UTF16_BE: "utf-16"  # UTF-32 first: its little-endian mark begins with UTF-16's
}
CONTROLS = bytes(set(range(32)) - set(b"\b\t\n\v\f\r\x1a\x1b"))


def decode(data: bytes) -> str:
    """The text of these bytes. Raises DocumentError for what is no text."""
    for mark, encoding in BOMS.items():
        if data.startswith(mark):
            return data.decode(encoding)
    refuse_binary(data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        high = sum(byte > 127 for byte in data[:256])
        if len(data) < 256 and high * 3 < len(data):  # too short to guess from: Western, as most such files are
            return data.decode("cp1252", "replace")
        best = charset_normalizer.from_bytes(data).best()
        if best is None:
            raise DocumentError("binary, or in an unknown encoding") from None
        return str(best)


def refuse_binary(data: bytes) -> None:
    """Raise DocumentError for bytes that are no text of one byte a character, nor UTF-8."""
    if b"\0" in data or len(data.translate(None, CONTROLS)) < 0.95 * len(data):
        raise DocumentError("binary, not text")
