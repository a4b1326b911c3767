"""Our drafter inside vLLM, as a custom proposer: copies from each request's own prompt and output.

    vllm serve MODEL --speculative-config '{"method": "custom_class", "num_speculative_tokens": 24,
        "model": "decoding.vllm_proposer.Proposer"}'

in vLLM's environment, with this repository on PYTHONPATH. Tried with vLLM 0.32; imports nothing of it. vLLM calls
`propose` once per step of the engine, on its CPU copies of the tokens. With several workers each drafts, and the first
one's drafts are used, so they need not agree.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from decoding.chains.batch import BatchDrafter, Ints

LOG = logging.getLogger("vllm.quotewright")  # below vLLM's own, which is shown


class Proposer:
    """What vLLM makes one of per worker."""

    def __init__(self, vllm_config: Any) -> None:
        self._most = int(vllm_config.speculative_config.num_speculative_tokens)
        self._longest = int(vllm_config.model_config.max_model_len)
        self._drafter: BatchDrafter | None = BatchDrafter(self._most, self._longest)

    def load_model(self, *_: Any, **__: Any) -> None:
        """Compile for this machine: some seconds the first time, nothing ever after."""
        tokens = np.array([[5, 6, 5]], np.int32)
        drafter = BatchDrafter(self._most, self._longest)
        for _step in range(2):  # the second step teaches what the first one cost
            drafter.propose([[5]], np.array([3], np.int32), tokens)

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: npt.NDArray[np.int32],
        token_ids_cpu: Ints,
        slot_mappings: object = None,
    ) -> list[list[int]]:
        """One chain per request, in the order of the rows. An error of ours ends drafting, never the engine."""
        if self._drafter is not None:
            try:
                return self._drafter.propose(sampled_token_ids, num_tokens_no_spec, token_ids_cpu)
            except Exception:
                LOG.exception("Quotewright's drafter failed; answers go on without drafts")
                self._drafter = None
        return [[] for _ in sampled_token_ids]
