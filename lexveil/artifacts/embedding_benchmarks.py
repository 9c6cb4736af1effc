"""Quality of embeddings on the test sets that gensim's wheel contains: similarity judgements and
analogies.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lexveil.embeddings.intrinsic_evaluation import (
    LENGTHS,
    Question,
    analogies,
    by_frequency,
    neighbour_samples,
    similarity,
)
from lexveil.embeddings.training import Trained
from lexveil.embeddings.word_space import WordSpace

SIMILARITY = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}
ANALOGIES = "questions-words.txt"


def load_similarity(name: str) -> list[tuple[str, str, float]]:
    """Return the pairs of one test set with their mean judgement, in lower case as all tokens.
    Empty if the set is not installed.
    """
    rows = [line.split("\t") for line in _lines(SIMILARITY[name]) if not line.startswith("#")]
    return [(first.lower(), second.lower(), float(judged)) for first, second, judged in rows]


def load_analogies() -> dict[str, list[Question]]:
    """Return the analogy questions by section, in lower case. Empty if the set is not installed."""
    sections: dict[str, list[Question]] = {}
    for line in _lines(ANALOGIES):
        if line.startswith(":"):
            questions = sections.setdefault(line[1:].strip(), [])
        else:
            a, b, c, d = line.lower().split()
            questions.append((a, b, c, d))
    return sections


def _lines(file: str) -> list[str]:
    # Do not import gensim: that takes seconds.
    spec = importlib.util.find_spec("gensim")
    path = Path(spec.origin).parent / "test" / "test_data" / file if spec and spec.origin else None
    # A repackaged gensim may lack its tests. Quality is then not measured, and nothing else
    # depends on it.
    if path is None or not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def embedding_metrics(
    space: WordSpace, raw: WordSpace, about: Mapping[str, object], trained: Trained | None
) -> dict[str, object]:
    """Return the size and the quality of an embedding, and facts about its training.

    Args:
        space: the embedding as it is used.
        raw: the embedding as it was trained, before its lengths were changed.
        about: facts about the training for the record.
        trained: the training of the embedding; None for an external model.
    """
    lengths = Counter(space.n_words.tolist())
    norms = np.linalg.norm(space.vectors, axis=1)
    losses = None if trained is None else [loss and round(loss, 4) for loss in trained.losses]
    return {
        "n_tokens": len(space.tokens),
        **{f"n_{name}s": lengths[n] for n, name in enumerate(LENGTHS, 1)},
        "tokens_covered": int(space.counts.sum()) if trained is None else trained.tokens_covered,
        # Round it: people compare this metric.
        "norm_median": round(float(np.median(norms)), 3),
        "norm_largest": round(float(norms.max()), 3),
        "training": {
            **about,
            "began": None if trained is None else trained.began,
            "loss_by_epoch": losses,
        },
        "quality": {
            "neighbours": neighbour_samples(raw),
            "similarity": {name: similarity(raw, load_similarity(name)) for name in SIMILARITY},
            "analogies": analogies(raw, load_analogies()),
            # Use the vectors as trained: their lengths show the effect of training.
            "frequency": by_frequency(raw, None if trained is None else trained.moved),
        },
    }
