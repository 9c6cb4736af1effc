"""The privacy record that goes with each output: what was done, what is guaranteed, and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, NonNegativeInt, WithJsonSchema

from lexveil.accounting.budgets import SEGMENTATION_OF
from lexveil.accounting.guarantee import Claim, Guarantee, guarantee
from lexveil.accounting.results import Number, Result, Sha256
from lexveil.mechanisms.registry import MECHANISMS

SCHEMA = 3

Treatment = Literal["perturb", "keep", "drop", "sample"]
MechanismName = Annotated[str, WithJsonSchema({"type": "string", "enum": ["none", *MECHANISMS]})]


class PolicyRecord(Result):
    """What happens to each class of token."""

    stopwords: Treatment
    punctuation: Treatment
    oov: Treatment


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


class Counts(Result):
    """What an output holds and what its source held. A copy counts its texts only."""

    model_config = ConfigDict(extra="allow")  # earlier versions counted other things

    n_texts: NonNegativeInt
    n_documents: NonNegativeInt = 0
    n_rows: NonNegativeInt = 0
    n_tokens_in: NonNegativeInt = 0
    n_tokens_out: NonNegativeInt = 0
    n_words_in: NonNegativeInt = 0
    n_words_out: NonNegativeInt = 0
    n_perturbed: NonNegativeInt = 0
    n_kept: NonNegativeInt = 0
    n_dropped: NonNegativeInt = 0
    n_sampled: NonNegativeInt = 0
    by_class: ClassCounts | None = None
    share_unchanged: float | None = None
    """Of the perturbed tokens: replaced by themselves."""
    mean_cosine: float | None = None
    """Of the vectors of perturbed tokens that changed, and of their replacements."""
    unprotected_share: float = 0.0
    """Of all tokens: kept."""
    epsilon_spent_mean: float | None = None
    """Per text."""
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
    histogram: SpendBins


class LedgerEntry(Result):
    """What the ledger charged for the output."""

    id: str
    head: Sha256
    """The ledger's chain after this was charged: `lexveil ledger verify --record` looks for it."""
    cap: Number | None
    """Lifetime epsilon of a subject."""
    documents: NonNegativeInt
    withheld: NonNegativeInt
    """Of these, left out because their subject's budget is exhausted."""
    subjects: NonNegativeInt
    exhausted: NonNegativeInt
    epsilon: Number
    """Spent over all subjects."""
    largest_balance: Number
    """The most that one of its subjects has spent, over all releases."""


class AuditReference(Result):
    """An audit that a record relies on."""

    epsilon: Number
    mode: str
    result: Literal["no violation found", "violation found"]
    sha256: Sha256


class OutputHashes(Result):
    """Hashes of what was made, never of the source: with its hash anybody could test a guess of the text."""

    sha256: Sha256 | None = None
    files: dict[str, Sha256] | None = None
    tokens_sha256: Sha256 | None = None
    withheld_sha256: Sha256 | None = None


class Publication(Result):
    """The release of an archive that the output is."""

    name: str
    salt: str
    id_column: str
    new: NonNegativeInt
    changed: NonNegativeInt


class PrivacyRecord(Result):
    """What was done to an output, what is guaranteed of it, and what is not.

    It never holds source words, nor a key or seed of the noise.
    """

    schema_version: Literal[3] = Field(alias="schema")
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
    base_epsilon: Number | None
    """Per word; null where the document budget was given."""
    document_budget: dict[str, Number]
    """Budget B of each document, by data set; `input` for a user's own."""
    policy: PolicyRecord
    consistent: Literal["document"] | None
    """Whether equal tokens of a document were replaced alike."""
    layout: str
    mode: Literal["release", "experiment", "none"]
    """experiment: the seed is known, so nothing is private."""
    guarantee: Guarantee
    counts: Counts
    spent: SpendSummary | None = None
    columns: list[str] | None = None
    """The text columns."""
    release: LedgerEntry | None = None
    """What the ledger charged; null of an experiment, for which nothing is paid."""
    audit: AuditReference | None = None
    """The audit of this mechanism and strategy that is relied on; null if there is none."""
    made_with: dict[str, Sha256]
    """The artifacts that decide what comes out: embedding, collocations, word orders."""
    output: OutputHashes | None = None
    publication: Publication | None = None
    """Of `lexveil release`."""
    withdrawn: NonNegativeInt | None = None
    """Rows taken out of the archive since."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyRecord:
        """Read a record of schema 3 or 2; in schema 2 the token log was called a ledger.

        Raises:
            pydantic.ValidationError: if it is no privacy record.
        """
        current = dict(values)
        if current.get("schema") == 2:
            output = dict(current.get("output") or {})
            if "ledger_sha256" in output:
                output["tokens_sha256"] = output.pop("ledger_sha256")
            current |= {"schema": SCHEMA} | ({"output": output} if "output" in current else {})
        return cls.model_validate(current)

    def with_output(self, **changes: Any) -> PrivacyRecord:
        """The same record with other or further hashes of its output; None removes one."""
        hashes = (self.output.to_dict() if self.output else {}) | changes
        output = OutputHashes(**{name: value for name, value in hashes.items() if value is not None})
        return self.model_copy(update={"output": output})


def record_schema() -> dict[str, Any]:
    """The JSON schema of a privacy record, as docs/record.schema.json has it."""
    generated = _without_titles(PrivacyRecord.model_json_schema(by_alias=True))
    title = f"Lexveil privacy record, schema {SCHEMA}"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **generated}


def _without_titles(schema: Any) -> Any:
    """A schema without the titles and defaults that repeat what the names of its fields say."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    repeats = {key for key in ("title", "default") if not isinstance(schema.get(key, {}), dict)}
    return {key: _without_titles(part) for key, part in schema.items() if key not in repeats}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is recorded of a run.

    Attributes:
        base_epsilon: per word; None where the document budget was given.
        budgets: document budget B by data set, in 1 / units of the metric.
        made_with: sha256 of the artifacts it was made with.
        version: of Lexveil.
        parameters: of the mechanism.
    """

    claim: Claim
    base_epsilon: float | None
    budgets: Mapping[str, float]
    counts: Counts
    made_with: Mapping[str, str]
    version: str
    parameters: Mapping[str, JsonValue]


def record(facts: RunFacts, **further: Any) -> PrivacyRecord:
    """Build the privacy record of a run; ``further`` are fields of a record that the pipeline's own runs lack."""
    claim = facts.claim
    known = MECHANISMS.get(claim.mechanism)
    return PrivacyRecord.model_validate(
        {
            "schema": SCHEMA,
            "lexveil": facts.version,
            "mechanism": claim.mechanism,
            "metric": known.metric if known else None,
            "parameters": dict(facts.parameters),
            "no_proof": claim.no_proof,
            "strategy": claim.strategy,
            "segmentation": SEGMENTATION_OF.get(claim.strategy),
            "base_epsilon": facts.base_epsilon,
            "document_budget": dict(facts.budgets),
            "policy": asdict(claim.policy),
            "consistent": "document" if claim.consistent else None,
            "layout": "copied, unprotected" if claim.keep_layout else "ordinary English spacing, lower case",
            "mode": claim.mode,
            "guarantee": guarantee(claim),
            "counts": facts.counts,
            "made_with": dict(facts.made_with),
            **further,
        }
    )
