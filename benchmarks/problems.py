"""Public data sets with the classes to predict, and the scores of the predictions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from lexveil.base.types import Floats
from lexveil.lab.evaluation.classifier import Linear

SEED = 1
TEST_SHARE = 0.3  # share of the texts that are held out and predicted
RESAMPLED = 1_000  # bootstrap draws of the predicted documents
GENRES = ("comedy", "horror")


class Sizes(NamedTuple):
    """Sizes of the sample from each data set.

    Attributes:
        train, test: number of texts to learn from, and of texts to predict.
        words: number of words of each text, from its beginning.
        read: number of words of held-out texts that adversaries read.
    """

    train: int
    test: int
    words: int
    read: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Data set with the classes to predict.

    Attributes:
        name: name in tables.
        file: stem of the Parquet file.
        columns: column of each prediction, by the kind of the prediction: "utility", "another task"
            or "attack".
        few: whether only the recommended mechanisms rewrite the data set.
        texts: the texts, training texts first.
        classes: classes of each text, one for each prediction.
        n_train, n_read: number of training texts, and of held-out texts that adversaries read.
    """

    name: str
    file: str
    columns: dict[str, str]
    few: bool = False
    texts: Sequence[str] = ()
    classes: Sequence[tuple[str, ...]] = ()
    n_train: int = 0
    n_read: int = 0

    def drawn(self, folder: Path, sizes: Sizes) -> Problem:
        """Return the problem with sampled texts: up to the given sizes, with the same number of
        texts of each class.
        """
        table = pq.read_table(folder / f"{self.file}.parquet").to_pydict()
        if "genre" in self.columns.values():
            table["genre"] = genres(table["movie_id"], table["text"])
        classes = list(zip(*(table[name] for name in self.columns.values()), strict=True))
        rng = np.random.default_rng(SEED)
        given = np.array([None not in row for row in classes])
        is_train = rng.random(len(classes)) >= TEST_SHARE
        parts: list[list[int]] = []
        for part, n in ((is_train, sizes.train), (~is_train, sizes.test)):
            chosen = rng.permutation(np.flatnonzero(given & part)).tolist()
            groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
            for row in chosen:
                groups[classes[row]].append(row)
            kept = {row for group in groups.values() for row in group[: n // len(groups)]}
            parts.append([row for row in chosen if row in kept])
        rows = [*parts[0], *parts[1]]
        n_train = len(parts[0])
        texts = [" ".join(table["text"][row].split()[: sizes.words]) for row in rows]
        read = np.cumsum([len(text.split()) for text in texts[n_train:]])
        n_read = min(int(np.searchsorted(read, sizes.read)) + 1, len(read))
        known = [tuple(map(str, classes[row])) for row in rows]
        return replace(self, texts=texts, classes=known, n_train=n_train, n_read=n_read)

    @property
    def read(self) -> slice:
        """Slice of the held-out texts that adversaries read."""
        return slice(self.n_train, self.n_train + self.n_read)

    def names(self, what: str) -> list[str]:
        """Return the classes of one prediction, sorted; there are fewer than ten."""
        return sorted({row[[*self.columns].index(what)] for row in self.classes})

    def predicted(self, texts: Sequence[str]) -> dict[str, str]:
        """Learn from the training texts and predict the class of each held-out text; return a
        string of one digit per text for each prediction.
        """
        n = self.n_train
        found = {}
        for place, what in enumerate(self.columns):
            model = Linear(SEED).fit(texts[:n], [row[place] for row in self.classes[:n]])
            found[what] = "".join(
                str(self.names(what).index(name)) for name in model.predict(texts[n:])
            )
        return found

    def f1(self, predicted: str, what: str) -> Floats:
        """Return (1 + RESAMPLED,) macro F1 over all predicted documents, and over each bootstrap
        draw of the documents.
        """
        place = [*self.columns].index(what)
        names = self.names(what)
        truth = np.array([names.index(known[place]) for known in self.classes[self.n_train :]])
        guesses = np.array([*map(int, predicted)])
        n = len(truth)
        true, guessed = (of == np.arange(len(names))[:, None] for of in (truth, guesses))
        weights = resampled(n)
        right = weights @ (true & guessed).T
        either = weights @ (true.astype(float) + guessed).T
        mean: Floats = (2 * right / np.maximum(either, 1)).mean(axis=1)
        return mean


@lru_cache(maxsize=1)
def resampled(n: int) -> Floats:
    """Return (1 + RESAMPLED, n) weights of the documents: first weight 1 for all, then the weights
    of each bootstrap draw.
    """
    draws = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), RESAMPLED)
    return np.vstack([np.ones(n), draws])


PROBLEMS = (
    Problem("SST-2", "sst2", {"utility": "label"}),
    Problem("IMDb", "imdb", {"utility": "label", "another task": "genre"}),
    Problem("Trustpilot", "trustpilot", {"attack": "attribute"}),
    Problem("Movie authors", "movie_authors", {"utility": "label", "attack": "attribute"}),
    Problem("Tweets", "tweets", {"utility": "label"}, few=True),
)


def genres(films: Sequence[str], texts: Sequence[str]) -> list[str | None]:
    """Return the genre of each review: the genre that other reviews of the same film name more than
    twice as often as the other genre; None if neither is.
    """
    named = [
        [genre in set(re.findall("[a-z]+", text.lower())) for genre in GENRES] for text in texts
    ]
    of_film = defaultdict[str, np.ndarray](lambda: np.zeros(len(GENRES), dtype=np.int64))
    for film, one in zip(films, named, strict=True):
        of_film[film] += one
    others = [of_film[film] - one for film, one in zip(films, named, strict=True)]
    return [GENRES[int(n.argmax())] if n.max() > 2 * n.min() else None for n in others]
