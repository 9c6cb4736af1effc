"""Tiny models of random weights, in folders, in the form of the real ones; and a machine without a network."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest


def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_):
        raise AssertionError("something asked for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def save_tokenizer(folder: Path, words: Sequence[str], longest: int) -> int:
    """Words at spaces, [CLS] a [SEP] b [SEP]; returns how many there are."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    number = {word: i for i, word in enumerate([*marks, *words])}
    tokenizer = Tokenizer(models.WordLevel(number, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", number["[CLS]"]), ("[SEP]", number["[SEP]"])],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=longest,
    ).save_pretrained(folder)
    return len(number)


def save_deberta(folder: Path, words: Sequence[str], longest: int = 32) -> str:
    """A DeBERTa with the parts of DeBERTa-v3."""
    import torch
    from transformers import DebertaV2Config, DebertaV2Model

    torch.manual_seed(1)
    config = DebertaV2Config(
        vocab_size=save_tokenizer(folder, words, longest),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=longest,
        relative_attention=True,
        position_buckets=8,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        type_vocab_size=0,
        pad_token_id=0,
    )
    DebertaV2Model(config).save_pretrained(folder)
    return str(folder)


def save_gpt2(folder: Path, words: Sequence[str], window: int) -> str:
    """A GPT-2 whose mark of a new text is [CLS]."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=save_tokenizer(folder, words, window),
        n_positions=window,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=2,
        eos_token_id=2,
        initializer_range=0.5,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return str(folder)
