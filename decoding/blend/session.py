"""The texts of one answer as flat arrays, and the matches of its end in them.

References stand one after another, then the answer as it grows. A match is a place whose token is, spelling aside, the
answer's last token; its length is how many tokens before agree too. Matches never reach over a reference's edge, and
the answer's end is no match of itself, for nothing follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from decoding.blend.token_table import TokenTable
from decoding.drafter import Reference
from indexes.compiled import compiled
from indexes.ngram_counts import ORDERS, Array

MAX_MATCHES = 512
OUTPUT = -1  # the owner of the answer's own tokens
LENGTH, MATCHES, POINTER, EMITTED = range(4)  # what `cursor` holds
QUESTION_TOKENS = 64  # a longer one is an instruction with its text, not a question
_NEAR = 30


class Session(NamedTuple):
    """Everything known while one answer is written.

    tokens, owner, end, rank, relevance, previous  (T,) per place: its token, its reference (OUTPUT for the answer),
                  where that ends, the reference's rank, closeness to words of the question in [0, 1], and the place
                  before it with the same folded token
    newest        (V,) the last place of each folded token, -1 if none
    kinds, folded (V,) the token table
    in_question, in_documents, in_answer  (V,) how often each token stands there
    trust         (R + 1,) how much of the answer so far came from each reference, newest words weighing most
    matched, lengths  (MAX_MATCHES,) the matches of the answer's end
    recent        (4,) the answer's last tokens, newest first
    cursor        (4,) LENGTH of the texts, number of MATCHES, POINTER to the last long match (-1), EMITTED tokens
    """

    tokens: Array
    owner: Array
    end: Array
    rank: Array
    relevance: Array
    previous: Array
    newest: Array
    kinds: Array
    folded: Array
    in_question: Array
    in_documents: Array
    in_answer: Array
    trust: Array
    matched: Array
    lengths: Array
    recent: Array
    cursor: Array


def new_session(references: Sequence[Reference], table: TokenTable, room: int = 1024) -> Session:
    """Lay out the references, leaving `room` for the answer. Tokens outside the vocabulary are left out."""
    vocabulary = len(table)
    texts = [np.asarray(reference.tokens, np.int64).reshape(-1) for reference in references]
    texts = [text[(text >= 0) & (text < vocabulary)] for text in texts]
    total = sum(map(len, texts))
    size = total + room
    session = Session(
        tokens=np.zeros(size, np.int64), owner=np.full(size, OUTPUT, np.int64), end=np.full(size, size, np.int64),
        rank=np.zeros(size, np.float32), relevance=np.zeros(size, np.float32), previous=np.full(size, -1, np.int64),
        newest=np.full(vocabulary, -1, np.int64), kinds=table.kinds, folded=table.folded,
        in_question=np.zeros(vocabulary, np.float32), in_documents=np.zeros(vocabulary, np.float32),
        in_answer=np.zeros(vocabulary, np.float32), trust=np.zeros(len(texts) + 1, np.float32),
        matched=np.zeros(MAX_MATCHES, np.int64), lengths=np.zeros(MAX_MATCHES, np.int64),
        recent=np.full(ORDERS, -1, np.int64), cursor=np.array([total, 0, -1, 0], np.int64),
    )  # fmt: skip
    weights = _question_weights(references, texts, session)
    ranks = _ranks(references)
    start = 0
    for index, text in enumerate(texts):
        here = slice(start, start + len(text))
        session.tokens[here], session.owner[here] = text, index
        session.end[here], session.rank[here] = start + len(text), ranks[index]
        if references[index].kind != "question" and len(text):
            np.add.at(session.in_documents, text, 1)
            session.relevance[here] = _smoothed(weights[table.folded[text]])
        start += len(text)
    session.relevance[:] /= session.relevance.max(initial=0) + 1e-6
    _link(session, total)
    return session


def _ranks(references: Sequence[Reference]) -> Array:
    """The rank of each reference: documents by score, ties as given, then the others; 10 is the last."""
    order = sorted(range(len(references)), key=lambda at: (references[at].kind != "document", -references[at].score))
    ranks = np.empty(len(references), np.float32)
    ranks[order] = np.minimum(np.arange(len(references)), 10)
    return ranks


def _question_weights(references: Sequence[Reference], texts: list[Array], session: Session) -> Array:
    """(V,) weight of each folded token of the question: the rarer in the references, the more. Marks them too."""
    weights = np.zeros(len(session.newest), np.float32)
    documents = [
        np.unique(session.folded[text])
        for text, reference in zip(texts, references, strict=True)
        if reference.kind != "question"
    ]
    for text, reference in zip(texts, references, strict=True):
        if reference.kind == "question" and len(text) <= QUESTION_TOKENS:
            session.in_question[text] = 1
            for token in np.unique(session.folded[text]):
                holding = sum(token in document for document in documents)
                weights[token] = np.log((len(documents) + 1) / (holding + 0.5)).clip(0.1)
    return weights


def _smoothed(weights: Array) -> Any:
    """Each place's weight spread over its neighbours, halving every seven tokens."""
    kernel = np.exp(-np.abs(np.arange(-_NEAR, _NEAR + 1)) / 10)
    return np.convolve(weights, kernel)[_NEAR : _NEAR + len(weights)]


