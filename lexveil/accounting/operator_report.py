"""What only the operator of a run may see: it compares a source with its output, or counts the source.

One number of nine digits that does so tells a short text exactly, whatever epsilon is.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt

from lexveil.accounting.language_finding import LanguageFinding
from lexveil.accounting.record import Counts, ModelReference, json_schema
from lexveil.accounting.results import Number, Result, Sha256

SCHEMA = 2
MUCH_KEPT = 0.5  # of the content words of a text: most of what it says
SECRECY = (
    "As secret as the source: exact statistics of source and output tell short texts whatever epsilon is. Publish the "
    "output and its record, never this file"
)


class ActionCounts(Result):
    """How many tokens of a class met each action."""

    perturbed: NonNegativeInt
    kept: NonNegativeInt
    dropped: NonNegativeInt
    sampled: NonNegativeInt


class ClassCounts(Result):
    """Tokens by class and action."""

    word: ActionCounts
    stopword: ActionCounts
    punctuation: ActionCounts
    oov: ActionCounts


class DocumentShares(Result):
    """How much of each document came out as it went in, of its content words (neither stop words nor punctuation)."""

    documents: NonNegativeInt
    """In which there is a content word."""
    median_unchanged: float
    """Share of its content words that came out as themselves, of the middle document."""
    worst_tenth_unchanged: float
    """Of the tenth of the documents that kept most: at least so much."""
    nearly_verbatim: NonNegativeInt
    """Documents that kept nine tenths of them or more."""

    @property
    def sentence(self) -> str:
        """For people."""
        return (
            f"of the content words of a text {self.median_unchanged:.0%} came out as they are (median), in a tenth of "
            f"the texts {self.worst_tenth_unchanged:.0%} or more; {self.nearly_verbatim:,} of {self.documents:,} texts "
            "came out nearly as they are"
        )

    @property
    def caution(self) -> str | None:
        """What is to be said where many texts keep much."""
        if self.worst_tenth_unchanged <= MUCH_KEPT:
            return None
        return (
            f"CAUTION: a tenth of the texts keep {self.worst_tenth_unchanged:.0%} or more of their content words: they "
            "are short, so that their tokens get a large epsilon, or epsilon is large; set a smaller max_token_epsilon"
        )


class RunCounts(Result):
    """All that is counted of a source and its output."""

    n_texts: NonNegativeInt
    n_documents: NonNegativeInt
    n_tokens_in: NonNegativeInt
    n_tokens_out: NonNegativeInt
    n_words_in: NonNegativeInt
    n_words_out: NonNegativeInt
    n_perturbed: NonNegativeInt
    n_kept: NonNegativeInt
    n_dropped: NonNegativeInt
    n_sampled: NonNegativeInt
    by_class: ClassCounts
    share_unchanged: float | None
    """Of the perturbed tokens: replaced by themselves."""
    mean_cosine: float | None
    """Of the vectors of perturbed tokens that changed, and of their replacements."""
    unprotected_share: float
    """Of all tokens: kept."""
    epsilon_spent_mean: float | None
    """Per text."""
    found: dict[str, dict[str, NonNegativeInt]] | None = None
    """Tokens that detectors found, by type and action; they are in no class. Null without a detector."""

    def public(self, **further: int | None) -> Counts:
        """What of it a record publishes; ``further`` are counts of rows and of formula cells."""
        same = ("n_texts", "n_documents", "n_perturbed", "n_kept", "n_dropped", "n_sampled", "n_words_out")
        values: dict[str, object] = {name: getattr(self, name) for name in same} | further
        if self.found is not None:
            values["found"] = self.found
        return Counts(n_tokens=self.n_tokens_in, **values)


class LedgerCosts(Result):
    """What was requested of the ledger, and what it charged."""

    id: str
    """Of the transaction, as the record has it."""
    head: Sha256
    """The ledger's chain after the output was paid for."""
    cap: Number | None
    """Lifetime epsilon of a subject."""
    documents_requested: NonNegativeInt
    documents_charged: NonNegativeInt
    documents_withheld: NonNegativeInt
    """Left out, and not charged, because their subject's budget is exhausted."""
    subjects: NonNegativeInt
    """Of all documents requested."""
    subjects_near: NonNegativeInt = 0
    """Of these, who differ from another one in capitals or punctuation only: probably one, with two budgets."""
    subjects_exhausted: NonNegativeInt
    """Of these, who had documents withheld."""
    subjects_charged: NonNegativeInt = 0
    """Of these, who pay."""
    epsilon_charged: Number
    """Spent over all subjects."""
    largest_balance: Number
    """The most that one of its subjects has spent, over all releases."""


class OperatorHashes(Result):
    """Hashes of the operator's other files."""

    tokens_sha256: Sha256 | None = None
    withheld_sha256: Sha256 | None = None


class ReleaseEvents(Result):
    """What `lexveil release` remembers of a release beside its ids."""

    name: str
    salt: str
    """Fingerprint of the ledger's salt, under which ids are known again."""
    new: NonNegativeInt
    changed: NonNegativeInt


class OperatorReport(Result):
    """What only the operator may see of a run: OUT.operator.json, readable by its owner alone."""

    schema_version: Literal[2] = Field(2, alias="schema")
    """Version of this form."""
    secrecy: str = SECRECY
    lexveil: str
    """Version of Lexveil."""
    model: ModelReference
    """What gave the words and their vectors."""
    rows_read: NonNegativeInt
    counts: RunCounts
    coverage: float | None
    """Share of the words that the vocabulary knows."""
    documents: DocumentShares | None = None
    """Null where there is no content word."""
    language: LanguageFinding | None = None
    """Null where nothing speaks against the model's language."""
    ledger: LedgerCosts | None = None
    """Null of an experiment, for which nothing is paid."""
    output: OperatorHashes | None = None
    release: ReleaseEvents | None = None
    """Of `lexveil release`."""


def operator_schema() -> dict[str, object]:
    """The JSON schema of an operator's report, as docs/operator.schema.json has it."""
    return json_schema(OperatorReport, f"Lexveil operator's report, schema {SCHEMA}")
