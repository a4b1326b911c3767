"""HAGRID's citations: do an answer's spans stand in the quotes that the recorded answers cite?

HAGRID's recorded answers cite quotes as [1] or [1, 2]; people have judged which of their sentences can be attributed
to what they cite. An answer of ours cites no numbers; it copies, and a span tells from which quote.

- A citation of ours is a sentence of the answer together with a quote that a span in the sentence stands in.
- It is right if an attributable sentence of the recorded answer cites the same quote.
- Precision is the share of our citations that are right; an answer that copies nothing has none.
- Recall is the share of the quotes so cited by the recorded answer that ours cites as well.

Of several recorded answers the one that gives the best F1 counts, as with several expected texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from app.answering.spans import Span

_MARK = re.compile(r"\[(\d+(?:\s*,\s*\d+)*)\]")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def cited_numbers(sentence: str) -> list[str]:
    """The numbers in a recorded sentence's [1]-style marks, in order, each once."""
    numbers = (number for mark in _MARK.findall(sentence) for number in mark.split(","))
    return list(dict.fromkeys(str(int(number)) for number in numbers))


def without_marks(text: str) -> str:
    """A recorded answer as text alone."""
    return re.sub(r"\s*" + _MARK.pattern, "", text)


def citations(answer: str, spans: Iterable[Span]) -> list[tuple[int, str]]:
    """An answer's citations: (number of the sentence, id of the quote) pairs. A span in two sentences is in both."""
    ends = [match.start() for match in _SENTENCE_END.finditer(answer)]
    cited: dict[tuple[int, str], None] = {}
    for span in spans:
        first = sum(end <= span.start for end in ends)
        last = sum(end < span.end for end in ends)
        cited.update(dict.fromkeys((number, span.passage_id) for number in range(first, last + 1)))
    return list(cited)


def citation_scores(cited: Sequence[tuple[int, str]], gold: Sequence[Sequence[str]]) -> dict[str, float]:
    """Precision and recall of citations; precision is missing for an answer without any, both if gold cites nothing."""
    scores = [_against(cited, set(answer)) for answer in gold if answer]
    if not scores:
        return {}
    precision, recall = max(scores, key=lambda pair: (2 * pair[0] * pair[1] / (sum(pair) or 1), pair))
    return {"citation_precision": precision, "citation_recall": recall} if cited else {"citation_recall": recall}


def _against(cited: Sequence[tuple[int, str]], gold: set[str]) -> tuple[float, float]:
    right = [quote for _, quote in cited if quote in gold]
    return len(right) / max(1, len(cited)), len(set(right)) / len(gold)
