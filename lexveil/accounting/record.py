"""The privacy record that is published with each output: what was done, what is guaranteed, and what is not.

Its numbers are functions of the output, of parameters and of what a guarantee discloses: how many tokens each text has,
the fate of each and its epsilon. What compares a source with its output, or counts a source, is the operator's and
stands in ``lexveil.accounting.operator_report``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, NonNegativeInt, WithJsonSchema

from lexveil.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.accounting.expected_recovery import Meaning
from lexveil.accounting.guarantee import Guarantee
from lexveil.accounting.notebook import framed
from lexveil.accounting.results import Number, Result, Sha256
from lexveil.accounting.shares import Shares
from lexveil.mechanisms.registry import MECHANISMS

SCHEMA = 5

Treatment = Literal["perturb", "keep", "drop", "sample"]
FoundTreatment = Literal["perturb", "sample", "drop", "placeholder", "pseudonym", "digits"]
MechanismName = Annotated[str, WithJsonSchema({"type": "string", "enum": ["none", *MECHANISMS]})]


class PolicyRecord(Result):
    """What happens to each class of token."""

    stopwords: Treatment
    punctuation: Treatment
    oov: Treatment


class SharesRecord(Result):
    """What tokens of public classes got of a document's budget, where another token got 1.

    Which class a token is of is not hidden: no word is protected against one of another share.
    """

    stopwords: Number
    numbers: Number
    listed: Number
    list_sha256: Sha256 | None = None
    """Of the public list of words."""


class DetectionRecord(Result):
    """Detectors, and what happens to tokens that they find. No claim relies on what they find.

    Which tokens were found, and of which type, is not hidden.
    """

    sources: list[str]
    """What finds."""
    types: dict[str, FoundTreatment]
    """What happens to the tokens of each type."""
    other_types: FoundTreatment


class Counts(Result):
    """What an output holds, and the fates of the tokens of its source. A copy counts its texts only."""

    n_texts: NonNegativeInt
    n_documents: NonNegativeInt = 0
    """Rows in which there is any text."""
    n_rows: NonNegativeInt = 0
    """Rows that came out."""
    n_tokens: NonNegativeInt = 0
    n_perturbed: NonNegativeInt = 0
    n_kept: NonNegativeInt = 0
    n_dropped: NonNegativeInt = 0
    n_sampled: NonNegativeInt = 0
    n_words_out: NonNegativeInt = 0
    found: dict[str, dict[str, NonNegativeInt]] | None = None
    """Tokens that detectors found, by type and action; those that are perturbed, kept, dropped or sampled are among the
    numbers above, too. Null without a detector."""
    n_formula_cells: NonNegativeInt = 0
    """Rewritten fields that a spreadsheet would compute."""
    first_formula_row: int | None = None


class SpendBins(Result):
    """Documents by the part of the budget that they spent, in equal parts from 0 to B."""

    parts_of_budget: int
    documents: list[NonNegativeInt]


class SpendSummary(Result):
    """Epsilon spent per document."""

    documents: NonNegativeInt
    least: float | None
    most: float | None
    mean: float | None
    max_token_epsilon: float | None = None
    """The largest of any token."""
    histogram: SpendBins


class LedgerEntry(Result):
    """The ledger's transaction that paid for the output."""

    id: str
    """`lexveil ledger verify --record` looks for it, and for the record's hash."""
    cap: Number | None
    """Lifetime epsilon of a subject."""


class AuditReference(Result):
    """An audit that a record relies on."""

    epsilon: Number
    mode: str
    result: Literal["no violation found", "violation found"]
    factor: Number | None = None
    """The smallest inflation of epsilon that it would have seen with probability 0.9."""
    time: str | None = None
    """When it was made, UTC."""
    sha256: Sha256


class ModelReference(Result):
    """The model that an output was made with."""

    name: str
    """Of a packaged model; `own` is what a run of the project made."""
    version: str | None
    """Of a packaged model."""
    sha256: Sha256
    """Of its card, which has the hashes of all its files; of `own`, of the embedding and the collocations."""

    def __str__(self) -> str:
        """As statements name it."""
        return f"model {self.name}{f' {self.version}' if self.version else ''}"


