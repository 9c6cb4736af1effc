"""GPT-2: how surprising a text is, and how likely each word is after those before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lexveil.errors import RequestError
from lexveil.evaluation.base import PerplexityScores, together
from lexveil.evaluation.local_model import load, one_thread, read_model
from lexveil.types import Flags, Floats, Ids

BATCH = 2048  # tokens at a time: each has as many float32 scores as there are words, 50,257 of GPT-2

CUT = 100_000  # words of texts whose tokens are kept
CONTEXT = 512  # tokens that a word is seen after, at most; half of them at least where so many stand before it
ROOM = 256  # tokens of candidates that are tried in one pass over a window


class Gpt2:
    """A causal model of transformers, read from a folder of this machine; nothing is fetched.

    Each text begins with the mark of a new text, so that its first token is predicted too. A text longer than the
    model's input is read in windows, each of which begins half a window after the one before: every token is predicted
    once, from half a window at least, or from all that stands before it.

    Source: CLMLDP section 5 (GPT-2); the paper does not say how it cut long texts.

    Attributes:
        start: number of the mark of a new text.
        window: inputs the model takes.
    """

    name = "gpt2"

    def __init__(self, folder: str) -> None:
        """Load model and tokenizer.

        Raises:
            RequestError: if the libraries are not installed, or the folder holds no such model.
        """
        what = f"language model {self.name}"
        self._tokenizer, model = read_model("AutoModelForCausalLM", folder, "gpt2_model", what)
        self._torch = load("torch", what)
        self._model = model.eval()
        if model.config.bos_token_id is None:
            raise RequestError(
                f"{folder} (params.yaml: evaluation.gpt2_model): the model has no mark of a new text (bos_token_id in "
                "config.json), from which a first token could be predicted; give a model of the kind of GPT-2"
            )
        self.start = int(model.config.bos_token_id)
        self.window = int(model.config.max_position_embeddings)

    def score(self, texts: Sequence[str]) -> PerplexityScores:
        """Score each text, windows of about the same length at a time.

        Nothing is unknown to a model of bytes. The last digits of a score depend on the texts it is scored with.
        """
        log_sum, n_tokens = np.zeros(len(texts)), np.zeros(len(texts), dtype=np.int64)
        windows: list[tuple[int, list[int], int]] = []  # row, tokens, and how many of these are predicted in others
        for row, text in enumerate(texts):
            ids = [self.start, *self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]]
            n_tokens[row] = len(ids) - 1
            windows += ((row, ids[start : start + self.window], done) for start, done in self._starts(len(ids)))
        windows.sort(key=lambda window: -len(window[1]))
        with one_thread():
            while windows:
                n_windows = max(1, BATCH // len(windows[0][1]))
                batch, windows = windows[:n_windows], windows[n_windows:]
                np.add.at(log_sum, [row for row, _, _ in batch], self._log_sums(batch))
        return PerplexityScores(log_sum, n_tokens, np.zeros(len(texts), dtype=np.int64))

    def _starts(self, n_ids: int) -> list[tuple[int, int]]:
        """Where windows begin, and how many of their tokens are given or were predicted: the mark is given."""
        if n_ids < 2:
            return []
        step = self.window // 2
        starts = range(0, max(n_ids - self.window, 0) + step, step)
        return [(start, 1 if start == 0 else self.window - step) for start in starts]

    def _log_sums(self, batch: list[tuple[int, list[int], int]]) -> Any:
        torch = self._torch
        longest = len(batch[0][1])
        ids = torch.full((len(batch), longest), self.start)
        real, counted = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for number, (_, tokens, done) in enumerate(batch):
            ids[number, : len(tokens)] = torch.tensor(tokens)
            real[number, : len(tokens)] = 1
            counted[number, done : len(tokens)] = True
        with torch.inference_mode():
            logits = self._model(input_ids=ids, attention_mask=real).logits[:, :-1]
            surprise = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
            return -(surprise.double() * counted[:, 1:]).sum(dim=1).numpy()

    def tokens(self, words: Sequence[str]) -> list[list[int]]:
        """The numbers of the tokens of each of some words; the mark of a new text where there would be none."""
        cut = self._tokenizer(list(words), add_special_tokens=False)["input_ids"]
        return [numbers or [self.start] for numbers in cut]

    def predictions(self, tokens: Ids, position: Ids, sees: Flags) -> Callable[[int], Floats]:
        """What the model expects after each of n inputs.

        Args:
            tokens, position: (n,) of each input.
            sees: (n, n) whether an input, by row, sees another; each sees itself.

        Returns:
            Given the number of an input, the natural log probability of every token after it.
        """
        torch = self._torch
        hidden = torch.finfo(torch.float32).min
        mask = torch.where(torch.from_numpy(sees), 0.0, hidden)[None, None]
        with torch.inference_mode():
            given = {"input_ids": torch.from_numpy(tokens)[None], "position_ids": torch.from_numpy(position)[None]}
            logits = self._model(**given, attention_mask=mask, use_cache=False).logits[0]

        def after(number: int) -> Floats:
            log_p: Floats = torch.log_softmax(logits[number].double(), 0).numpy()
            return log_p

        return after


class Branch(NamedTuple):
    """A candidate of several tokens, tried after the first ``after`` inputs of a window.

    Attributes:
        place, column: which of the candidates it is.
    """

    place: int
    column: int
    after: int
    tokens: list[int]


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
        self._cut = lru_cache(CUT)(self._tokens)
        self._names = [self._tokens(name) for name in names]
        self._first = np.array([tokens[0] for tokens in self._names], dtype=np.int64)
        self._is_long = np.array([len(tokens) > 1 for tokens in self._names], dtype=np.bool_)

    def log_probability(
        self, texts: Sequence[Sequence[str]], rows: Ids, columns: Ids, candidates: Ids, least: Floats
    ) -> Floats:
        """See ``NextWord``."""
        log_p = np.full(candidates.shape, -np.inf)
        with one_thread():
            for inputs, places in self._windows(texts, rows, columns):
                predicted = self._model.predictions(*_layout(inputs, []))
                branches = []
                for place, after in places:
                    log_p[place] = predicted(after - 1)[self._first[candidates[place]]]
                    goes_on = (
                        self._is_long[candidates[place]] & (log_p[place] >= least[place]) & (candidates[place] >= 0)
                    )
                    branches += [
                        self._branch(place, column, after, candidates) for column in np.flatnonzero(goes_on).tolist()
                    ]
                for part in together(branches, lambda branch: len(branch.tokens) - 1, ROOM):
                    trunk = inputs[: max(branch.after for branch in part)]
                    predicted, at = self._model.predictions(*_layout(trunk, part)), len(trunk)
                    for branch in part:
                        for token in branch.tokens[1:]:
                            log_p[branch.place, branch.column] += predicted(at)[token]
                            at += 1
        return log_p

    def _tokens(self, word: str) -> list[int]:
        return self._model.tokens([f" {word}" if any(map(str.isalnum, word)) else word])[0]

    def _branch(self, place: int, column: int, after: int, candidates: Ids) -> Branch:
        """What it would have beyond the end of the model's input is left out."""
        tokens = self._names[candidates[place, column]]
        return Branch(place, column, after, tokens[: self._model.window - after + 1])

    def _windows(
        self, texts: Sequence[Sequence[str]], rows: Ids, columns: Ids
    ) -> Iterable[tuple[list[int], list[tuple[int, int]]]]:
        """Parts of texts, each of which begins half a window after the one before.

        Returns:
            The inputs of each, and the places that it predicts, with how many inputs stand before each.
        """
        step = self._context - self._context // 2
        windows: dict[tuple[int, int], tuple[list[int], list[tuple[int, int]]]] = {}
        words = [[[self._model.start], *map(self._cut, text)] for text in texts]
        inputs = [[token for word in text for token in word] for text in words]
        ends = [np.cumsum([len(word) for word in text]) for text in words]
        for place, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            before = int(ends[row][column])
            start = max(0, -(-(before - self._context) // step)) * step
            window = windows.setdefault((row, start), (inputs[row][start : start + self._context], []))
            window[1].append((place, before - start))
        return windows.values()


def _layout(inputs: Sequence[int], branches: Sequence[Branch]) -> tuple[Ids, Ids, Flags]:
    """A window and branches as one sequence: tokens (n,), their positions (n,), which others each of them sees, (n, n).

    The inputs come first, then the tokens of branches without the last, which predicts nothing.
    """
    tokens = [*inputs, *(token for branch in branches for token in branch.tokens[:-1])]
    rows = [(0, at, at + 1) for at in range(len(inputs))]  # branch, or 0 for inputs; position; inputs that are seen
    for name, branch in enumerate(branches, start=1):
        rows += ((name, branch.after + at, branch.after) for at in range(len(branch.tokens) - 1))
    branch_of, position, seen = np.array(rows, dtype=np.int64).T
    own = (branch_of[:, None] == branch_of) & (position[:, None] >= position)
    trunk = (branch_of == 0) & (position < seen[:, None])
    return np.array(tokens, dtype=np.int64), position, own | trunk
