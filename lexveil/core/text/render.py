"""Rendering of tokens as text, either with ordinary English spacing or in the layout of the
source. A writer's layout can identify the writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from lexveil.core.text.encode import Encoded
from lexveil.core.text.pieces import Pieces, plain
from lexveil.core.text.strings import Strings

NOTHING: Mapping[int, str] = {}  # no replacement texts, for runs without detectors


def render(
    pieces: Pieces, token: npt.NDArray[np.int32], text_of: npt.NDArray[np.int32], n_texts: int
) -> Strings:
    """Render the tokens of a batch of texts with ordinary English spacing, each text separately.

    Args:
        token: (n,) number of each output token among the pieces, in text order.
        text_of: (n,) the text that each token belongs to, ascending.

    Returns:
        ``n_texts`` strings.
    """
    from lexveil.core.text.kernels.rendering import write

    bounds = np.searchsorted(text_of, np.arange(n_texts + 1))
    out = np.empty(int(np.diff(pieces.starts)[token].sum()) + len(token), dtype=np.uint8)
    ends = np.zeros(len(bounds), dtype=np.int64)
    write(token, bounds, pieces.place, pieces.letters, pieces.starts, out, ends)
    return Strings.of(out[: ends[-1]], ends)


def render_in_layout(
    tokens: Sequence[str | None],
    encoded: Encoded,
    texts: Sequence[str],
    written: Mapping[int, str] = NOTHING,
) -> list[str]:
    """Render output tokens in the layout of the source texts: white space between tokens,
    capitals, and gaps at dropped tokens.

    No noise protects the layout; the record states that the request asked for it.

    Args:
        tokens: one output token per token of ``encoded``; None for a token that is dropped or that
            ``written`` replaces.
        texts: the source texts, for their layout.
        written: the text that replaces a token verbatim, by the number of the token.
    """
    bounds = encoded.offsets()
    rendered = []
    for i, text in enumerate(texts):
        pieces: list[str] = []
        end = 0
        for at in range(int(bounds[i]), int(bounds[i + 1])):
            first = int(encoded.first_word[at])
            start = int(encoded.spans[first, 0])
            pieces.append(text[end:start])
            token = tokens[at]
            if token is not None:
                pieces.append(_capitals(plain(token), text[start : int(encoded.spans[first, 1])]))
            elif at in written:
                pieces.append(written[at])
            end = int(encoded.spans[first + int(encoded.n_words[at]) - 1, 1])
        rendered.append("".join(pieces) + text[end:])
    return rendered


def _capitals(word: str, model: str) -> str:
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word
