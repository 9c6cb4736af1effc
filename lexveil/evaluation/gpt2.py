"""GPT-2 as the judge of how surprising a text is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lexveil.errors import RequestError
from lexveil.evaluation.base import PerplexityScores
from lexveil.evaluation.local_model import load, one_thread, read_model

# tokens at a time: each has as many float32 scores as there are words, 50,257 of GPT-2
BATCH = 2048


class Gpt2:
    """A causal model of transformers, read from a folder of this machine; nothing is fetched.

    Each text begins with the mark of a new text, so that its first token is predicted too. A text
    longer than the model's input is read in windows, each of which begins half a window after the
    one before: every token is predicted once, from half a window at least, or from all that stands
    before it.

    Source: CLMLDP section 5 (GPT-2); the paper does not say how it cut long texts.

    Attributes:
        start: number of the mark of a new text.
        window: inputs the model takes.
    """

    name = "gpt2"

    def __init__(self, folder: str) -> None:
        """Load model and tokenizer.

        Raises:
            RequestError: if the libraries are not installed, or the folder holds no such model.
        """
        what = f"language model {self.name}"
        self._tokenizer, model = read_model("AutoModelForCausalLM", folder, "gpt2_model", what)
        self._torch = load("torch", what)
        self._model = model.eval()
        if model.config.bos_token_id is None:
            raise RequestError(
                f"{folder} (params.yaml: evaluation.gpt2_model): the model has no mark of a "
                "new text (bos_token_id in "
                "config.json), from which a first token could be predicted; give a model of "
                "the kind of GPT-2"
            )
        self.start = int(model.config.bos_token_id)
        self.window = int(model.config.max_position_embeddings)

    def score(self, texts: Sequence[str]) -> PerplexityScores:
        """Score each text, windows of about the same length at a time.

        Nothing is unknown to a model of bytes. The last digits of a score depend on the texts it is
        scored with.
        """
        log_sum, n_tokens = np.zeros(len(texts)), np.zeros(len(texts), dtype=np.int64)
        # row, tokens, and how many of these are predicted in others
        windows: list[tuple[int, list[int], int]] = []
        for row, text in enumerate(texts):
            ids = [
                self.start,
                *self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"],
            ]
            n_tokens[row] = len(ids) - 1
            windows += (
                (row, ids[start : start + self.window], done)
                for start, done in self._starts(len(ids))
            )
        windows.sort(key=lambda window: -len(window[1]))
        with one_thread():
            while windows:
                n_windows = max(1, BATCH // len(windows[0][1]))
                batch, windows = windows[:n_windows], windows[n_windows:]
                np.add.at(log_sum, [row for row, _, _ in batch], self._log_sums(batch))
        return PerplexityScores(log_sum, n_tokens, np.zeros(len(texts), dtype=np.int64))

    def _starts(self, n_ids: int) -> list[tuple[int, int]]:
        """Where windows begin, and how many of their tokens are given or were predicted: the mark
        is given.
        """
        if n_ids < 2:
            return []
        step = self.window // 2
        starts = range(0, max(n_ids - self.window, 0) + step, step)
        return [(start, 1 if start == 0 else self.window - step) for start in starts]

    def _log_sums(self, batch: list[tuple[int, list[int], int]]) -> Any:
        torch = self._torch
        longest = len(batch[0][1])
        ids = torch.full((len(batch), longest), self.start)
        real, counted = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for number, (_, tokens, done) in enumerate(batch):
            ids[number, : len(tokens)] = torch.tensor(tokens)
            real[number, : len(tokens)] = 1
            counted[number, done : len(tokens)] = True
        with torch.inference_mode():
            logits = self._model(input_ids=ids, attention_mask=real).logits[:, :-1]
            surprise = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), ids[:, 1:], reduction="none"
            )
            return -(surprise.double() * counted[:, 1:]).sum(dim=1).numpy()
