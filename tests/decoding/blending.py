"""What tests of the blend drafter share: small vocabularies in which tokens 2 k and 2 k + 1 are one word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from hypothesis import strategies as st

from decoding.blend.features import COUNT, FEATURES, MAX_CANDIDATES, featurise
from decoding.blend.scorer import Scorer
from decoding.blend.session import EMITTED, MATCHES, OUTPUT, Session, emit, new_session
from decoding.blend.token_table import WORD, TokenTable
from decoding.drafter import Reference
from indexes.ngram_counts import ORDERS, Array, count_ngrams

VOCABULARY = 8
TABLE = TokenTable(np.full(VOCABULARY, WORD, np.int64), np.arange(VOCABULARY, dtype=np.int64) // 2 * 2)
TEXTS = st.lists(st.lists(st.integers(0, 5), max_size=12), max_size=4)
ANSWER = st.lists(st.integers(0, 5), max_size=12)


def begun(references: Sequence[Sequence[int]], answer: Sequence[int] = (), table: TokenTable = TABLE) -> Session:
    """A session over documents in which `answer` is written."""
    session = new_session([Reference(tuple(text)) for text in references], table, 64)
    emit(session, np.asarray(answer, np.int64))
    return session


def matches(session: Session) -> list[tuple[int, int]]:
    """(place, length) of every match."""
    count = session.cursor[MATCHES]
    return sorted(zip(session.matched[:count].tolist(), session.lengths[:count].tolist(), strict=True))


def by_brute_force(references: Sequence[Sequence[int]], answer: Sequence[int]) -> dict[tuple[int, int], int]:
    """(owner, offset in its text) of each place that matches the answer's end, and how many tokens agree."""
    texts = [*enumerate(references), (OUTPUT, answer[:-1])]
    found = {}
    for owner, text in texts:
        for offset in range(len(text)):
            length = 0
            while (
                length <= offset
                and length < len(answer)
                and TABLE.folded[text[offset - length]] == TABLE.folded[answer[-1 - length]]
            ):
                length += 1
            if length:
                found[owner, offset] = length
    return found


def features_of(
    session: Session, answers: Iterable[Sequence[int]] = (), passages: Iterable[Sequence[int]] = ()
) -> dict[int, dict[str, float]]:
    """The features, by name, of each candidate for the answer's next token."""
    vocabulary = len(session.newest)
    slots = np.full(vocabulary, -1, np.int64)
    out = np.full((MAX_CANDIDATES, COUNT), np.nan, np.float32)
    candidates, places = np.zeros(MAX_CANDIDATES, np.int64), np.zeros(MAX_CANDIDATES, np.int64)
    count = featurise(
        session, session.matched, session.lengths, session.cursor[MATCHES], session.recent,
        min(ORDERS, int(session.cursor[EMITTED])), 0, count_ngrams(answers, vocabulary),
        count_ngrams(passages, vocabulary), slots, candidates, places, out,
    )  # fmt: skip
    assert (slots == -1).all()
    rows = [dict(zip(FEATURES, row, strict=True)) for row in out[:count].tolist()]
    found = dict(zip(candidates[:count].tolist(), rows, strict=True))
    assert len(found) == count
    return found


def scorer_of(weights: dict[str, float], last: float = 0.0) -> Scorer:
    """The scorer that sums named features; each of them must make a positive sum."""
    hidden: Array = np.zeros((1, COUNT), np.float32)
    for name, weight in weights.items():
        hidden[0, FEATURES.index(name)] = weight
    return Scorer(hidden, np.zeros(1, np.float32), np.ones(1, np.float32), np.array([last], np.float32))


def random_scorer(seed: int, units: int = 3) -> Scorer:
    random = np.random.default_rng(seed)
    return Scorer(
        random.normal(0, 1, (units, COUNT)).astype(np.float32), random.normal(0, 1, units).astype(np.float32),
        random.normal(0, 1, units).astype(np.float32), random.normal(0, 1, 1).astype(np.float32),
    )  # fmt: skip
