"""GPT-2 as a language model that computes perplexities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lexveil.base.errors import RequestError
from lexveil.core.language_models.base import PerplexityScores
from lexveil.core.language_models.local_model import load, one_thread, read_model

# tokens of a batch: each token has one float32 score per word, and GPT-2 has 50,257 words
TOKENS_OF_A_BATCH = 2048


class Gpt2:
    """A causal language model of the library transformers, read from a local folder; nothing is
    downloaded.

    Each text begins with the start token, so that its first token is predicted too. A text longer
    than the model's input is read in windows that overlap by half: each token is predicted once,
    from at least half a window, or from all tokens before it.

    Source: CLMLDP section 5 (GPT-2); the paper does not say how it cut long texts.

    Attributes:
        start: id of the start token.
        window: greatest number of input tokens of the model.
    """

    name = "gpt2"

    def __init__(self, folder: str) -> None:
        """Load the language model and its tokenizer from a local folder.

        Raises:
            RequestError: if the libraries are not installed, or the folder holds no such model.
        """
        what = f"language model {self.name}"
        self._tokenizer, model = read_model("AutoModelForCausalLM", folder, "gpt2_model", what)
        self._torch = load("torch", what)
        self._model = model.eval()
        if model.config.bos_token_id is None:
            raise RequestError(
                f"{folder} (params.yaml: evaluation.gpt2_model): config.json has no start token "
                "(bos_token_id), which is needed to predict the first token; give a model like "
                "GPT-2"
            )
        self.start = int(model.config.bos_token_id)
        self.window = int(model.config.max_position_embeddings)

    def score(self, texts: Sequence[str]) -> PerplexityScores:
        """Compute the perplexity scores of each text, in batches of windows of similar length.

        The model's tokens are made of bytes, so no token is unknown. The last digits of a score
        depend on the other texts in its batch.
        """
        log_sum = np.zeros(len(texts))
        n_tokens = np.zeros(len(texts), dtype=np.int64)
        # row, tokens, and the number of first tokens that this window does not predict
        windows: list[tuple[int, list[int], int]] = []
        for row, text in enumerate(texts):
            ids = [
                self.start,
                *self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"],
            ]
            n_tokens[row] = len(ids) - 1
            windows += (
                (row, ids[start : start + self.window], n_scored)
                for start, n_scored in self._starts(len(ids))
            )
        windows.sort(key=lambda window: -len(window[1]))
        with one_thread():
            while windows:
                n_windows = max(1, TOKENS_OF_A_BATCH // len(windows[0][1]))
                batch = windows[:n_windows]
                windows = windows[n_windows:]
                np.add.at(log_sum, [row for row, _, _ in batch], self._log_sums(batch))
        return PerplexityScores(log_sum, n_tokens, np.zeros(len(texts), dtype=np.int64))

    def _starts(self, n_ids: int) -> list[tuple[int, int]]:
        """Return for each window its start, and how many of its first tokens it does not predict:
        the start token, or tokens that the previous window predicts.
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
        real = torch.zeros_like(ids)
        counted = torch.zeros_like(ids, dtype=torch.bool)
        for number, (_, tokens, n_scored) in enumerate(batch):
            ids[number, : len(tokens)] = torch.tensor(tokens)
            real[number, : len(tokens)] = 1
            counted[number, n_scored : len(tokens)] = True
        with torch.inference_mode():
            logits = self._model(input_ids=ids, attention_mask=real).logits[:, :-1]
            surprise = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), ids[:, 1:], reduction="none"
            )
            return -(surprise.double() * counted[:, 1:]).sum(dim=1).numpy()
