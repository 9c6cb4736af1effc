"""Changes in a text: the fate of each token (such as replaced, kept or dropped), and the positions
of the token and of its replacement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Ids, Int32
from lexveil.core.accounting.budgets import Action
from lexveil.core.text.encode import Encoded, Lexicon
from lexveil.core.text.pieces import escaped, plain
from lexveil.core.text.render import NOTHING


class Fate(StrEnum):
    """Fate of a token: what happened to it between the source text and the output."""

    REPLACED = "replaced"  # noise was drawn, and the output is another token
    RANDOM = "random"  # a uniform draw from the vocabulary, as for unknown words
    UNCHANGED = "unchanged"  # noise was drawn, and the output is the same token
    KEPT = "kept"  # unprotected: copied without noise
    DROPPED = "dropped"
    FOUND = "found"  # a detector found it, and the action of its type replaced it


class Part(NamedTuple):
    """A part of a text: one token, or the characters between two tokens.

    Attributes:
        text: characters of the part.
        fate: fate of the token; None for the characters between two tokens.
        token: number of the token in its text, from 0; -1 for the characters between two tokens.
    """

    text: str
    fate: Fate | None
    token: int


@dataclass(frozen=True, slots=True, repr=False)
class TextChanges:
    """Source text with its privatized output, and what happened to each of its n tokens.

    Attributes:
        source: the source text.
        output: the output text.
        fates: (n,) fate of each token.
        source_spans: (n, 2) character span of each token in ``source``.
        output_spans: (n, 2) character span of each token's replacement in ``output``; -1 for a
            dropped token.
    """

    source: str
    output: str
    fates: Sequence[Fate]
    source_spans: Int32
    output_spans: Int32

    def source_parts(self, n_tokens: int | None = None) -> list[Part]:
        """Divide the source into tokens and the characters between them. Joined together, the
        parts give the whole source, or its beginning with ``n_tokens`` tokens.
        """
        return list(_parts(self.source, self.source_spans[:n_tokens], self.fates, n_tokens))

    def output_parts(self, n_tokens: int | None = None) -> list[Part]:
        """Divide the output into tokens and the characters between them. Joined together, the
        parts give the whole output, or its beginning with ``n_tokens`` tokens.
        """
        return list(_parts(self.output, self.output_spans[:n_tokens], self.fates, n_tokens))

    def source_of(self, token: int) -> str:
        """Return the characters of a token in the source text."""
        start, end = self.source_spans[token].tolist()
        return self.source[start:end]

    def to_dict(self) -> dict[str, object]:
        """Return the texts, fates and character spans as JSON values; the output span of a dropped
        token is null.
        """
        spans = zip(self.fates, self.source_spans.tolist(), self.output_spans.tolist(), strict=True)
        tokens = [
            {"fate": f, "source": source, "output": None if out[0] < 0 else out}
            for f, source, out in spans
        ]
        return {"source": self.source, "output": self.output, "tokens": tokens}

    def counts(self) -> dict[Fate, int]:
        """Count the tokens with each fate, in the order of ``Fate``. A fate that no token has is
        left out.
        """
        counted = Counter(self.fates)
        return {fate: counted[fate] for fate in Fate if counted[fate]}


def _parts(text: str, spans: Int32, fates: Sequence[Fate], n_tokens: int | None) -> Iterator[Part]:
    position = 0
    for token, (start, end) in enumerate(spans.tolist()):
        if start < 0:
            continue
        if start > position:
            yield Part(text[position:start], None, -1)
        yield Part(text[start:end], fates[token], token)
        position = end
    if position < len(text) and (n_tokens is None or n_tokens >= len(fates)):
        yield Part(text[position:], None, -1)


def changes_of(
    encoded: Encoded,
    texts: Sequence[str],
    outputs: Sequence[str],
    action: npt.NDArray[np.int8],
    rows: Ids,
    lexicon: Lexicon,
    written: Mapping[int, str] = NOTHING,
) -> list[TextChanges]:
    """Align each text of a batch with its output, token by token.

    Args:
        encoded: the n tokens of the source texts.
        texts: the source texts.
        outputs: the output of each text.
        action: (n,) ``Action`` of each token.
        rows: (n,) row of the output token in the vocabulary; -1 for a kept or dropped token.
        lexicon: vocabulary and rules by which the texts were cut into tokens.
        written: text that replaces a found token, by the number of the token.

    Raises:
        ValueError: if an output does not consist of these tokens in this order.
    """
    starts = encoded.first_word
    last = encoded.first_word + encoded.n_words - 1
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
    """Return the fate of each of n tokens (such as perturbed, kept or dropped), given its action
    and its vocabulary rows in source and output.
    """
    fixed = {Action.KEPT: Fate.KEPT, Action.DROPPED: Fate.DROPPED, Action.SAMPLED: Fate.RANDOM}
    fixed |= dict.fromkeys((Action.PLACEHOLDER, Action.PSEUDONYM, Action.DIGITS), Fate.FOUND)
    same = (source_rows == output_rows).tolist()
    return [
        fixed.get(Action(number), Fate.UNCHANGED if is_same else Fate.REPLACED)
        for number, is_same in zip(action.tolist(), same, strict=True)
    ]


def output_spans(output: str, written: Sequence[str | None]) -> Int32:
    """Return the character span of each output token in the output text, shape (n, 2); the span is
    -1 for a token that is None.

    Args:
        written: the tokens in lower case, in order. Only white space may separate two tokens; the
            text may have the capitals of the source.

    Raises:
        ValueError: if the text does not consist of these tokens.
    """
    spans = np.full((len(written), 2), -1, dtype=np.int32)
    position = 0
    for token, form in enumerate(written):
        if form is None:
            continue
        while position < len(output) and output[position].isspace():
            position += 1
        for cased in (form, form[:1].upper() + form[1:], form.upper()):
            if output.startswith(cased, position):
                spans[token] = position, position + len(cased)
                position += len(cased)
                break
        else:
            raise ValueError(f"token {token} is not at character {position} of the output")
    if output[position:].strip():
        raise ValueError(
            f"after its last token, at character {position}, the output has further text"
        )
    return spans
