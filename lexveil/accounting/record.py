"""The privacy record that is published with each output: what was done, what is guaranteed, and
what is not.

Its numbers are functions of the output, of parameters and of what a guarantee discloses: how many
tokens each text has, the fate of each and its epsilon. What compares a source with its output, or
counts a source, is the operator's and stands in ``lexveil.accounting.operator_report``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, NonNegativeInt, WithJsonSchema

from lexveil.accounting.expected_recovery import Meaning
from lexveil.accounting.linkage import LinkageFigures
from lexveil.accounting.results import Number, Result, Sha256
from lexveil.accounting.structure import StructureFigures
from lexveil.mechanisms import own_names

SCHEMA = 5
NONE = "none"  # the formula where nothing is claimed

Treatment = Literal["perturb", "keep", "drop", "sample"]
FoundTreatment = Literal["perturb", "sample", "drop", "placeholder", "pseudonym", "digits"]
# one of this package, or of another one that is installed
MechanismName = Annotated[
    str, WithJsonSchema({"type": "string", "examples": ["none", *own_names()]})
]


class Guarantee(Result):
    """What may be claimed of one output.

    Attributes:
        formula: The proven bound, or `none`.
        statement: The same in words.
        because: Conditions of the bound, or why there is none.
        not_covered: Between which texts nothing is claimed.
        structure: How often that is so; null where it was not measured.
        in_release: What a release with the same settings would state; only of experiments.
    """

    formula: str
    statement: str
    because: list[str]
    not_covered: str | None = None
    structure: StructureFigures | None = None
    in_release: Guarantee | None = None

    @property
    def holds(self) -> bool:
        """Whether anything is claimed."""
        return self.formula != NONE


class PolicyRecord(Result):
    """What happens to each class of token."""

    stopwords: Treatment
    punctuation: Treatment
    oov: Treatment


class SharesRecord(Result):
    """What tokens of public classes got of a document's budget, where another token got 1.

    Which class a token is of is not hidden: no word is protected against one of another share.

    Attributes:
        list_sha256: Of the public list of words.
    """

    stopwords: Number
    numbers: Number
    listed: Number
    list_sha256: Sha256 | None = None


class DetectionRecord(Result):
    """Detectors, and what happens to tokens that they find. No claim relies on what they find.

    Which tokens were found, and of which type, is not hidden.

    Attributes:
        sources: What finds.
        types: What happens to the tokens of each type.
    """

    sources: list[str]
    types: dict[str, FoundTreatment]
    other_types: FoundTreatment


class SentencesRecord(Result):
    """Sentences of a public bank that stand in the place of texts.

    Attributes:
        unit: What a draw is for: a text, or a sentence of it.
        per_text: Draws for a text; null where there is one for each of its sentences.
        longest: Words of a sentence of a text; a longer one counts as several. Null where the unit
            is the text.
        bank: Of the card of the bank, which has the hashes of its files.
        bank_sentences: In the bank.
        diameter: D: no two units are farther apart.
        local_epsilon: Of one draw: ε·D, in nats.
    """

    unit: Literal["text", "sentence"]
    per_text: int | None
    longest: int | None
    bank: Sha256
    bank_sentences: int
    diameter: Number
    local_epsilon: Number


class Counts(Result):
    """What an output holds, and the fates of the tokens of its source. A copy counts its texts
    only.

    Attributes:
        n_documents: Rows in which there is any text.
        n_rows: Rows that came out.
        found: Tokens that detectors found, by type and action; those that are perturbed, kept,
            dropped or sampled are among the numbers above, too. Null without a detector.
        n_formula_cells: Rewritten fields that a spreadsheet would compute.
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
    """Documents by the part of the budget that they spent, in equal parts from 0 to B."""

    parts_of_budget: int
    documents: list[NonNegativeInt]


class SpendSummary(Result):
    """Epsilon spent per document.

    Attributes:
        min_token_epsilon: The least of any token that spends anything; null in older records.
        max_token_epsilon: The largest of any token.
    """

    documents: NonNegativeInt
    least: float | None
    most: float | None
    mean: float | None
    min_token_epsilon: float | None = None
    max_token_epsilon: float | None = None
    histogram: SpendBins


class LedgerEntry(Result):
    """The ledger's transaction that paid for the output.

    Attributes:
        id: `lexveil ledger verify --record` looks for it, and for the record's hash.
        cap: Lifetime epsilon of a subject.
    """

    id: str
    cap: Number | None


class AuditReference(Result):
    """An audit that a record relies on.

    Attributes:
        factor: The smallest inflation of epsilon that it would have seen with probability 0.9.
        time: When it was made, UTC.
    """

    epsilon: Number
    mode: str
    result: Literal["no violation found", "violation found"]
    factor: Number | None = None
    time: str | None = None
    sha256: Sha256


