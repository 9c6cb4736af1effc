"""Word2Vec by gensim (Mikolov et al. 2013), one space for words and collocations (CLMLDP section 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

from tasks.errors import RequestError
from tasks.space.word_space import WordSpace


def _stable_hash(text: str) -> int:
    # Python's own hash of a string changes with every process.
    return crc32(text.encode())


def train_word2vec(
    corpus_file: str,
    *,
    dimensions: int,
    window: int,
    min_count: int,
    epochs: int,
    negative: int,
    skip_gram: bool,
    workers: int,
    seed: int,
    on_epoch: Callable[[int], None] | None = None,
) -> WordSpace:
    """Train on a file of one sentence per line, tokens separated by spaces.

    With ``workers=1`` the same file and seed give the same bytes; with more they do not.

    Args:
        corpus_file: gensim opens it itself, which is faster than feeding it sentences.
        dimensions: p.
        min_count: tokens rarer than this get no vector.
        on_epoch: called after each epoch with its number, from 1.

    Raises:
        RequestError: if no token occurs ``min_count`` times.
    """
    from gensim.models import Word2Vec
    from gensim.models.callbacks import CallbackAny2Vec

    class EpochEnd(CallbackAny2Vec):  # type: ignore[misc]
        def __init__(self) -> None:
            self.epoch = 0

        def on_epoch_end(self, model: Any) -> None:  # noqa: ARG002 - gensim passes it
            self.epoch += 1
            if on_epoch is not None:
                on_epoch(self.epoch)

    model = Word2Vec(
        vector_size=dimensions,
        window=window,
        min_count=min_count,
        epochs=epochs,
        negative=negative,
        sg=int(skip_gram),
        workers=workers,
        seed=seed % 2**32,
        hashfxn=_stable_hash,
    )
    try:
        model.build_vocab(corpus_file=corpus_file)
        if not model.wv.index_to_key:
            raise RuntimeError
    except RuntimeError:
        raise RequestError(
            f"no token occurs {min_count} times in the segmented corpus, so there is nothing to train; "
            "lower embeddings.min_count in params.yaml or bring more text"
        ) from None
    model.train(
        corpus_file=corpus_file,
        total_examples=model.corpus_count,
        total_words=model.corpus_total_words,
        epochs=epochs,
        callbacks=[EpochEnd()],
    )
    tokens = list(model.wv.index_to_key)
    counts = np.array([model.wv.get_vecattr(token, "count") for token in tokens], dtype=np.int64)
    return WordSpace(tokens, np.ascontiguousarray(model.wv.vectors, dtype=np.float32), counts)
