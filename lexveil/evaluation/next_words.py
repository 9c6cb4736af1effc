"""GPT-2 as the reader of rewritten texts: how likely each word is after those before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from lexveil.evaluation.base import together
from lexveil.evaluation.gpt2 import Gpt2
from lexveil.evaluation.optional_libraries import one_thread
from lexveil.types import Floats, Ids

PACK = 1024  # tokens at a time; see gpt2.BATCH
CONTEXT = 512  # tokens that a word is seen after, at most; half of them at least where so many stand before it
ROOM = 256  # tokens of candidates that are tried with one copy of a window


@dataclass(frozen=True, slots=True)
class Branch:
    """A candidate of several tokens, tried after the first ``after`` inputs of a window.

    Attributes:
        place, column: which of the candidates it is.
        tokens: of the candidate.
    """

    place: int
    column: int
    after: int
    tokens: list[int]


@dataclass(slots=True)
class Window:
    """A part of a text, as inputs of the model, and the places in it that are predicted.

    Attributes:
        inputs: numbers of tokens.
        after: by place, how many inputs stand before it.
        branches: candidates that are tried there.
    """

    inputs: list[int]
    after: dict[int, int] = field(default_factory=dict)
    branches: list[Branch] = field(default_factory=list)


class Gpt2Words:
    """Probabilities of whole words by a causal model of transformers.

    A word is cut into tokens of the model by itself, a space before it unless it is a mark of punctuation, and is as
    likely as its tokens one after the other. Each text begins with the mark of a new text.

    All places of a text are predicted in one pass from first tokens. A candidate of several tokens goes on only where
    its first token is likely enough, since more tokens make no word likelier; such branches are read behind the text
    they begin in, each hidden from the others by the attention mask.
    """

    name: ClassVar[str] = "gpt2"

    def __init__(self, names: Sequence[str], folder: str) -> None:
        """Load the model and cut the names of W words.

        Raises:
            RequestError: if the libraries are not installed, or the folder holds no such model.
        """
        self._model = Gpt2(folder)
        self._context = min(CONTEXT, self._model.window // 2)  # so that there is room for candidates behind
        self._known: dict[str, list[int]] = {}
        self._names = self._cut(names)
        self._first = np.array([tokens[0] for tokens in self._names], dtype=np.int64)
        self._is_long = np.array([len(tokens) > 1 for tokens in self._names], dtype=np.bool_)

    def log_probability(
        self, texts: Sequence[Sequence[str]], rows: Ids, columns: Ids, candidates: Ids, least: Floats
    ) -> Floats:
        """See ``NextWord``."""
        found = np.full(candidates.shape, -np.inf)
        windows = self._windows(texts, rows, columns)
        with one_thread():
            for pack in together(windows, _n_tokens, PACK):
                log_p = self._model.predictions(*_packed(pack))
                start = 0
                for window in pack:
                    for place, after in window.after.items():
                        found[place] = log_p(start + after - 1)[self._first[candidates[place]]]
                    start += len(window.inputs)
            goes_on = self._is_long[candidates] & (found >= least) & (candidates >= 0)
            for window in windows:
                window.branches = [
                    Branch(place, column, after, self._names[candidates[place, column]])
                    for place, after in window.after.items()
                    for column in np.flatnonzero(goes_on[place]).tolist()
                ]
            parts = (part for window in windows for part in self._parts(window))
            for pack in together(parts, _n_tokens, PACK):
                log_p = self._model.predictions(*_packed(pack))
                start = 0
                for window in pack:
                    start += len(window.inputs)
                    for branch in window.branches:
                        for token in branch.tokens[1:]:
                            found[branch.place, branch.column] += log_p(start)[token]
                            start += 1
        return found

    def _cut(self, words: Iterable[str]) -> list[list[int]]:
        """The model's tokens of each word, one at least."""
        words = list(words)
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        if new:
            spaced = [f" {word}" if any(map(str.isalnum, word)) else word for word in new]
            self._known |= zip(new, self._model.tokens(spaced), strict=True)
        return [self._known[word] for word in words]

    def _windows(self, texts: Sequence[Sequence[str]], rows: Ids, columns: Ids) -> list[Window]:
        """Parts of texts, each of which begins half a window after the one before, with the places they predict."""
        step = self._context - self._context // 2
        windows: dict[tuple[int, int], Window] = {}
        words = [[[self._model.start], *self._cut(text)] for text in texts]
        inputs = [[token for word in text for token in word] for text in words]
        ends = [np.cumsum([len(word) for word in text]) for text in words]
        for place, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            before = int(ends[row][column])
            start = max(0, -(-(before - self._context) // step)) * step
            if (row, start) not in windows:
                windows[row, start] = Window(inputs[row][start : start + self._context])
            windows[row, start].after[place] = before - start
        return list(windows.values())

    def _parts(self, window: Window) -> Iterator[Window]:
        """The window with some of its branches at a time, and with no more inputs than these need; none without any.

        What a branch would have beyond the end of the model's input is left out.
        """
        some: list[Branch] = []
        n = 0
        for branch in window.branches:
            longest = self._model.window - branch.after + 1
            some.append(Branch(branch.place, branch.column, branch.after, branch.tokens[:longest]))
            n += len(some[-1].tokens) - 1
            if n >= ROOM:
                yield Window(window.inputs[: max(one.after for one in some)], branches=some)
                some, n = [], 0
        if some:
            yield Window(window.inputs[: max(one.after for one in some)], branches=some)


def _n_tokens(window: Window) -> int:
    return len(window.inputs) + sum(len(branch.tokens) - 1 for branch in window.branches)


def _packed(windows: Sequence[Window]) -> tuple[Ids, Ids, Any]:
    """Windows as one sequence: tokens (n,), their positions (n,), and which others each of them sees, (n, n).

    Of each window its inputs come first, then the tokens of its branches without the last, which predicts nothing.
    """
    tokens: list[int] = []
    rows: list[tuple[int, int, int, int]] = []  # window, branch, or 0 for inputs; position; inputs that are seen
    for number, window in enumerate(windows):
        tokens += window.inputs
        rows += ((number, 0, at, at + 1) for at in range(len(window.inputs)))
        for name, branch in enumerate(window.branches, start=1):
            tokens += branch.tokens[:-1]
            rows += ((number, name, branch.after + at, branch.after) for at in range(len(branch.tokens) - 1))
    of, branch_of, position, seen = np.array(rows, dtype=np.int64).T
    own = (branch_of[:, None] == branch_of) & (position[:, None] >= position)
    trunk = (branch_of == 0) & (position < seen[:, None])
    return np.array(tokens, dtype=np.int64), position, (of[:, None] == of) & (own | trunk)
