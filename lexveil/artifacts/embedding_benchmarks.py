"""How good embeddings are, by the test sets that gensim's wheel carries: similarity judgements and
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
    """The pairs of one set with their mean judgement, in lower case as all tokens are. Empty if it
    is not installed.
    """
    rows = [line.split("\t") for line in _lines(SIMILARITY[name]) if not line.startswith("#")]
    return [(first.lower(), second.lower(), float(judged)) for first, second, judged in rows]


def load_analogies() -> dict[str, list[Question]]:
    """The questions by section, in lower case. Empty if the set is not installed."""
    sections: dict[str, list[Question]] = {}
    for line in _lines(ANALOGIES):
        if line.startswith(":"):
            questions = sections.setdefault(line[1:].strip(), [])
        else:
            a, b, c, d = line.lower().split()
            questions.append((a, b, c, d))
    return sections


def _lines(file: str) -> list[str]:
    # Found without an import of gensim, which takes seconds.
    spec = importlib.util.find_spec("gensim")
    path = Path(spec.origin).parent / "test" / "test_data" / file if spec and spec.origin else None
    # A repackaged gensim may leave its tests out. Quality is then not measured; nothing else
    # depends on it.
    if path is None or not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def embedding_metrics(
    space: WordSpace, raw: WordSpace, about: Mapping[str, object], trained: Trained | None
) -> dict[str, object]:
    """How large and how good an embedding is, and how it was trained.

    Args:
        space: as it is used.
        raw: as it was trained, before its lengths were changed.
        about: how it was made.
        trained: the training that it is of; None for an external model.
    """
    lengths = Counter(space.n_words.tolist())
    norms = np.linalg.norm(space.vectors, axis=1)
    losses = None if trained is None else [loss and round(loss, 4) for loss in trained.losses]
    return {
        "n_tokens": len(space.tokens),
        **{f"n_{name}s": lengths[n] for n, name in enumerate(LENGTHS, 1)},
        "tokens_covered": int(space.counts.sum()) if trained is None else trained.tokens_covered,
        # Rounded: a metric people compare, not the vectors themselves.
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
            # Of the vectors as trained, whose lengths say what training did.
            "frequency": by_frequency(raw, None if trained is None else trained.moved),
        },
    }