class ModelReference(Result):
    """The model that an output was made with.

    Attributes:
        name: Of a packaged model; `own` is what a run of the project made.
        version: Of a packaged model.
        made_of: The public texts or vectors that its words got their vectors from; null in records
            of earlier releases.
        sha256: Of its card, which has the hashes of all its files; of `own`, of the embedding and
            the collocations.
    """

    name: str
    version: str | None
    made_of: str | None = None
    sha256: Sha256

    def __str__(self) -> str:
        """As statements name it."""
        return model_in_words(self.name, self.version, self.made_of)


def model_in_words(name: str, version: str | None, made_of: str | None) -> str:
    """A model with its version and what it was made of."""
    of = f", made of {made_of}" if made_of else ""
    return f"model {name}{f' {version}' if version else ''}{of}"


class Protection(Result):
    """The level of protection of an output: what a reader who knows the method is expected to name
    of its words.

    By public texts and frequencies: a text of other words may give back more or less.

    Attributes:
        content: Share of the perturbed words that are no function words.
        rare: Share of the rare ones among them.
        reader: Which reader it is, and how the shares are known.
    """

    level: Literal["strong", "balanced", "light"]
    content: Number
    rare: Number
    reader: str

    @property
    def sentence(self) -> str:
        """As statements say it."""
        return (
            f"protection {self.level}: a reader who knows the method is expected to name "
            f"{_of_100(self.content)} of "
            f"100 content words and {_of_100(self.rare)} of 100 rare ones ({self.reader})"
        )


def _of_100(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.005 else "fewer than 1"


class OutputHashes(Result):
    """Hashes of what is published, never of the source: with its hash anybody could test a guess of
    the text.
    """

    sha256: Sha256 | None = None
    files: dict[str, Sha256] | None = None


class Publication(Result):
    """The release of an archive that the output is."""

    name: str
    id_column: str


class PrivacyRecord(Result):
    """What was done to an output, what is guaranteed of it, and what is not.

    It never holds source words, nor a key or seed of the noise.

    Attributes:
        schema_version: Version of this form.
        lexveil: Version of Lexveil.
        code: Hash of all code that makes outputs.
        metric: The distance d of the guarantee; epsilon is in 1 / its units.
        parameters: Of the mechanism, as params.yaml had them.
        no_proof: Why the mechanism as configured has no proven guarantee.
        protection: Null where epsilon, a budget or a share of words was asked for; then the base
            epsilon is that of every token.
        base_epsilon: Per word, or of every token where `grid.budget` says so; null where the
            document budget was given.
        average_words: Of a document, by which the base epsilon became its budget; null where it was
            not needed, or not one number.
        document_budget: Budget B of each document, by data set; `input` for a user's own.
        shares: Null where all tokens of a document got the same.
        detection: Null where nothing was looked for.
        sentences: Where S5 wrote sentences of a bank; null of words.
        screen: The public list of words that do not come out: their nearest other word takes their
            place; null without one.
        on_unsupported: Whether texts in a script without spaces between words were taken for empty
            ones, and came out empty; null where such an input is refused.
        consistent: Whether equal tokens of a document were replaced alike.
        mode: experiment: the seed is known, so nothing is private.
        linkage: How often whoever has candidates for the source finds it again; null of a copy.
        meaning: What epsilon means; null where nothing was perturbed, or classes have shares; runs
            of the graph measure it.
        without_guarantee: It was released although no guarantee can be given of it.
        columns: The text columns.
        other_columns: Columns that went out as they were, of which nothing is guaranteed; null
            where texts came without a table.
        release: What the ledger charged; null of an experiment, for which nothing is paid.
        audit: The audit that is relied on: of the same code, space, parameters and policy, and
            recent; null without one.
        model: What gave the words and their vectors; null of a copy, and of records up to schema 4.
        made_with: The artifacts that decide what comes out: embedding, collocations, word orders.
        publication: Of `lexveil release`.
        withdrawn: Rows taken out of the archive since.
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
    screen: Sha256 | None = None
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
        """The record of this version with these fields; most of what is left out is not in its JSON
        form.

        Raises:
            pydantic.ValidationError: if it is no privacy record.
        """
        nothing: dict[str, object] = {"parameters": {}, "document_budget": {}, "made_with": {}}
        nothing |= dict.fromkeys(("no_proof", "average_words", "model"))
        return cls.model_validate({"schema": SCHEMA, **nothing, **fields})


def record_schema() -> dict[str, object]:
    """The JSON schema of a privacy record, as docs/record.schema.json has it."""
    return json_schema(PrivacyRecord, f"Lexveil privacy record, schema {SCHEMA}")


def json_schema(model: type[Result], title: str) -> dict[str, object]:
    """The JSON schema of a result that is written to a file."""
    generated = _without_titles(model.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **generated}


def _without_titles(schema: Any) -> Any:
    """A schema without the titles and defaults that repeat what the names of its fields say."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    repeats = {key for key in ("title", "default") if not isinstance(schema.get(key, {}), dict)}
    return {key: _without_titles(part) for key, part in schema.items() if key not in repeats}
