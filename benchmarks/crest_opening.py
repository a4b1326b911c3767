"""What a CREST datastore costs a process that opens it: time, resident memory, and time per look-up.

Contexts are n-grams that the datastore holds, drawn evenly from its buckets, each behind tokens drawn at random: so a
look-up tries every longer n in vain first. They are looked up in a fresh process that imports nothing but the store,
once to warm the page cache, unmeasured, in another such process.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.resident import resident_bytes
from indexes.corpus import decode_ids, id_bytes
from indexes.crest import BUCKETS, KIND, RECORDS, CrestStore
from indexes.datastore import Opened, open_store, read_store, size_bytes

ROOT = Path(__file__).parents[1]
SEED = 0


def run(folder: Path, lookups: int) -> dict[str, Any]:
    """The figures of one datastore. Raises IndexStoreError for what is none, or is of another kind."""
    from benchmarks.conditions import conditions  # not for the fresh process: it imports torch

    opened = open_store(folder, KIND, str(read_store(folder).values.get("tokenizer_hash")))
    asked = json.dumps([str(folder.resolve()), opened.values["tokenizer_hash"], _contexts(opened, lookups)])
    for _ in range(2):  # the first run warms the page cache
        command = [sys.executable, "-m", "benchmarks.crest_opening"]
        done = subprocess.run(command, cwd=ROOT, input=asked, check=True, stdout=subprocess.PIPE, text=True)
    line = {"datastore": folder.name, "bytes": size_bytes(folder), "entries": opened.values["entries"]}
    return {"conditions": conditions(lookups=lookups, seed=SEED), "stores": [line | json.loads(done.stdout)]}


def _contexts(opened: Opened, count: int) -> list[list[int]]:
    """n-grams of the datastore, behind random tokens, `max_ngram` tokens each."""
    vocabulary, longest = opened.values["vocabulary"], opened.values["max_ngram"]
    width, draw = id_bytes(vocabulary), random.Random(SEED)
    buckets, records = opened.map(BUCKETS), opened.map(RECORDS)
    contexts: list[list[int]] = []
    while len(contexts) < count:
        low, high = struct.unpack_from("<II", buckets, 4 * draw.randrange(len(buckets) // 4 - 1))
        found = []
        while low < high:
            nodes, n = records[low], records[low + 1]
            found.append((decode_ids(records[low + 2 : low + 2 + n * width], width) - 1).tolist())
            low += 2 + n * width + nodes * (width + 1)
        if found:
            ngram = draw.choice(found)
            contexts.append([draw.randrange(vocabulary) for _ in range(longest - len(ngram))] + ngram)
    return contexts


def measure(folder: Path, hashed: str, contexts: list[list[int]]) -> dict[str, float]:
    """Open, look everything up, and say what that took."""
    took = [0.0] * len(contexts)
    before, began = resident_bytes(), time.perf_counter()
    store = CrestStore(folder, hashed)
    opened = time.perf_counter()
    found = 0
    for index, context in enumerate(contexts):
        asked = time.perf_counter()
        found += store.lookup(context)[0] > 0
        took[index] = time.perf_counter() - asked
    added = resident_bytes() - before
    took.sort()
    return {
        "open_ms": round(1000 * (opened - began), 2),
        "rss_added_mb": round(added / 10**6, 2),
        "lookup_us_median": round(1e6 * took[len(took) // 2], 1),
        "lookup_us_p99": round(1e6 * took[int(0.99 * (len(took) - 1))], 1),
        "found": round(found / len(took), 4),
    }


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps(measure(Path(given[0]), *given[1:])))
