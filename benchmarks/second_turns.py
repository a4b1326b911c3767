"""What prefix reuse saves: the time to the first token of a second turn, with the first one cached and without."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from app.answering.engine import Engine
from benchmarks.conditions import conditions
from benchmarks.data import read_lines, readable
from benchmarks.replies import our_reply
from decoding.drafter import DraftRequest
from decoding.drafters import make_drafter
from decoding.loop import DecodeRequest
from decoding.prefixes import KeptPrefixes
from indexes.errors import SettingError
from retrieval.indexing import Progress

FOLLOW_UP = "Say that again in one short sentence."  # where the data has a first turn only
PERSON = "somebody"
SECOND_TOKENS = 24  # of the second answer, which are compared


def read_turns(path: Path, limit: int | None) -> list[tuple[str, str]]:
    """First and second turns of a file in Spec-Bench's or MT-Bench's form. Raises SettingError for another one."""
    lines = read_lines(path)[:limit]
    try:
        found = [(readable(line["turns"][0]), readable((*line["turns"], FOLLOW_UP)[1])) for line in lines]
    except (KeyError, IndexError, TypeError) as error:
        raise SettingError(f"{path} holds no turns: {error!r}") from error
    if not found:
        raise SettingError(f"{path} holds no examples")
    return found


def run(engine: Engine, data: Path, limit: int | None, max_new_tokens: int, progress: Progress) -> dict[str, Any]:
    """Ask every second turn with and without what the first one left in the cache, in turn."""
    turns = read_turns(data, limit)
    kept = KeptPrefixes(engine.target, engine.settings.prefix_cache_mb * 2**20)
    first_s: dict[bool, list[float]] = {True: [], False: []}
    lengths: list[int] = []
    reused: list[int] = []
    identical = 0
    for done, (first, second) in enumerate(turns):
        progress("Conversations", done, len(turns))
        messages = [{"role": "user", "content": engine.writer.harmless(first)}]
        prompt = _tokens(engine, messages)
        kept.begin(PERSON, prompt)
        answer = _reply(engine, prompt, max_new_tokens, 0)[0]
        kept.end(PERSON, (*prompt, *answer))
        text = engine.tokenizer.decode(answer, skip_special_tokens=True)
        messages += [{"role": "assistant", "content": text}]
        messages += [{"role": "user", "content": engine.writer.harmless(second)}]
        follow_up = _tokens(engine, messages)
        cached = kept.begin(PERSON, follow_up)
        again, seconds = _reply(engine, follow_up, SECOND_TOKENS, cached)
        first_s[True].append(seconds)
        fresh, seconds = _reply(engine, follow_up, SECOND_TOKENS, 0)
        first_s[False].append(seconds)
        kept.forget(PERSON)
        identical += again == fresh
        lengths.append(len(follow_up))
        reused.append(cached)
    progress("Conversations", len(turns), len(turns))
    chosen = conditions(
        data=data.name, conversations=len(turns), first_answer_tokens=max_new_tokens, model=engine.profile.model,
        device=engine.device, dtype=engine.dtype_name, target=engine.target.kind,
        prompt_tokens_mean=round(statistics.mean(lengths)), reused_tokens_mean=round(statistics.mean(reused)),
    )  # fmt: skip
    lines = [
        {
            "second_turn": "prefix reused" if reuse else "read anew",
            "time_to_first_token_s_median": round(statistics.median(times), 4),
            "time_to_first_token_s_mean": round(statistics.mean(times), 4),
            "against_none": round(sum(times) / sum(first_s[False]), 4),
            "identical_answers": f"{identical} of {len(turns)}",
        }
        for reuse, times in first_s.items()
    ]
    return {"conditions": chosen, "turns": lines}


def _tokens(engine: Engine, messages: list[dict[str, str]]) -> tuple[int, ...]:
    text = engine.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return tuple(engine.tokenizer(text, add_special_tokens=False).input_ids)


def _reply(engine: Engine, prompt: tuple[int, ...], max_new_tokens: int, cached: int) -> tuple[tuple[int, ...], float]:
    request = DecodeRequest(DraftRequest(prompt), max_new_tokens, engine.stop_tokens, cached=cached)
    reply = our_reply(engine.target, make_drafter("prompt-lookup"), request)
    return reply.tokens, reply.first_s
