"""Names a tokenizer by what it does: a datastore holds token ids, which mean nothing to another one."""

from __future__ import annotations

import hashlib
import json
from typing import Any

STATE = ("truncation", "padding", "version")  # how it was called last, not which tokens it makes


def tokenizer_hash(tokenizer: Any) -> str:
    """The SHA-256 of a Hugging Face tokenizer's vocabulary, merges, added tokens and rules, as hexadecimal digits.

    A tokenizer without a serialisable backend is named by its vocabulary alone.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        described: Any = sorted(tokenizer.get_vocab().items())
    else:
        described = json.loads(backend.to_str())
        for key in STATE:
            described.pop(key, None)
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode("ascii")).hexdigest()
