"""The operator's report: confidential statistics of a run, for the person who runs it. It compares
a source with its output, or counts the source, so it is as secret as the source.

A single statistic with nine digits can identify a short text exactly, whatever epsilon is.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt

from lexveil.core.accounting.record import Counts, ModelReference, json_schema
from lexveil.core.accounting.results import Number, Result, Sha256
from lexveil.core.text.languages import LANGUAGES

SCHEMA = 2
MUCH_KEPT = 0.5  # share of a text's content words that still conveys most of its content
SECRECY = (
    "As secret as the source: exact statistics of source and output can identify short texts, "
    "whatever epsilon is. Publish the "
    "output and its record, never this file"
)


class ActionCounts(Result):
    """Number of tokens of one token class, by the action on them."""

    perturbed: NonNegativeInt
    kept: NonNegativeInt
    dropped: NonNegativeInt
    sampled: NonNegativeInt


class ClassCounts(Result):
    """Number of tokens by token class and action.

    Attributes:
        sentence: Number of sentences drawn from the sentence bank; left out for runs that replace
            words.
    """

    word: ActionCounts
    stopword: ActionCounts
    punctuation: ActionCounts
    oov: ActionCounts
    sentence: ActionCounts | None = None


class DocumentShares(Result):
    """Shares of each document's content words (neither stop words nor punctuation) that are the
    same in the output.

    Attributes:
        documents: Number of documents with a content word.
        median_unchanged: Median over documents of the share of content words that are unchanged.
        worst_tenth_unchanged: Least share of unchanged content words among the tenth of the
            documents with the largest shares.
        nearly_verbatim: Number of documents in which nine tenths of the content words or more are
            unchanged.
    """

    documents: NonNegativeInt
    median_unchanged: float
    worst_tenth_unchanged: float
    nearly_verbatim: NonNegativeInt

    def sentence(self, unit: str = "text") -> str:
        """Return the shares of unchanged words as a sentence for people.

        Args:
            unit: the word for a document.
        """
        return (
            f"of the content words of a {unit} {self.median_unchanged:.0%} are unchanged "
            f"(median), in a tenth of the {unit}s {self.worst_tenth_unchanged:.0%} or more; "
            f"{self.nearly_verbatim:,} of "
            f"{self.documents:,} {unit}s with content words are nearly unchanged"
        )

    def caution(self, unit: str = "text") -> str | None:
        """Return a caution if many content words are unchanged in many documents; otherwise None.

        Args:
            unit: the word for a document.
        """
        if self.worst_tenth_unchanged <= MUCH_KEPT:
            return None
        return (
            f"CAUTION: a tenth of the {unit}s keep {self.worst_tenth_unchanged:.0%} or more "
            "of their content words: epsilon is large, or the texts are short, so that each "
            "token gets more of the budget; choose a stronger protection, or a smaller "
            "max_token_epsilon"
        )


class RunCounts(Result):
    """Counts that compare a source with its output.

    Attributes:
        share_unchanged: Share of the perturbed tokens that were replaced by themselves.
        mean_cosine: Mean cosine between the vectors of changed perturbed tokens and of their
            replacements.
        unprotected_share: Share of all tokens that were kept.
        epsilon_spent_mean: Mean epsilon spent per text. A row with several text columns spends the
            sum of its texts; the mean over rows is in the record (`spent.mean`).
        found: Tokens that detectors found, by type and action; they belong to no class. Null
            without a detector.
        n_in_bank: Sentences of the texts that are also in the public sentence bank. This is
            harmless, because the bank is the same for all texts. Left out for runs that replace
            words.
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
        """Return the counts that the published privacy record contains.

        Args:
            further: counts of rows and of formula cells.
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
    """Finding that texts seem to be in another language than the word model, or that the word
    model knows few of their words.

    Attributes:
        model: The model.
        language: The language of the model.
        looks_like: The known language with the most function words in the texts; null if it is the
            model's language, or if no known language fits.
        function_words: Share of the words that are function words, for each of the two languages;
            empty if there is no other language.
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
        """The language finding as a sentence for people."""
        if self.looks_like is None:
            return (
                f"has few words that the model `{self.model}` knows ({self.known:.0%}): only "
                "these words are replaced by similar words. Perhaps the texts are in another "
                "language "
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
    """Privacy costs of a run: the request to the ledger, and the charges to data subjects.

    Attributes:
        id: Id of the transaction, as in the record.
        head: Head of the ledger's hash chain after the charge.
        cap: Largest epsilon that a data subject may spend over all releases.
        documents_withheld: Documents that were left out, and not charged, because their subject has
            less budget left than they cost.
        subjects: Number of subjects in all requested documents.
        subjects_near: Subjects whose names differ from another one in capitals or punctuation only:
            probably one person with two budgets.
        subjects_exhausted: Subjects that had documents withheld.
        subjects_charged: Subjects that are charged.
        subjects_charged_before: Charged subjects that earlier releases charged, too: their charges
            add up.
        epsilon_charged: Epsilon charged, summed over all subjects.
        largest_balance: Largest epsilon that one of the subjects has spent, over all releases.
        longest_row: Largest number of perturbed tokens for which a row costs no more than the cap;
            null without a cap, or if the cost of a row does not grow with its length.
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
    """SHA-256 hashes of the operator's other files."""

    tokens_sha256: Sha256 | None = None
    withheld_sha256: Sha256 | None = None


class ReleaseEvents(Result):
    """Data that `lexveil release` stores with a release in addition to its ids.

    Attributes:
        salt: Fingerprint of the ledger's salt. Later releases with the same salt recognize the ids.
    """

    name: str
    salt: str
    new: NonNegativeInt
    changed: NonNegativeInt


class OperatorReport(Result):
    """Report of a run for the operator only: OUT.operator.json, readable by its owner alone.

    Attributes:
        schema_version: Version of this form.
        lexveil: Version of Lexveil.
        model: Model of the words and their vectors.
        coverage: Share of the words that the vocabulary knows.
        documents: Shares of unchanged words by document; null if there are no content words.
        language: Finding about the language of the texts; null if they seem to be in the model's
            language.
        emptied: Number of texts that are empty in the output, because they are in a script without
            spaces between words; null if such an input is refused.
        screened: For each chosen part of the list of screened words, the share of the perturbed
            source words that belong to it, so that they cannot appear in the output; null for
            sentences, and if detectors were used.
        ledger: Costs in the ledger; null for an experiment, which is not charged.
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
    """Return the JSON schema of the operator's report. docs/operator.schema.json is a copy."""
    return json_schema(OperatorReport, f"Lexveil operator's report, schema {SCHEMA}")
