"""The operator's report: it compares a source with its output, or counts the source, and is as
secret as the source.

A single such number with nine digits can identify a short text exactly, whatever epsilon is.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt

from lexveil.core.accounting.record import Counts, ModelReference, json_schema
from lexveil.core.accounting.results import Number, Result, Sha256
from lexveil.core.text.languages import LANGUAGES

SCHEMA = 2
MUCH_KEPT = 0.5  # share of a text's content words that still says most of its content
SECRECY = (
    "As secret as the source: exact statistics of source and output tell short texts "
    "whatever epsilon is. Publish the "
    "output and its record, never this file"
)


class ActionCounts(Result):
    """Number of tokens of a class, by action."""

    perturbed: NonNegativeInt
    kept: NonNegativeInt
    dropped: NonNegativeInt
    sampled: NonNegativeInt


class ClassCounts(Result):
    """Tokens by class and action.

    Attributes:
        sentence: Sentences of a bank that were drawn; left out where words are replaced.
    """

    word: ActionCounts
    stopword: ActionCounts
    punctuation: ActionCounts
    oov: ActionCounts
    sentence: ActionCounts | None = None


class DocumentShares(Result):
    """Shares of documents' content words (neither stop words nor punctuation) that came out
    unchanged.

    Attributes:
        documents: Number of documents with a content word.
        median_unchanged: Median over documents of the share of content words that came out
            unchanged.
        worst_tenth_unchanged: Least share among the tenth of the documents that kept most.
        nearly_verbatim: Number of documents that kept nine tenths of their content words or more.
    """

    documents: NonNegativeInt
    median_unchanged: float
    worst_tenth_unchanged: float
    nearly_verbatim: NonNegativeInt

    def sentence(self, unit: str = "text") -> str:
        """Return the shares as a sentence for people; ``unit`` is their word for a document."""
        return (
            f"of the content words of a {unit} {self.median_unchanged:.0%} came out as they "
            "are (median), in a tenth "
            f"of the {unit}s {self.worst_tenth_unchanged:.0%} or more; {self.nearly_verbatim:,} of "
            f"{self.documents:,} {unit}s with content words came out nearly as they are"
        )

    def caution(self, unit: str = "text") -> str | None:
        """Return a caution if many documents keep many of their content words unchanged; otherwise
        None.
        """
        if self.worst_tenth_unchanged <= MUCH_KEPT:
            return None
        return (
            f"CAUTION: a tenth of the {unit}s keep {self.worst_tenth_unchanged:.0%} or more "
            "of their content words: "
            "epsilon is large, or texts are short, whose tokens get more of a budget; choose "
            "a stronger protection, or "
            "a smaller max_token_epsilon"
        )


class RunCounts(Result):
    """All counts of a source and its output.

    Attributes:
        share_unchanged: Share of the perturbed tokens that were replaced by themselves.
        mean_cosine: Mean cosine between the vectors of changed perturbed tokens and of their
            replacements.
        unprotected_share: Share of all tokens that were kept.
        epsilon_spent_mean: Mean epsilon spent per text; a row with several text columns spends
            the sum of its texts, whose mean the record has (`spent.mean`).
        found: Tokens that detectors found, by type and action; they are in no class. Null without a
            detector.
        n_in_bank: Sentences of the texts that stand in the bank, which is harmless: the bank is the
            same for all texts. Left out where words are replaced.
    """

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
    mean_cosine: float | None
    unprotected_share: float
    epsilon_spent_mean: float | None
    found: dict[str, dict[str, NonNegativeInt]] | None = None
    n_in_bank: NonNegativeInt | None = None

    def public(self, **further: int | None) -> Counts:
        """Return the counts that a record publishes; ``further`` are counts of rows and of formula
        cells.
        """
        same = (
            "n_texts",
            "n_documents",
            "n_perturbed",
            "n_kept",
            "n_dropped",
            "n_sampled",
            "n_words_out",
        )
        values: dict[str, object] = {name: getattr(self, name) for name in same} | further
        if self.found is not None:
            values["found"] = self.found
        return Counts(n_tokens=self.n_tokens_in, **values)


class LanguageFinding(Result):
    """Finding that texts look like another language than the model's, or that the model knows few
    of the texts' words.

    Attributes:
        model: The model.
        language: The language of the model.
        looks_like: The language of which the texts have most function words; null where it is the
            model's, or none that is known.
        function_words: Share of the words that are function words of the two languages; empty where
            there is no other one.
        known: Share of the words that the model's vocabulary knows.
        words: Number of words that were examined, from the first on.
    """

    model: str
    language: str
    looks_like: str | None
    function_words: dict[str, float]
    known: float
    words: int

    @property
    def sentence(self) -> str:
        """The finding as a sentence for people."""
        if self.looks_like is None:
            return (
                f"has few words that the model `{self.model}` knows ({self.known:.0%}): no other "
                "one is replaced by a word of its kind. Perhaps the texts are in another language "
                "(docs/how-to/languages.md)"
            )
        shares = ", ".join(f"{code} {share:.0%}" for code, share in self.function_words.items())
        name = LANGUAGES[self.looks_like].name
        return (
            f"looks like {name} (function words {shares}); the model `{self.model}` knows "
            f"{self.known:.0%} of its "
            f"words. Take a model of {name} (docs/how-to/languages.md)"
        )


class LedgerCosts(Result):
    """Request to the ledger and its charges.

    Attributes:
        id: Id of the transaction, as in the record.
        head: Head of the ledger's hash chain after the charge.
        cap: Lifetime epsilon of a subject.
        documents_withheld: Documents left out, and not charged, because their subject has less
            left than they cost.
        subjects: Subjects of all requested documents.
        subjects_near: Subjects that differ from another one in capitals or punctuation only:
            probably one person with two budgets.
        subjects_exhausted: Subjects that had documents withheld.
        subjects_charged: Subjects that are charged.
        subjects_charged_before: Charged subjects that earlier releases charged, too: their charges
            add up.
        epsilon_charged: Epsilon charged, summed over all subjects.
        largest_balance: Largest epsilon that one of the subjects has spent, over all releases.
        longest_row: Perturbed tokens that a row may have, so that it costs no more than the cap;
            null without a cap, and where what a row costs does not grow with its length.
    """

    id: str
    head: Sha256
    cap: Number | None
    documents_requested: NonNegativeInt
    documents_charged: NonNegativeInt
    documents_withheld: NonNegativeInt
    subjects: NonNegativeInt
    subjects_near: NonNegativeInt = 0
    subjects_exhausted: NonNegativeInt
    subjects_charged: NonNegativeInt = 0
    subjects_charged_before: NonNegativeInt = 0
    epsilon_charged: Number
    largest_balance: Number
    longest_row: NonNegativeInt | None = None


class OperatorHashes(Result):
    """Hashes of the operator's other files."""

    tokens_sha256: Sha256 | None = None
    withheld_sha256: Sha256 | None = None