class Protection(Result):
    """The level of protection of an output: what a reader who knows the method is expected to name of its words.

    By public texts and frequencies: a text of other words may give back more or less.
    """

    level: Literal["strong", "balanced", "light"]
    content: Number
    """Share of the perturbed words that are no function words."""
    rare: Number
    """Share of the rare ones among them."""
    reader: str
    """Which reader it is, and how the shares are known."""

    @property
    def sentence(self) -> str:
        """As statements say it."""
        return (
            f"protection {self.level}: a reader who knows the method is expected to name {_of_100(self.content)} of "
            f"100 content words and {_of_100(self.rare)} of 100 rare ones ({self.reader})"
        )


def _of_100(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.005 else "fewer than 1"


class OutputHashes(Result):
    """Hashes of what is published, never of the source: with its hash anybody could test a guess of the text."""

    sha256: Sha256 | None = None
    files: dict[str, Sha256] | None = None


class Publication(Result):
    """The release of an archive that the output is."""

    name: str
    id_column: str


class PrivacyRecord(Result):
    """What was done to an output, what is guaranteed of it, and what is not.

    It never holds source words, nor a key or seed of the noise.
    """

    schema_version: Literal[5] = Field(alias="schema")
    """Version of this form."""
    lexveil: str
    """Version of Lexveil."""
    code: Sha256 | None = None
    """Hash of all code that makes outputs."""
    mechanism: MechanismName
    metric: str | None
    """The distance d of the guarantee; epsilon is in 1 / its units."""
    parameters: dict[str, JsonValue]
    """Of the mechanism, as params.yaml had them."""
    no_proof: str | None
    """Why the mechanism as configured has no proven guarantee."""
    strategy: Literal["none", "S1", "S2", "S3", "S4"]
    segmentation: Literal["word", "gst", "mst"] | None
    protection: Protection | None = None
    """Null where epsilon, a budget or a share of words was asked for; then the base epsilon is that of every token."""
    base_epsilon: Number | None
    """Per word; null where the document budget was given."""
    average_words: Number | None = None
    """Of a document, by which the base epsilon became its budget; null where it was not needed, or not one number."""
    document_budget: dict[str, Number]
    """Budget B of each document, by data set; `input` for a user's own."""
    policy: PolicyRecord
    shares: SharesRecord | None = None
    """Null where all tokens of a document got the same."""
    detection: DetectionRecord | None = None
    """Null where nothing was looked for."""
    screen: Sha256 | None = None
    """The public list of words that do not come out: their nearest other word takes their place; null without one."""
    consistent: Literal["document"] | None
    """Whether equal tokens of a document were replaced alike."""
    layout: str
    mode: Literal["release", "experiment", "none"]
    """experiment: the seed is known, so nothing is private."""
    guarantee: Guarantee
    meaning: Meaning | None = None
    """What epsilon means; null where nothing was perturbed, or classes have shares; runs of the graph measure it."""
    without_guarantee: bool | None = None
    """It was released although no guarantee can be given of it."""
    counts: Counts
    spent: SpendSummary | None = None
    columns: list[str] | None = None
    """The text columns."""
    release: LedgerEntry | None = None
    """What the ledger charged; null of an experiment, for which nothing is paid."""
    audit: AuditReference | None = None
    """The audit that is relied on: of the same code, space, parameters and policy, and recent; null without one."""
    model: ModelReference | None = None
    """What gave the words and their vectors; null of a copy, and of records up to schema 4."""
    made_with: dict[str, Sha256]
    """The artifacts that decide what comes out: embedding, collocations, word orders."""
    output: OutputHashes | None = None
    publication: Publication | None = None
    """Of `lexveil release`."""
    withdrawn: NonNegativeInt | None = None
    """Rows taken out of the archive since."""

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        model = f", {self.model}" if self.model else ""
        done = f"mechanism {self.mechanism}, strategy {self.strategy}, mode {self.mode}{model}"
        claim = self.guarantee
        lines = [f"guarantee: {claim.formula}", claim.statement, *claim.because]
        lines += [claim.not_covered] if claim.not_covered else []
        lines += self.meaning.sentences if self.meaning else []
        facts = [("audit", self.audit and self.audit.result), ("Lexveil", self.lexveil)]
        return framed("Privacy record", [done], lines, facts, holds=claim.holds)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyRecord:
        """Read a record of schema 5 to 2; what 3 and 2 said of the source is left out.

        Raises:
            pydantic.ValidationError: if it is no privacy record.
        """
        current = dict(values)
        if current.get("schema") == 4:
            current["schema"] = SCHEMA
        if current.get("schema") in (2, 3):
            counts = dict(current.get("counts") or {})
            counts["n_tokens"] = counts.get("n_tokens_in", 0)
            current |= {"schema": SCHEMA, "counts": _fields(Counts, counts)}
            for name, model in (("output", OutputHashes), ("release", LedgerEntry), ("publication", Publication)):
                if current.get(name) is not None:
                    current[name] = _fields(model, current[name])
        return cls.model_validate(current)


def _fields(model: type[Result], values: Mapping[str, Any]) -> dict[str, object]:
    return {name: value for name, value in values.items() if name in model.model_fields}


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


@dataclass(frozen=True, slots=True)
class Configuration:
    """How texts were rewritten; ``no_proof`` is why the mechanism as configured has no proven guarantee."""

    mechanism: str
    strategy: str
    policy: Policy
    mode: str
    consistent: bool = False
    keep_layout: bool = False
    no_proof: str | None = None
    shares: Shares | None = None
    detection: DetectionRecord | None = None
    protection: Protection | None = None
    screen: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is recorded of a run.

    Attributes:
        base_epsilon: per word; None where the document budget was given.
        budgets: document budget B by data set, in 1 / units of the metric.
        made_with: sha256 of the artifacts it was made with.
        model: what gave the words; None of a copy.
        version: of Lexveil.
        average_words: of a document, by which a base epsilon became its budget; None where it was not needed.
        parameters: of the mechanism.
    """

    configuration: Configuration
    guarantee: Guarantee
    base_epsilon: float | None
    budgets: Mapping[str, float]
    counts: Counts
    made_with: Mapping[str, str]
    version: str
    parameters: Mapping[str, JsonValue]
    model: ModelReference | None = None
    average_words: float | None = None


def record(facts: RunFacts, **further: Any) -> PrivacyRecord:
    """Build the privacy record of a run; ``further`` are fields of a record that the pipeline's own runs lack."""
    run = facts.configuration
    known = MECHANISMS.get(run.mechanism)
    return PrivacyRecord.model_validate(
        {
            "schema": SCHEMA,
            "lexveil": facts.version,
            "mechanism": run.mechanism,
            "metric": known.metric if known else None,
            "parameters": dict(facts.parameters),
            "no_proof": run.no_proof,
            "strategy": run.strategy,
            "segmentation": SEGMENTATION_OF.get(run.strategy),
            "base_epsilon": facts.base_epsilon,
            "average_words": facts.average_words,
            "document_budget": dict(facts.budgets),
            "policy": asdict(run.policy),
            "consistent": "document" if run.consistent else None,
            **({} if run.shares is None else {"shares": run.shares.as_dict()}),
            **({} if run.detection is None else {"detection": run.detection}),
            **({} if run.protection is None else {"protection": run.protection}),
            **({} if run.screen is None else {"screen": run.screen}),
            "layout": "copied, unprotected" if run.keep_layout else "ordinary English spacing, lower case",
            "mode": run.mode,
            "guarantee": facts.guarantee,
            "counts": facts.counts,
            "model": facts.model,
            "made_with": dict(facts.made_with),
            **further,
        }
    )
