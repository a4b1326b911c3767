"""CREST's datastore (crest sec. 4): a hash map on disk from an n-gram to its token tree, read in constant time.

Two files. `buckets`, memory-mapped, holds where each bucket of `records` begins (32 bits); an n-gram's bucket is the
upper part of its 64-bit hash. One bucket of `records` is read at a time, in place: a read costs a third of a page
fault, and leaves no pages mapped that would count as this process's memory. A record is plain bytes, and holds the
n-gram itself, so that no other's tree can be taken for it:

    number of nodes, n | the n-gram | the nodes' tokens | one byte per node: (parent + 1) << 2 | halvings

Tokens are ids plus one in 2 or 3 bytes (indexes/corpus.py). `halvings` says how many times (0 to 3) the node's
probability is half the one before it. Nothing is trusted: what a lookup reads it validates. Knows neither drafters
nor how a store is built.
"""

from __future__ import annotations

import hashlib
import os
import struct
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from indexes.corpus import MAX_VOCABULARY, decode_ids, encode_ids, id_bytes, known_end
from indexes.datastore import open_store
from indexes.prefix_tree import NO_TREE, TokenTree

KIND = "crest"
BUCKETS, RECORDS = "buckets", "records"
MAX_NODES = 63  # 6 bits hold parents -1 to 62
MAX_NGRAM = 16
MAX_DEPTH = 64
PER_BUCKET = 8  # records, on average
MAX_BUCKET_BYTES = 2**16  # a longer bucket is no store of ours
MAX_HALVINGS = 3

_RANGE = struct.Struct("<II")
_HASH = struct.Struct(">Q")


def key_hash(key: bytes) -> int:
    """The 64-bit hash of an n-gram's bytes; no text can be made so that its n-grams share a bucket by chance."""
    return int(_HASH.unpack(hashlib.blake2b(key, digest_size=8).digest())[0])


def pack_record(key: bytes, tree: TokenTree, width: int) -> bytes:
    """The bytes of an n-gram with its tree, at most MAX_NODES nodes."""
    return bytes((len(tree), len(key) // width)) + key + pack_tree(tree, width)


def pack_tree(tree: TokenTree, width: int) -> bytes:
    """The bytes of a tree: tokens, then links."""
    links, last = bytearray(), 0  # the last node's probability is 2 ** -last
    wanted = np.rint(-np.log2(tree.probs)).astype(np.int64).tolist()
    for parent, halved in zip(tree.parents.tolist(), wanted, strict=True):
        step = min(max(halved - last, 0), MAX_HALVINGS)
        last += step
        links.append((parent + 1) << 2 | step)
    return encode_ids(tree.tokens, width) + bytes(links)


class CrestStore:
    """Opens a datastore written by `build_crest`; usable from any thread.

    Opening reads the manifest only. Raises IndexStoreError, DamagedIndexError.
    """

    def __init__(self, folder: Path, tokenizer_hash: str) -> None:
        self._opened = opened = open_store(folder, KIND, tokenizer_hash)
        self.vocabulary = opened.number("vocabulary", 1, MAX_VOCABULARY)
        self.max_ngram = opened.number("max_ngram", 1, MAX_NGRAM)
        self.depth = opened.number("depth", 1, MAX_DEPTH)
        self._width = id_bytes(self.vocabulary)
        self._bound = np.array(self.vocabulary, np.uint64)  # compared with more quickly than a Python number
        self._buckets, self._records = opened.map(BUCKETS), opened.open(RECORDS)
        self.close = weakref.finalize(self, os.close, self._records)
        self._length = os.fstat(self._records).st_size
        self._count = len(self._buckets) // 4 - 1
        if self._count < 1 or len(self._buckets) % 4:
            raise opened.damaged(f"{BUCKETS} has {len(self._buckets)} bytes, which are no bounds")

    def lookup(self, context: Sequence[int]) -> tuple[int, TokenTree]:
        """The longest stored n-gram that the context ends with: its n, and its tree; (0, no tree) if there is none.

        Raises DamagedIndexError for contents that cannot be.
        """
        width, end = self._width, known_end(context, self.max_ngram, self.vocabulary)
        key = b"".join([(token + 1).to_bytes(width, "big") for token in end])
        for start in range(0, len(key), width):
            if (tree := self.tree_of(key[start:])) is not None:
                return (len(key) - start) // width, tree
        return 0, NO_TREE

    def tree_of(self, key: bytes) -> TokenTree | None:
        """The tree of exactly this n-gram, given as bytes."""
        bucket = key_hash(key) * self._count >> 64
        low, high = _RANGE.unpack_from(self._buckets, 4 * bucket)
        if not low <= high <= self._length or high - low > MAX_BUCKET_BYTES:
            raise self._opened.damaged(f"bucket {bucket} reaches from {low} to {high} of {self._length} bytes")
        data, width, at = os.pread(self._records, high - low, low), self._width, 0
        wanted = bytes((len(key) // width,)) + key
        if wanted not in data:
            return None
        while at + 2 < len(data):
            nodes, n = data[at], data[at + 1]
            tree = at + 2 + n * width
            after = tree + nodes * (width + 1)
            if not (0 < n <= self.max_ngram and 0 < nodes <= MAX_NODES and after <= len(data)):
                break
            if data[at + 1 : tree] == wanted:
                return self._tree(data[tree:after], nodes, bucket)
            at = after
        if at != len(data):
            raise self._opened.damaged(f"bucket {bucket} holds a record that cannot be")
        return None

    def _tree(self, data: bytes, nodes: int, bucket: int) -> TokenTree:
        tokens = decode_ids(data[: nodes * self._width], self._width) - 1
        links = np.frombuffer(data, np.uint8, nodes, nodes * self._width)
        # As unsigned numbers negative ids are too great as well. count_nonzero is the quickest way to ask.
        if np.count_nonzero(tokens.view(np.uint64) >= self._bound) or np.count_nonzero(links >= _TOO_LATE[:nodes]):
            raise self._opened.damaged(f"bucket {bucket} holds a tree that is none, or ids outside the vocabulary")
        return TokenTree(tokens, _PARENTS.take(links), np.multiply.accumulate(_SHARES.take(links)))


_TOO_LATE = (4 * np.arange(1, MAX_NODES + 1)).astype(np.uint8)  # the least link of each node that is wrong
_PARENTS = (np.arange(256) >> 2) - 1
_SHARES = 0.5 ** (np.arange(256) & MAX_HALVINGS)
