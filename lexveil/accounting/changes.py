"""Changes: the fate of each token of a text, and the positions of the token and of its
replacement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.accounting.budgets import Action
from lexveil.text.encode import Encoded, Lexicon
from lexveil.text.pieces import escaped, plain
from lexveil.text.render import NOTHING
from lexveil.types import Ids, Int32


class Fate(StrEnum):
    """What became of a token."""

    REPLACED = "replaced"  # noise was drawn, and another token came out
    RANDOM = "random"  # a uniform draw from the vocabulary, as for unknown words
    UNCHANGED = "unchanged"  # noise was drawn, and the token came out as itself
    KEPT = "kept"  # unprotected: copied without noise
    DROPPED = "dropped"
    FOUND = "found"  # a detector found it, and what its type asks for stands in its place


class Part(NamedTuple):
    """A stretch of a text.

    Attributes:
        fate: None between two tokens.
        token: the number of the token in its text, from 0; -1 between two tokens.
    """

    text: str
    fate: Fate | None
    token: int


@dataclass(frozen=True, slots=True, repr=False)
class TextChanges:
    """One text, what came of it, and what became of each of its n tokens.

    Attributes:
        source_spans: (n, 2) characters of each token in ``source``.
        output_spans: (n, 2) characters of what came of it in ``output``; -1 where it was dropped.
    """

    source: str
    output: str
    fates: Sequence[Fate]
    source_spans: Int32
    output_spans: Int32

    def source_parts(self, n_tokens: int | None = None) -> list[Part]:
        """The source cut at its tokens; joined they are the text, or what of it its first
        ``n_tokens`` tokens span.
        """
        return list(_parts(self.source, self.source_spans[:n_tokens], self.fates, n_tokens))

    def output_parts(self, n_tokens: int | None = None) -> list[Part]:
        """The output, likewise."""
        return list(_parts(self.output, self.output_spans[:n_tokens], self.fates, n_tokens))

    def source_of(self, token: int) -> str:
        """A token as it stands in the source."""
        start, end = self.source_spans[token].tolist()
        return self.source[start:end]

    def to_dict(self) -> dict[str, object]:
        """Texts, fates and spans as JSON values; the output of a token that was dropped is null."""
        spans = zip(self.fates, self.source_spans.tolist(), self.output_spans.tolist(), strict=True)
        tokens = [
            {"fate": f, "source": source, "output": None if out[0] < 0 else out}
            for f, source, out in spans
        ]
        return {"source": self.source, "output": self.output, "tokens": tokens}

    def counts(self) -> dict[Fate, int]:
        """How many tokens met each fate, in the order of ``Fate``; without those that none met."""
        counted = Counter(self.fates)
        return {fate: counted[fate] for fate in Fate if counted[fate]}


def _parts(text: str, spans: Int32, fates: Sequence[Fate], n_tokens: int | None) -> Iterator[Part]:
    done = 0
    for token, (start, end) in enumerate(spans.tolist()):
        if start < 0:
            continue
        if start > done:
            yield Part(text[done:start], None, -1)
        yield Part(text[start:end], fates[token], token)
        done = end
    if done < len(text) and (n_tokens is None or n_tokens >= len(fates)):
        yield Part(text[done:], None, -1)


def changes_of(
    encoded: Encoded,
    texts: Sequence[str],
    outputs: Sequence[str],
    action: npt.NDArray[np.int8],
    rows: Ids,
    lexicon: Lexicon,
    written: Mapping[int, str] = NOTHING,
) -> list[TextChanges]:
    """What became of each token of a batch of texts.

    Args:
        encoded: the n tokens of the source texts.
        texts: the source texts.
        outputs: what came of each.
        action: (n,) ``Action`` of each token.
        rows: (n,) row of what came out in the vocabulary; -1 where kept or dropped.
        lexicon: what the texts were looked up in.
        written: what stands in the place of found tokens, by their number.

    Raises:
        ValueError: if an output does not hold these tokens in this order.
    """
    starts, last = encoded.first_word, encoded.first_word + encoded.n_words - 1
    source_spans = (
        np.stack([encoded.spans[starts, 0], encoded.spans[last, 1]], axis=1)
        if len(starts)
        else _NO_SPANS
    )
    fates = fates_of(action, encoded.rows, rows)
    forms = [
        lexicon.tokens[row] if row >= 0 else encoded.words[first] if fate == Fate.KEPT else None
        for row, first, fate in zip(rows.tolist(), starts.tolist(), fates, strict=True)
    ]
    for token, text in written.items():
        forms[token] = escaped(text)
    bounds = encoded.offsets().tolist()
    return [
        TextChanges(
            text,
            output,
            fates[start:end],
            source_spans[start:end],
            output_spans(
                output, [None if token is None else plain(token) for token in forms[start:end]]
            ),
        )
        for text, output, start, end in zip(texts, outputs, bounds[:-1], bounds[1:], strict=True)
    ]


_NO_SPANS: Int32 = np.zeros((0, 2), dtype=np.int32)


def fates_of(action: npt.NDArray[np.int8], source_rows: Ids, output_rows: Ids) -> list[Fate]:
    """The fate of each of n tokens, from what was done to it and its rows in the vocabulary before
    and after.
    """
    fixed = {Action.KEPT: Fate.KEPT, Action.DROPPED: Fate.DROPPED, Action.SAMPLED: Fate.RANDOM}
    fixed |= dict.fromkeys((Action.PLACEHOLDER, Action.PSEUDONYM, Action.DIGITS), Fate.FOUND)
    same = (source_rows == output_rows).tolist()
    return [
        fixed.get(Action(number), Fate.UNCHANGED if is_same else Fate.REPLACED)
        for number, is_same in zip(action.tolist(), same, strict=True)
    ]


def output_spans(output: str, written: Sequence[str | None]) -> Int32:
    """Where each output token stands in its text, shape (n, 2); -1 for those that are None.

    Args:
        written: the tokens in lower case, in order. Between two of them stands nothing but white
            space, and the text may have the writer's capitals, if it was asked to keep them.

    Raises:
        ValueError: if the text is another one.
    """
    spans, done = np.full((len(written), 2), -1, dtype=np.int32), 0
    for token, form in enumerate(written):
        if form is None:
            continue
        while done < len(output) and output[done].isspace():
            done += 1
        for cased in (form, form[:1].upper() + form[1:], form.upper()):
            if output.startswith(cased, done):
                spans[token] = done, done + len(cased)
                done += len(cased)
                break
        else:
            raise ValueError(f"token {token} is not at character {done} of the output")
    if output[done:].strip():
        raise ValueError(f"after its last token, at character {done}, the output goes on")
    return spans