@compiled()
def _link(session: Session, total: int) -> None:
    for place in range(total):
        form = session.folded[session.tokens[place]]
        session.previous[place] = session.newest[form]
        session.newest[form] = place


@compiled()
def matches_after(
    session: Session, matched: Array, lengths: Array, count: int, token: int, new_matched: Array, new_lengths: Array
) -> int:
    """Matches once `token` follows; `matched` and `lengths` are those before. Returns how many.

    Matches that go on come first, so none of them is lost where a frequent token has more places than fit.
    """
    total, form = session.cursor[LENGTH], session.folded[token]
    found = 0
    for index in range(count):
        place = matched[index] + 1
        if place < total and place < session.end[place - 1] and session.folded[session.tokens[place]] == form:
            new_matched[found] = place
            new_lengths[found] = lengths[index] + 1
            found += 1
    going_on = found
    place = session.newest[form]
    while place >= 0 and found < MAX_MATCHES:
        known = False
        for index in range(going_on):
            if new_matched[index] == place:
                known = True
                break
        if not known:
            new_matched[found] = place
            new_lengths[found] = 1
            found += 1
        place = session.previous[place]
    return found


@compiled()
def emit(session: Session, tokens: Array) -> None:
    """Append emitted tokens to the answer and move the matches on. There must be room for them."""
    matched, lengths = np.empty(MAX_MATCHES, np.int64), np.empty(MAX_MATCHES, np.int64)
    cursor = session.cursor
    for token in tokens:
        found = matches_after(session, session.matched, session.lengths, cursor[MATCHES], token, matched, lengths)
        session.matched[:found] = matched[:found]
        session.lengths[:found] = lengths[:found]
        cursor[MATCHES] = found
        place, form = cursor[LENGTH], session.folded[token]
        session.tokens[place] = token
        session.previous[place] = session.newest[form]
        session.newest[form] = place
        session.in_answer[token] += 1
        cursor[LENGTH] += 1
        cursor[EMITTED] += 1
        session.recent[1:] = session.recent[:-1].copy()
        session.recent[0] = token
        _trust(session)


@compiled()
def _trust(session: Session) -> None:
    """Trust the references that hold the answer's end, if they hold at least three tokens of it."""
    longest, ties = 0, 0
    for index in range(session.cursor[MATCHES]):
        if session.owner[session.matched[index]] != OUTPUT:
            if session.lengths[index] > longest:
                longest, ties = session.lengths[index], 0
                if longest >= 3:
                    session.cursor[POINTER] = session.matched[index]
            if session.lengths[index] == longest:
                ties += 1
    session.trust[:] *= np.float32(0.95)
    if longest >= 3:
        for index in range(session.cursor[MATCHES]):
            owner = session.owner[session.matched[index]]
            if owner != OUTPUT and session.lengths[index] == longest:
                session.trust[owner] += np.float32(0.05 / ties)
