"""The privacy record that is published with each output: how the output was made, what is
guaranteed, and what is not.

Its numbers are functions of the output, of parameters and of the disclosures of the guarantee: the
number of tokens of each text, and for each token its epsilon and whether it was perturbed, kept or
dropped. Numbers that compare a source with its output, or count a source, are for the operator
only; they are in ``lexveil.core.accounting.operator_report``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, NonNegativeInt, WithJsonSchema

from lexveil.core.accounting.expected_recovery import Meaning
from lexveil.core.accounting.linkage import LinkageFigures
from lexveil.core.accounting.results import Number, Result, Sha256
from lexveil.core.accounting.structure import StructureFigures
from lexveil.core.mechanisms import own_names

SCHEMA = 5
NONE = "none"  # formula of a guarantee that claims nothing

Treatment = Literal["perturb", "keep", "drop", "sample"]
FoundTreatment = Literal["perturb", "sample", "drop", "placeholder", "pseudonym", "digits"]
# a mechanism of this package, or of another installed package
MechanismName = Annotated[
    str, WithJsonSchema({"type": "string", "examples": ["none", *own_names()]})
]


class Guarantee(Result):
    """Privacy claims about one output, with their conditions.

    Attributes:
        formula: The proven bound, or `none`.
        statement: The bound in words.
        because: Conditions of the bound, or the reasons why there is none.
        not_covered: Pairs of texts for which no privacy is claimed.
        structure: Measured frequency with which replacing one word leads to such a pair; null if it
            was not measured.
        in_release: Guarantee that a release with the same settings would state; only in
            experiments.
    """

    formula: str
    statement: str
    because: list[str]
    not_covered: str | None = None
    structure: StructureFigures | None = None
    in_release: Guarantee | None = None

    @property
    def holds(self) -> bool:
        """Whether the guarantee makes any claim."""
        return self.formula != NONE


class PolicyRecord(Result):
    """Action on the tokens of each class, as a privacy record states it."""

    stopwords: Treatment
    punctuation: Treatment
    oov: Treatment


class SharesRecord(Result):
    """Budget shares of token classes, as a privacy record states them. A token that belongs to no
    class has the share 1.

    The class of a token is not hidden: no word is protected against a word with another share.

    Attributes:
        list_sha256: SHA-256 of the public list of words.
    """

    stopwords: Number
    numbers: Number
    listed: Number
    list_sha256: Sha256 | None = None


class DetectionRecord(Result):
    """Detectors and the actions on the tokens that they find, as a privacy record states them. No
    privacy claim relies on what detectors find.

    It is not hidden which tokens were found, and which types they have.

    Attributes:
        sources: Names of the detectors.
        types: Action on the tokens of each type.
    """

    sources: list[str]
    types: dict[str, FoundTreatment]
    other_types: FoundTreatment


class ScreenRecord(Result):
    """Word screen of an output, as a privacy record states it: words of chosen parts of a public
    list, which never appear in the output.

    Attributes:
        parts: The parts of the list that were chosen.
        sha256: SHA-256 of the file of the list.
    """

    parts: list[str]
    sha256: Sha256


class SentencesRecord(Result):
    """Replacement of texts by sentences of a public sentence bank, as a privacy record states
    it.

    Attributes:
        unit: The unit that one draw replaces: a text, or a sentence of a text.
        per_text: Number of draws for a text; null if there is one draw for each sentence.
        longest: Most words of a sentence of a text; a longer sentence counts as several. Null if
            the unit is the text.
        bank: SHA-256 of the sentence bank's metadata card, which lists the hashes of its files.
        bank_sentences: Number of sentences in the bank.
        diameter: D, the largest possible distance between two units.
        local_epsilon: The bound ε·D on the loss of one draw, in nats.
    """

    unit: Literal["text", "sentence"]
    per_text: int | None
    longest: int | None
    bank: Sha256
    bank_sentences: int
    diameter: Number
    local_epsilon: Number


class Counts(Result):
    """Numbers of texts and tokens in an output, and number of source tokens by action. A copied
    file has only the number of texts.

    Attributes:
        n_documents: Rows that contain any text.
        n_rows: Rows of the output.
        found: Tokens that detectors found, by type and action. Found tokens that were perturbed,
            kept, dropped or sampled are also in the other numbers. Null without a detector.
        n_formula_cells: Rewritten fields that a spreadsheet would compute as formulas.
    """

    n_texts: NonNegativeInt
    n_documents: NonNegativeInt = 0
    n_rows: NonNegativeInt = 0
    n_tokens: NonNegativeInt = 0
    n_perturbed: NonNegativeInt = 0
    n_kept: NonNegativeInt = 0
    n_dropped: NonNegativeInt = 0
    n_sampled: NonNegativeInt = 0
    n_words_out: NonNegativeInt = 0
    found: dict[str, dict[str, NonNegativeInt]] | None = None
    n_formula_cells: NonNegativeInt = 0
    first_formula_row: int | None = None


class SpendBins(Result):
    """Histogram of documents by the share of their budget B that they spent: the number of
    documents in equal bins from 0 to B.
    """

    parts_of_budget: int
    documents: list[NonNegativeInt]


class SpendSummary(Result):
    """Summary of the epsilon spent per document.

    Attributes:
        min_token_epsilon: The least epsilon of all tokens that spend any; null in older records.
        max_token_epsilon: The largest epsilon of a token.
    """

    documents: NonNegativeInt
    least: float | None
    most: float | None
    mean: float | None
    min_token_epsilon: float | None = None
    max_token_epsilon: float | None = None
    histogram: SpendBins


class LedgerEntry(Result):
    """Ledger transaction that charged an output to its data subjects.

    Attributes:
        id: Id with which `lexveil ledger verify --record` finds the transaction and its hash of the
            record.
        cap: Largest epsilon that a data subject may spend over all releases.
    """

    id: str
    cap: Number | None


class AuditReference(Result):
    """Reference to the privacy audit on which a record relies.

    Attributes:
        factor: Smallest inflation of epsilon that the audit would have detected with probability
            0.9.
        time: Time of the audit, UTC.
    """

    epsilon: Number
    mode: str
    result: Literal["no violation found", "violation found"]
    factor: Number | None = None
    time: str | None = None
    sha256: Sha256


class ModelReference(Result):
    """Reference to the word model with which an output was made.

    Attributes:
        name: The name of a packaged model; `own` is the model that a run of the project made.
        version: The version of a packaged model; null for `own`.
        made_of: The public texts or vectors from which the word vectors were made; null in records
            of earlier releases.
        sha256: The hash of the model's metadata card, which lists the hashes of all files; for
            `own`, the hash of the embedding and the collocations.
    """

    name: str
    version: str | None
    made_of: str | None = None
    sha256: Sha256

    def __str__(self) -> str:
        """Return the phrase that names the model in the statement for recipients."""
        return model_in_words(self.name, self.version, self.made_of)


def model_in_words(name: str, version: str | None, made_of: str | None) -> str:
    """Return a phrase that names a word model, its version, and the texts or vectors from which it
    was made.
    """
    of = f", made of {made_of}" if made_of else ""
    return f"model {name}{f' {version}' if version else ''}{of}"


class Protection(Result):
    """Protection level of an output: the shares of its words that an adversary who knows the
    method is expected to recover.

    The shares were measured on public texts and frequencies; a text of other words may reveal more
    or less.

    Attributes:
        content: Share of the perturbed content words (all words but function words).
        rare: Share of the rare words among the content words.
        reader: Description of the adversary and of the source of the shares.
        linkage: If texts are replaced by sentences of a bank, the share of texts whose source an
            adversary finds among 1,000 texts; null for words.
        missed: Kinds of words of which the adversary names more than the level allows; null if
            there are none.
    """

    level: Literal["strong", "balanced", "light"]
    content: Number
    rare: Number
    reader: str
    linkage: Number | None = None
    missed: str | None = None

    @property
    def sentence(self) -> str:
        """Return a sentence that states the protection level."""
        missed = (
            "" if self.missed is None else f"; that is more than the level allows: {self.missed}"
        )
        return (
            f"protection {self.level}: a reader who knows the method is expected to name "
            f"{_of_100(self.content)} of "
            f"100 content words and {_of_100(self.rare)} of 100 rare ones ({self.reader}){missed}"
        )


def _of_100(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.005 else "fewer than 1"


class OutputHashes(Result):
    """SHA-256 hashes of published files, never of the source. With the source's hash, anybody
    could test a guess of the text.
    """

    sha256: Sha256 | None = None
    files: dict[str, Sha256] | None = None


class Publication(Result):
    """Release to which an output belongs, within an archive of releases."""

    name: str
    id_column: str


class PrivacyRecord(Result):
    """Privacy record of an output: how the output was made, what is guaranteed, and what is not.

    It never contains source words, nor a key or seed of the noise.

    Attributes:
        schema_version: Version of this form.
        lexveil: Version of Lexveil.
        code: Hash of all code that makes outputs.
        metric: Distance d of the guarantee; epsilon is in 1 / its units.
        parameters: Parameters of the mechanism, as in params.yaml.
        no_proof: Reason why the mechanism as configured has no proven guarantee.
        protection: Level of protection, at which every token gets the base epsilon; null if the
            request named an epsilon, a budget or a share of words.
        base_epsilon: Epsilon per word, or of every token if `grid.budget` is `token`; null if the
            document budget was given.
        average_words: Words per document by which the base epsilon was multiplied to give the
            budget; null if no such number was needed, or there are several.
        document_budget: Budget B of each document, by data set; `input` for a user's own.
        shares: Shares of the budget by class of token; null if all tokens of a document had the
            same share.
        detection: Detectors and their actions; null if no detector was used.
        sentences: Replacement by sentences of a bank (strategy S5); null if words are replaced.
        screen: The public words that do not appear in the output, because the nearest other word
            replaces them and no sentence of the bank contains them; null if every word may appear.
        on_unsupported: Whether texts in a script without spaces between words were replaced by
            empty texts; null if such an input is refused.
        consistent: Whether equal tokens of a document got the same replacement.
        mode: Mode of the run. In an experiment the seed is known, so nothing is private.
        linkage: Linkage figures: how often somebody who has candidate texts identifies the source;
            null for a copy.
        meaning: Meaning of epsilon; null if nothing was perturbed, if classes have shares, or for a
            run of the experiment pipeline, which measures recovery instead.
        without_guarantee: Whether the output was released although no guarantee can be given for
            it.
        columns: The text columns.
        other_columns: Columns that were copied unchanged and are not covered by the guarantee; null
            if texts came without a table.
        release: The transaction of the ledger that charged the release; null for an experiment,
            which is not charged.
        audit: The audit on which the record relies. It is recent, and tested the same code, word
            vectors, parameters and token policy; null without an audit.
        model: The model of the words and their vectors; null for a copy, and in records up to
            schema 4.
        made_with: The artifacts that determine the output: embedding, collocations, word orders.
        publication: The release of an archive by `lexveil release`; null for other outputs.
        withdrawn: Rows that were later taken out of the archive.
    """

    schema_version: Literal[5] = Field(alias="schema")
    lexveil: str
    code: Sha256 | None = None
    mechanism: MechanismName
    metric: str | None
    parameters: dict[str, JsonValue]
    no_proof: str | None
    strategy: Literal["none", "S1", "S2", "S3", "S4", "S5"]
    segmentation: Literal["word", "gst", "mst"] | None
    protection: Protection | None = None
    base_epsilon: Number | None
    average_words: Number | None = None
    document_budget: dict[str, Number]
    policy: PolicyRecord
    shares: SharesRecord | None = None
    detection: DetectionRecord | None = None
    screen: ScreenRecord | None = None
    on_unsupported: Literal["withhold"] | None = None
    sentences: SentencesRecord | None = None
    consistent: Literal["document"] | None
    layout: str
    mode: Literal["release", "experiment", "none"]
    guarantee: Guarantee
    linkage: LinkageFigures | None = None
    meaning: Meaning | None = None
    without_guarantee: bool | None = None
    counts: Counts
    spent: SpendSummary | None = None
    columns: list[str] | None = None
    other_columns: list[str] | None = None
    release: LedgerEntry | None = None
    audit: AuditReference | None = None
    model: ModelReference | None = None
    made_with: dict[str, Sha256]
    output: OutputHashes | None = None
    publication: Publication | None = None
    withdrawn: NonNegativeInt | None = None

    @classmethod
    def of(cls, **fields: Any) -> PrivacyRecord:
        """Build a privacy record of this library version from some of its fields. Most omitted
        fields are missing from the JSON form.

        Raises:
            pydantic.ValidationError: if the fields do not form a valid privacy record.
        """
        nothing: dict[str, object] = {"parameters": {}, "document_budget": {}, "made_with": {}}
        nothing |= dict.fromkeys(("no_proof", "average_words", "model"))
        return cls.model_validate({"schema": SCHEMA, **nothing, **fields})


def record_schema() -> dict[str, object]:
    """Return the JSON schema of the privacy record. docs/record.schema.json is a copy."""
    return json_schema(PrivacyRecord, f"Lexveil privacy record, schema {SCHEMA}")


def json_schema(model: type[Result], title: str) -> dict[str, object]:
    """Return the JSON schema of a result class whose instances are written to files."""
    generated = _without_titles(model.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **generated}


def _without_titles(schema: Any) -> Any:
    """Remove from a JSON schema the titles and defaults that only repeat field names."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    repeats = {key for key in ("title", "default") if not isinstance(schema.get(key, {}), dict)}
    return {key: _without_titles(part) for key, part in schema.items() if key not in repeats}
