"""Recover words from an output and what lies beside it: a one-word text, and a short review with
one unknown word.

The observer knows the model, the options, and of the review every word but one. He tries each word
of the vocabulary, computes what the record would then say of source against output, and keeps the
words for which it says just that.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexveil.io.artifacts.embeddings import load_embedding
from tests.attacks.attacker import privatize, public_files, write_rows

BUDGET = 1e-6  # noise hides everything: the output alone tells nothing
REVIEW = "the film was {} and the music was good"
ROUNDED = 1e-9  # of the statistics


class Observer:
    """Knows the public model."""

    def __init__(self, project: Path) -> None:
        space = load_embedding("word", project)
        self.row = {word: row for row, word in enumerate(space.tokens)}
        vectors = np.asarray(space.vectors, dtype=np.float64)
        self.vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)

    def statistics(self, source: str, output: str) -> dict[str, float | None]:
        """Return statistics that compare a source with an output of the same length."""
        before, after = (
            np.array([self.row[word] for word in text.lower().split()]) for text in (source, output)
        )
        changed = before != after
        cosines = np.einsum("np,np->n", self.vectors[before[changed]], self.vectors[after[changed]])
        return {
            "share_unchanged": float(np.mean(~changed)),
            "mean_cosine": float(cosines.mean()) if changed.any() else None,
        }

    def candidates(self, template: str, output: str, said: list[dict[str, Any]]) -> list[str]:
        """The words that make everything true that is said."""
        words = (word for word in self.row if word.isalpha())
        computed = ((word, self.statistics(template.format(word), output)) for word in words)
        return [
            word for word, figures in computed if all(_agrees(figures, facts) for facts in said)
        ]


def _agrees(computed: dict[str, float | None], said: dict[str, Any]) -> bool:
    """Return whether statistics agree with a record; a statistic that the record lacks rules
    nothing out.
    """
    return {name: said.get(name, value) for name, value in computed.items()} == pytest.approx(
        computed, abs=2 * ROUNDED
    )


def attack(project: Path) -> bool:
    """Return whether more than half of the words are recovered."""
    observer = Observer(project)
    right = 0
    tried = 0
    for number, (template, word) in enumerate(
        (template, word)
        for template in ("{}", REVIEW)
        for word in ("government", "fire", "people", "police", "water")
    ):
        if any(one not in observer.row for one in template.format(word).split()):
            continue
        folder = project / f"statistics-{number}"
        folder.mkdir()
        source = write_rows(project / "in.jsonl", [{"text": template.format(word)}])
        code, err = privatize(source, folder / "out.jsonl", "--document-budget", BUDGET)
        assert code == 0, err
        output = json.loads((folder / "out.jsonl").read_text())["text"]
        said = [
            json.loads(file.read_text()) for file in public_files(folder) if file.suffix == ".json"
        ]
        candidates = observer.candidates(
            template, output, [facts.get("counts", facts) for facts in said]
        )
        print(f"{word}: {len(candidates):,} candidates: {', '.join(candidates[:3])}")
        right = right + (candidates == [word])
        tried = tried + 1
    print(f"{right} of {tried} words recovered with certainty")
    assert tried, "no word of the attack is in the vocabulary"
    return right > tried / 2
