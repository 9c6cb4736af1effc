"""Whether texts are of the model's language: what only the operator is told, and what is refused."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from lexveil.accounting.language_finding import LanguageFinding
from lexveil.artifacts.model import Model
from lexveil.errors import RequestError
from lexveil.formats.chunks import Chunk
from lexveil.formats.messages import name
from lexveil.privatization.engine.batch import selected_texts
from lexveil.privatization.engine.worker import BatchCounts
from lexveil.text.encode import Lexicon, tokenize
from lexveil.text.languages.detection import other_language
from lexveil.text.normal_forms import is_punctuation

WORDS = 10_000  # the first ones, which are enough to tell languages apart
CHARACTERS = 8 * WORDS


class NoSpaces(RequestError):
    """A text is in a script without spaces between words.

    Attributes:
        row: its number, from 1.
        script: its name.
    """

    def __init__(self, message: str, row: int, script: str) -> None:
        super().__init__(message)
        self.row, self.script = row, script


class LanguageCheck:
    """Looks at the first words of an input, and refuses what cannot be cut into words.

    Args:
        columns: the names of the text columns.
    """

    def __init__(self, model: Model, lexicon: Lexicon, columns: Sequence[str]) -> None:
        self.model, self.lexicon, self.columns = model, lexicon, columns
        self.counts: Counter[str] = Counter()
        self.n_words = 0

    def add(self, chunk: Chunk, counted: BatchCounts) -> None:
        """Look at the next chunk.

        Raises:
            NoSpaces: if a text is in a script without spaces; it says which row.
        """
        if counted.without_spaces is not None:
            row, column, script = counted.without_spaces
            number = chunk.first + row
            place = f"{chunk.file + ', ' if chunk.file else ''}row {number:,}"
            raise NoSpaces(
                f"{place}: {name(self.columns[column])} is in {script} script without spaces between words, so that a "
                "clause would be one unknown word; leave the row out, or put spaces between its words",
                number,
                script,
            )
        if self.n_words < WORDS:
            self._count(chunk)

    def _count(self, chunk: Chunk) -> None:
        texts, left = list[str](), CHARACTERS
        for text in (text for row in selected_texts(chunk) for text in row if text is not None):
            texts.append(text[:left])
            left -= len(text)
            if left <= 0:
                break
        tokens = tokenize(texts, self.lexicon.language)
        forms = tokens.forms
        for form, count in zip(forms, np.bincount(tokens.ids, minlength=len(forms)).tolist(), strict=True):
            if not is_punctuation(form):
                self.counts[form] += count
                self.n_words += count

    def tell(self) -> None:
        """Tell the operator on standard error, if there is something to tell."""
        if not self.model.suppress_language_warning and (finding := self.finding()) is not None:
            print(f"the input {finding.sentence}", file=sys.stderr)

    def finding(self) -> LanguageFinding | None:
        """What the operator is told; None if nothing speaks against the model's language."""
        if (found := other_language(self.counts, self.lexicon.language)) is None:
            return None
        looks_like, shares = found
        n_known = sum(count for form, count in self.counts.items() if form in self.lexicon.rows)
        return LanguageFinding(
            model=self.model.name,
            language=self.lexicon.language,
            looks_like=looks_like,
            function_words=shares,
            known=n_known / self.n_words,
            words=self.n_words,
        )