class ReleaseEvents(Result):
    """Data that `lexveil release` stores with a release, besides its ids.

    Attributes:
        salt: Fingerprint of the ledger's salt, under which ids are recognized in later releases.
    """

    name: str
    salt: str
    new: NonNegativeInt
    changed: NonNegativeInt


class OperatorReport(Result):
    """Report of a run that only the operator may see: OUT.operator.json, readable by its owner
    alone.

    Attributes:
        schema_version: Version of this form.
        lexveil: Version of Lexveil.
        model: Model of the words and their vectors.
        coverage: Share of the words that the vocabulary knows.
        documents: Null where there is no content word.
        language: Null where nothing speaks against the model's language.
        emptied: Texts that came out empty, because they are in a script without spaces between
            words; null where such an input is refused.
        screened: Share of the replaced words that are of each chosen part of the screen, none of
            which comes out; null of sentences, and where detectors looked.
        ledger: Null of an experiment, for which nothing is paid.
        release: Data of `lexveil release` about the release; null for other runs.
    """

    schema_version: Literal[2] = Field(2, alias="schema")
    secrecy: str = SECRECY
    lexveil: str
    model: ModelReference
    rows_read: NonNegativeInt
    counts: RunCounts
    coverage: float | None
    documents: DocumentShares | None = None
    language: LanguageFinding | None = None
    emptied: NonNegativeInt | None = None
    screened: dict[str, float] | None = None
    ledger: LedgerCosts | None = None
    output: OperatorHashes | None = None
    release: ReleaseEvents | None = None


def operator_schema() -> dict[str, object]:
    """Return the JSON schema of an operator's report, which docs/operator.schema.json holds."""
    return json_schema(OperatorReport, f"Lexveil operator's report, schema {SCHEMA}")
