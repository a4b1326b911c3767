"""Tiny random models in the file layouts of bge-m3, its reranker and a Llama chat model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
    XLMRobertaModel,
    XLMRobertaTokenizer,
)

WORDS = [*"abcdefghijklmnopqrstuvwxyz?.", "question", "answer", "lambda", "function", "the", "is", "a1"]
HIDDEN = 32
CHAT = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def _xlm_r() -> tuple[XLMRobertaConfig, XLMRobertaTokenizer]:
    vocabulary = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    vocabulary += [("▁", -2.0), *((f"▁{word}", -3.0) for word in WORDS), *((word, -4.0) for word in WORDS)]
    tokenizer = XLMRobertaTokenizer(vocab=[*vocabulary, ("<mask>", 0.0)])
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer), hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=1100, num_labels=1,
    )  # fmt: skip
    return config, tokenizer


def write_bge_m3(folder: Path) -> Path:
    """An encoder."""
    torch.manual_seed(0)
    config, tokenizer = _xlm_r()
    XLMRobertaModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.save(torch.nn.Linear(HIDDEN, HIDDEN).state_dict(), folder / "colbert_linear.pt")
    torch.save(torch.nn.Linear(HIDDEN, 1).state_dict(), folder / "sparse_linear.pt")
    return folder


def write_cross_encoder(folder: Path) -> Path:
    """A reranker."""
    torch.manual_seed(1)
    config, tokenizer = _xlm_r()
    XLMRobertaForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_llama(folder: Path, chat_template: str | None = CHAT) -> Path:
    """A target model whose words are single characters."""
    torch.manual_seed(2)
    special = ["<unk>", "<s>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    letters = [chr(code) for code in range(32, 127)] + ["\n"]
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate([*special, *letters])}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    words.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", bos_token="<s>", eos_token="<|end|>",
        additional_special_tokens=special[3:], chat_template=chat_template,
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=HIDDEN, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=4096, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def write_batch(folder: Path, questions: int, bad: Mapping[int, str] | None = None) -> Path:
    """A folder with both, and a q.jsonl of questions with a passage each; `bad` are lines to stand in their places."""
    write_llama(folder / "model")
    write_bge_m3(folder / "encoder")
    with (folder / "q.jsonl").open("w") as file:
        for number in range(questions):
            name = chr(97 + number % 26) * (1 + number // 26)
            passage = f"the {name} is a function, number {number}."
            row = json.dumps({"question": f"what is {name}?", "passages": [passage], "answer": name})
            file.write((bad or {}).get(number, row) + "\n")
    return folder
