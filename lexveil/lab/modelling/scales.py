"""Word scales, which give words scores (such as sentiment) that rewriting should preserve:
construction from scored words or labelled texts, and display.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lexveil.base.errors import RequestError, option
from lexveil.core.accounting.results import Result, Sha256
from lexveil.core.embeddings.purposes import spread
from lexveil.core.text.languages import language_of
from lexveil.core.text.normal_forms import token_of
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.user_lists import PUBLIC, SUFFIX, write_purpose
from lexveil.io.formats.base import InputRow, Source
from lexveil.io.formats.readers import open_table
from lexveil.io.formats.registry import as_source, known_endings
from lexveil.io.formats.values import plain_value, text_value
from lexveil.lab.evaluation.ngrams import Ngrams

OF_WORDS = ("word", "score")
# The weight at this percentile becomes score 1; the few larger weights are clipped.
STRONGEST = 90
SURPRISE = 3.0  # a weight of more standard deviations is not due to chance
ENDS = 12  # number of words shown for each end


class ShownScale(Result):
    """A word scale, and its coverage of a model's vocabulary.

    Attributes:
        public: Whether the author of the scale declares that it was made without private texts.
        words: Number of words of the vocabulary on the scale, whose score is not 0.
        share_of_tokens: Share of all tokens of the model's corpus that are on the scale.
        lowest: Frequent words at the lower end.
        highest: Frequent words at the upper end.
    """

    name: str
    sha256: Sha256
    public: bool
    model: str
    words: int
    share_of_tokens: float
    lowest: list[str]
    highest: list[str]


def build(
    source: Path,
    output: Path,
    model: str | None = None,
    text_column: str = "text",
    label_column: str = "label",
    *,
    as_given: bool = False,
    is_public: bool = False,
) -> None:
    """Build a word scale from a file of scored words or of labelled texts, and write it to a file.

    Args:
        as_given: whether the scale has the words of the file only. Otherwise scores of other words
            are predicted from words near them in the space of the model.
        is_public: whether the file was made without private texts.

    Raises:
        RequestError: if the file cannot be read as scored words or as labelled texts, does not have
            exactly two labels, or has no known word.
    """
    if output.suffix != SUFFIX or output.exists():
        raise RequestError(f"{output}: exists already, or its name does not end in {SUFFIX}")
    opened = as_source(source)
    if opened is None:
        raise RequestError(
            f"{source}: no such file, or its name ends in none of {known_endings('or')}"
        )
    using = Model.load(name=model)
    space = using.embedding("S1")
    with open_table(opened, None) as table:
        if {*OF_WORDS} <= {*table.columns}:
            known = dict(_scored(table.rows, opened))
            how = f"{len(known):,} words with scores"
        elif {text_column, label_column} <= {*table.columns}:
            texts, labels = _labelled(table.rows, opened, text_column, label_column)
            known = _trained(texts, labels, language_of(using.language).function_words)
            how = f"{len(texts):,} texts with labels"
        else:
            raise RequestError(
                f"{source}: has neither the columns {' and '.join(OF_WORDS)} nor the columns "
                f"{text_column} and {label_column}; name other columns by "
                f"{option('text_column')} and {option('label_column')}"
            )
    there = {token: score for token, score in known.items() if token in {*space.tokens}}
    if len({*there.values()}) < 2:
        raise RequestError(
            f"{source}: all words of the model would have the same score; check that the file "
            "has the language of the model"
        )
    scores = known if as_given else spread(space, there)
    write_purpose(
        {word: score for word, score in scores.items() if score},
        f"{output.stem}: of {how}",
        is_public,
        output,
    )


def _scored(rows: Iterator[InputRow], source: Source) -> Iterator[tuple[str, float]]:
    for row in rows:
        where = source.location(row.line)
        try:
            word = token_of(str(row.values["word"]))
            score = float(str(row.values["score"]))
        except (KeyError, TypeError, ValueError):
            raise RequestError(f"{where}: needs a word and a score, which is a number") from None
        if not -1 <= score <= 1:  # NaN, too
            raise RequestError(f"{where}: the score must be between -1 and 1")
        yield word, score


def _labelled(
    rows: Iterator[InputRow], source: Source, text_column: str, label_column: str
) -> tuple[list[str], list[str]]:
    texts = []
    labels = []
    for row in rows:
        where = source.location(row.line)
        text = text_value(row.values.get(text_column), text_column, where)
        label = plain_value(row.values.get(label_column), label_column, where)
        if text and label is not None:
            texts.append(text)
            labels.append(label)
    if len(kinds := {*labels}) != 2:
        raise RequestError(
            f"{source.shown}: column {label_column} has {len(kinds)} labels; a scale needs "
            "exactly 2"
        )
    return texts, labels


def _trained(
    texts: list[str], labels: list[str], function_words: frozenset[str]
) -> dict[str, float]:
    """Return the association of each word with the label, from -1 to 1: the naive Bayes weights of
    the words whose weight is significant.

    The weight of a word is the difference of its log odds between the texts of the two labels,
    divided by its standard deviation for the test (Monroe, Colaresi & Quinn 2008, eq. 15 to 22,
    with the prior of Jeffreys). An equal number of other words, the most frequent ones, get 0,
    because predicting scores of more words needs the middle of the scale, too.
    """
    ngrams, counts = Ngrams.counted(texts)
    single = np.flatnonzero(ngrams.columns < len(ngrams.words))
    words = [token_of(str(ngrams.words[place])) for place in ngrams.columns[single].tolist()]
    is_word = np.array([word.isalpha() for word in words], dtype=np.bool_)
    is_upper = np.array([label == max(labels) for label in labels])
    present = counts[:, single] > 0
    with_word = np.array(
        [np.asarray(present[side].sum(axis=0), dtype=np.float64) for side in (is_upper, ~is_upper)]
    )
    odds = (with_word + 0.5) / (np.array([[is_upper.sum()], [(~is_upper).sum()]]) - with_word + 0.5)
    weights = np.log(odds[0] / odds[1])
    surprise = np.abs(weights) / np.sqrt((1 / (with_word + 0.5)).sum(axis=0))
    tells = (surprise > SURPRISE) & is_word & ~np.isin(words, sorted(function_words))
    if not tells.any():
        raise RequestError("no word of the texts is significantly associated with a label")
    scores = np.where(
        tells, np.clip(weights / np.percentile(np.abs(weights[tells]), STRONGEST), -1, 1), 0.0
    ).round(2)
    of_others = np.where(tells, -1.0, with_word.sum(axis=0))
    known = tells | (of_others >= max(1.0, np.sort(of_others)[-min(int(tells.sum()), len(words))]))
    return {
        word: score
        for word, score, is_known in zip(words, scores.tolist(), known.tolist(), strict=True)
        if is_known
    }


def shown(name: str, model: str | None = None) -> ShownScale:
    """Return a word scale with the facts that `lexveil purpose show` prints.

    Raises:
        RequestError: if there is no scale of this name, or it gives all words of the model the same
            score.
    """
    using = Model.load(name=f"{model or ''}+{name}")
    (purpose,) = using.purposes
    space = using.embedding("S1")
    scores = purpose.of(space.tokens)
    on = np.flatnonzero(scores)
    # Among equal scores, frequent words come first, because tokens are ordered by frequency.
    lowest, highest = (
        np.argsort(side, kind="stable")[:ENDS].tolist() for side in (scores, -scores)
    )
    return ShownScale(
        name=purpose.name,
        sha256=purpose.sha256,
        public=purpose.is_public,
        model=using.name.partition("+")[0],
        words=len(on),
        share_of_tokens=round(float(space.counts[on].sum() / space.counts.sum()), 4),
        lowest=[space.tokens[row] for row in lowest if scores[row] < 0],
        highest=[space.tokens[row] for row in highest if scores[row] > 0],
    )


def as_text(scale: ShownScale) -> list[str]:
    """Format a word scale as lines of text."""
    origin = (
        "public"
        if scale.public
        else f"not declared public ({PUBLIC!r} is missing), so a release refuses it"
    )
    return [
        f"{scale.name}: {origin}; sha256 {scale.sha256[:12]}",
        f"{scale.words:,} words of the model {scale.model} are on the scale, "
        f"{scale.share_of_tokens:.1%} of the tokens of its corpus",
        f"lower end: {', '.join(scale.lowest)}",
        f"upper end: {', '.join(scale.highest)}",
    ]
