"""What an operator is told where texts look like another language than the model's; it is counted from the source."""

from __future__ import annotations

from lexveil.accounting.results import Result
from lexveil.text.languages import LANGUAGES


class LanguageFinding(Result):
    """Texts look like another language than the model's."""

    model: str
    """The model."""
    language: str
    """Of the model."""
    looks_like: str
    """The language of which the texts have most function words."""
    function_words: dict[str, float]
    """Share of the words that are function words of the two languages."""
    known: float
    """Share of the words that the model's vocabulary knows."""
    words: int
    """That were looked at: the first ones."""

    @property
    def sentence(self) -> str:
        """The same for people."""
        shares = ", ".join(f"{code} {share:.0%}" for code, share in self.function_words.items())
        name = LANGUAGES[self.looks_like].name
        return (
            f"looks like {name} (function words {shares}); the model `{self.model}` knows {self.known:.0%} of its "
            f"words. Take a model of {name} (docs/how-to/languages.md)"
        )
