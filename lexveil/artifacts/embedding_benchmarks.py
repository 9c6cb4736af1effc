"""The test sets of word embeddings that gensim's wheel carries: similarity judgements and analogies."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from lexveil.embeddings.intrinsic_evaluation import Question

SIMILARITY = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}
ANALOGIES = "questions-words.txt"


def load_similarity(name: str) -> list[tuple[str, str, float]]:
    """The pairs of one set with their mean judgement, in lower case as all tokens are. Empty if it is not installed."""
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
    # A repackaged gensim may leave its tests out. Quality is then not measured; nothing else depends on it.
    if path is None or not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
