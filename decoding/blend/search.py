"""Best-first search for the likeliest draft tree: one heap, path products, the top nodes by construction a tree.

A child is never likelier than its parent, so the first b nodes taken are the b likeliest paths, and each one's parent
is among them. Nodes are handed out depth first, likeliest child first, so that the best chain is contiguous.
"""

from __future__ import annotations

import numpy as np

from decoding.blend.features import COUNT, MAX_CANDIDATES, featurise
from decoding.blend.scorer import Scorer, log_probabilities
from decoding.blend.session import EMITTED, MATCHES, MAX_MATCHES, OUTPUT, Session, matches_after
from indexes.compiled import compiled
from indexes.ngram_counts import ORDERS, Array, NgramCounts

CHILDREN = 16
_FLOOR = -8.0  # log probability below which a path is not worth a node


@compiled()
def search(
    session: Session,
    answers: NgramCounts,
    passages: NgramCounts,
    scorer: Scorer,
    shift: float,
    most: int,
    slot_of: Array,
) -> tuple[Array, Array, Array, Array]:
    """The likeliest tree of up to `most` nodes after the answer so far: tokens, parents, probs, sources, each (N,).

    slot_of (V,) is scratch space: all -1, before and after.
    """
    matched, lengths = np.empty((most + 1, MAX_MATCHES), np.int64), np.empty((most + 1, MAX_MATCHES), np.int64)
    counts, recents = np.zeros(most + 1, np.int64), np.full((most + 1, ORDERS), -1, np.int64)
    depths = np.zeros(most + 1, np.int64)
    node_token, node_parent, node_owner = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    node_log = np.zeros(most, np.float64)
    open_token, open_parent, open_owner, open_log = (
        np.zeros((most + 1) * CHILDREN, np.int64), np.zeros((most + 1) * CHILDREN, np.int64),
        np.zeros((most + 1) * CHILDREN, np.int64), np.zeros((most + 1) * CHILDREN, np.float64),
    )  # fmt: skip
    features = np.empty((MAX_CANDIDATES, COUNT), np.float32)
    candidates, places = np.empty(MAX_CANDIDATES, np.int64), np.empty(MAX_CANDIDATES, np.int64)
    logs = np.empty(MAX_CANDIDATES, np.float32)
    counts[0] = session.cursor[MATCHES]
    matched[0, : counts[0]] = session.matched[: counts[0]]
    lengths[0, : counts[0]] = session.lengths[: counts[0]]
    recents[0] = session.recent
    taken, opened, current = 0, 0, 0  # row k + 1 is node k; row 0 is the root
    while taken < most:
        known = min(ORDERS, session.cursor[EMITTED] + depths[current])
        found = featurise(
            session, matched[current], lengths[current], counts[current], recents[current], known, depths[current],
            answers, passages, slot_of, candidates, places, features,
        )  # fmt: skip
        log_probabilities(scorer, features, found, shift, logs)
        base = 0.0 if current == 0 else node_log[current - 1]
        for _ in range(min(CHILDREN, found)):
            best = np.argmax(logs[:found])
            if base + logs[best] < _FLOOR:
                break
            owner = OUTPUT if places[best] < 0 else session.owner[places[best]]
            open_token[opened], open_parent[opened], open_owner[opened] = candidates[best], current, owner
            open_log[opened] = base + logs[best]
            logs[best] = -np.inf
            opened += 1
        likeliest = -1
        for index in range(opened):
            if open_log[index] > -np.inf and (likeliest < 0 or open_log[index] > open_log[likeliest]):
                likeliest = index
        if likeliest < 0:
            break
        parent, token = open_parent[likeliest], open_token[likeliest]
        node_token[taken], node_parent[taken], node_owner[taken] = token, parent - 1, open_owner[likeliest]
        node_log[taken] = open_log[likeliest]
        open_log[likeliest] = -np.inf
        taken += 1
        current = taken
        depths[current] = depths[parent] + 1
        recents[current, 0] = token
        recents[current, 1:] = recents[parent, :-1]
        counts[current] = matches_after(
            session, matched[parent], lengths[parent], counts[parent], token, matched[current], lengths[current]
        )
    order = _depth_first(node_parent[:taken])
    places_of = np.empty(taken + 1, np.int64)
    places_of[taken] = -1  # the root's place: index -1 finds it
    for index in range(taken):
        places_of[order[index]] = index
    parents = np.empty(taken, np.int64)
    for index in range(taken):
        parents[index] = places_of[node_parent[order[index]]]
    return node_token[order], parents, np.exp(node_log[order]), node_owner[order]


@compiled()
def _depth_first(parents: Array) -> Array:
    """The order of a walk that takes each node's first child first; siblings are in order of likelihood already."""
    count = len(parents)
    order, stack = np.empty(count, np.int64), np.empty(count + 1, np.int64)
    stack[0], height, written = -1, 1, 0
    while height:
        height -= 1
        node = stack[height]
        if node >= 0:
            order[written] = node
            written += 1
        for child in range(count - 1, node, -1):
            if parents[child] == node:
                stack[height] = child
                height += 1
    return order
