"""Sections of lexveil.toml: the machine, scheduled runs, the ledger, releases, the inbox and
detectors. No section changes a result of a stage.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from lexveil.base.parameters import Documented, ListFile, Several, matching, refused
from lexveil.core.protection import LevelName
from lexveil.core.screen_parts import DEFAULT as DEFAULT_SCREEN
from lexveil.io.request import (
    BUDGETS,
    BandName,
    FoundAction,
    MechanismName,
    OnExhausted,
    Request,
    ScreenParts,
    Share,
    StrategyName,
    as_requested,
)

SERVER = r"(?i)postgres(ql)?://(?!.*:.*@)(?!.*(passw(or)?d|pwd|secret)=).+"
SCHEDULER = r"(tcp|tls)://([\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}"
MEMORY = r"(?i)(?=.*[1-9])(\d+(?:\.\d+)?) ?([KMGT])(i?)B"
NOT_TO_PUBLISH_IN = ("artifacts", "data", ".lexveil", ".dvc", ".git")  # other purposes
NONE = "none"  # TOML has no null, so this word removes a limit that has a default

TypeName = Annotated[
    str, matching(r"[A-Z][A-Z0-9_]{0,63}", "types are names in capitals, such as PHONE_NUMBER")
]


def _lifted(value: object) -> object:
    return None if value == NONE else value


CanBeLifted = BeforeValidator(_lifted)


class MachineParams(Documented):
    """Resources (such as memory and processes) that stages and releases may use on this machine."""

    memory_limit: Annotated[
        str,
        matching(
            MEMORY,
            "it must be a number above 0 with a unit: KB, MB, GB or TB, or KiB, MiB, GiB or TiB; "
            "write for example 2GB",
        ),
    ] = "2GB"
    """memory for counting, sorting and joining; larger data goes to disk"""
    temp_directory: str = ".lexveil/work"
    """folder of data that does not fit into memory, and of finished parts of a stopped stage"""
    threads: int = Field(2, ge=1, le=1024)
    """number of threads of one process"""
    workers: int = Field(2, ge=1, le=1024)
    """number of independent stages that run at the same time, and of processes of one stage"""
    stage_minutes: Annotated[int | None, CanBeLifted] = Field(480, ge=1, le=10**6)
    """a stage with a longer estimated duration is refused before it begins; "none": no limit"""
    dask_scheduler: Annotated[
        str | None,
        matching(
            SCHEDULER,
            "it must be the address of a Dask scheduler as tcp://HOST:PORT or "
            "tls://HOST:PORT; omit it to use machine.workers processes of this machine",
        ),
    ] = Field(None, examples=["tcp://10.0.0.5:8786"])
    """address of the scheduler of a Dask cluster that runs the parts of a stage
    (docs/how-to/clusters.md); if it is omitted, processes of this machine run them"""

    def alone(self) -> MachineParams:
        """Return these settings changed to a single process, for work so small that distributing it
        takes longer than doing it.
        """
        return self.model_copy(update={"dask_scheduler": None, "workers": 1})


class OperationParams(Documented):
    """Settings of scheduled runs, and of notifications about runs (docs/how-to/operation.md)."""

    timeout_minutes: Annotated[int | None, CanBeLifted] = Field(1440, ge=1, le=10**6)
    """a scheduled run that takes longer is stopped; "none": no limit"""
    webhook: str | None = Field(None, examples=["https://chat.example.org/hooks/1234"])
    """http(s) address to which a failed run is reported, by a POST of JSON without texts; the
    variable LEXVEIL_WEBHOOK takes precedence; if both are omitted, no report is sent"""
    audit_days: int = Field(30, ge=1, le=3650)
    """largest age in days of an audit that a privacy record may cite"""
    openlineage: str | None = Field(None, examples=["events.jsonl"])
    """destination of OpenLineage events (docs/how-to/lineage.md): a file or http://HOST:PORT; if
    it is omitted, no events are sent"""

    @model_validator(mode="after")
    def _addresses(self) -> Self:
        # Do not quote these addresses, because they often contain secrets.
        if self.webhook is not None and not re.match(r"https?://[^/]", self.webhook):
            raise ValueError("operation.webhook must be an address that starts with http(s)://HOST")
        target = self.openlineage
        if target is not None and (
            not target or ("://" in target and not re.match(r"https?://[^@/]+(/|$)", target))
        ):
            raise ValueError(
                "operation.openlineage must be a file, or an address http://HOST:PORT "
                "without a key or password (put a key into the variable "
                "OPENLINEAGE_API_KEY)"
            )
        return self


class GateParams(Documented):
    """Settings of the release gate: conditions that a release must meet before it is published. A
    condition with the limit "none" is not checked.
    """

    min_coverage: Annotated[float | None, CanBeLifted] = Field(0.5, ge=0, le=1)
    """smallest share of the words that the vocabulary has"""
    max_unprotected: Annotated[float | None, CanBeLifted] = Field(0.5, ge=0, le=1)
    """largest share of the tokens that are kept unchanged"""
    max_length_ratio: Annotated[float | None, CanBeLifted] = Field(3.0, ge=0, le=1e6)
    """largest number of words in a document's output per token of its source"""
    pii: bool = True
    """whether no output may contain e-mail or web addresses, telephone numbers, @names or 6
    digits in a row"""


class ShareParams(Documented):
    """Shares of a document's budget for tokens of public classes, in hundredths. Any other token
    has the share 1.

    A share other than 1 discloses the class of a token. A token of several classes belongs to the
    last of these classes in the list below.
    """

    stopwords: Share = 1.0
    """share of stop words, if they are perturbed"""
    numbers: Share = 1.0
    """share of tokens with a digit and no letter"""
    listed: Share = 1.0
    """share of the words in the word list, and of collocations with such a word"""
    list: ListFile | None = Field(None, examples=["names.txt@3f0a4c21b7d9"])
    """a public word list, as FILE@HASH, with one word per line"""


class LedgerParams(Documented):
    """Settings of the ledger, which records the privacy budget that each subject has spent in all
    releases (docs/explanation/ledger.md).
    """

    cap: Annotated[float, Field(ge=1e-9, le=999_999_999.0)] | Literal["unlimited"] | None = Field(
        None, examples=[5000.0]
    )
    """largest epsilon of one subject over all releases, without an end date, or "unlimited"; if
    it is omitted: enough for 10 releases of a text of ordinary length, by the settings of the
    first release"""
    folder: str = ".lexveil/ledger"
    """folder of the database, its secret salt, and the locks of this machine's releases; back it
    up"""
    database: Annotated[
        str | None,
        matching(
            SERVER,
            "it must be postgresql://HOST/DATABASE, without a password: libpq reads the "
            "password from ~/.pgpass, PGPASSFILE or PGPASSWORD; omit it to use a file in "
            "the folder",
        ),
    ] = Field(None, repr=False, examples=["postgresql://db.example.org/ledger"])
    """address postgresql://HOST/DATABASE, without a password, for machines that share one
    budget; if it is omitted: a file in the folder"""
    anchor: str = ".ledger-anchor.json"
    """file that records the last state of the ledger; commit it"""
    keys: Literal["hashed", "plain"] = "hashed"
    """form of the subject names in the ledger: salted hashes, or plain"""
    on_exhausted: OnExhausted = "withhold"
    """treatment of documents that exceed the cap: "withhold" leaves them out;
    "refuse" releases nothing"""

    @model_validator(mode="before")
    @classmethod
    def _address(cls, given: object) -> object:
        return {"database": given} if isinstance(given, str) else given


class ReleaseParams(Documented):
    """Defaults and limits of all releases, by `lexveil privatize` and by the inbox."""

    average_words: float | None = Field(None, ge=1e-3, le=1e9, examples=[100.0])
    """number of words of a document that turns a base epsilon into the document's budget: a
    public number; if it is omitted: the mean of the corpus"""
    max_token_epsilon: float | None = Field(None, ge=1e-9, le=1e9, examples=[10.0])
    """largest epsilon of a token; the rest of a short document's budget stays unspent; if it is
    omitted: twice the base epsilon"""
    shares: ShareParams = Field(default_factory=ShareParams)
    max_recovery: float | None = Field(None, gt=0, lt=1, examples=[0.1])
    """a release is refused if a Bayes-optimal adversary is expected to name a larger share of
    words, or if a larger share of words is expected to stay unchanged, at the largest epsilon of
    a token; if it is omitted: no limit"""
    max_recovery_band: BandName = "rare"
    """words to which the limit applies: all, content (all but function words), function,
    frequent, middle or rare"""
    max_linkage: float | None = Field(None, gt=0, le=1, examples=[0.05])
    """a release is refused if its source is identified among 1,000 texts more often, or if this
    was not measured; if it is omitted: no limit"""
    without_guarantee: bool = as_requested("without_guarantee", default=False)
    screen: ScreenParts = DEFAULT_SCREEN
    """parts of the public word list whose words are never written, separated by commas: vulgar,
    jargon, health, crime, religion, names; or none"""


class InboxParams(Documented):
    """Settings of the inbox: the source and target of `lexveil release` (docs/how-to/release.md).
    The command does nothing if neither ``source`` nor ``sql`` is set.
    """

    source: str | None = Field(None, examples=["inbox"])
    """an inbox folder, or a file or a pattern of files that DuckDB can read"""
    sql: str | None = Field(None, examples=["SELECT id, text FROM tickets"])
    """a SELECT in place of a source"""
    attach: str | None = Field(None, repr=False, examples=["postgresql://host/crm"])
    """address of the database that sql reads, without a password, or a file of DuckDB"""
    id_column: str = "id"
    """column that identifies a document in all releases"""
    ids: Literal["pseudonym", "plain"] = "pseudonym"
    """form of published ids and subjects: random names, which differ between releases, or plain
    values"""
    text_columns: Several[str] = ["text"]
    """columns that are rewritten"""
    subject_column: str | None = Field(None, examples=["id"])
    """column with the subject that pays for a document; if it is omitted, each text has its own
    budget, and no document may change"""
    spans_column: str | None = as_requested("spans_column", example="spans")
    columns: Several[str] | None = Field(None, examples=[["label", "year"]])
    """other columns, which are published unchanged"""
    mechanism: MechanismName = "tem"
    """mechanism of the releases"""
    strategy: StrategyName = "S3"
    """strategy of the releases"""
    protection: LevelName | None = as_requested("protection", example="balanced")
    epsilon: float | None = as_requested("epsilon", example=5.0)
    document_budget: float | None = as_requested("document_budget", example=200.0)
    recovery: float | None = as_requested("recovery", example=0.2)
    band: BandName = as_requested("band", "all")
    gate: GateParams = Field(default_factory=GateParams)
    archive: str = "releases"
    """folder of this project for the published releases"""
    operator: str = ".lexveil/operator"
    """folder for data about releases that only the operator may see; back it up"""

    @property
    def is_on(self) -> bool:
        """Whether a source of texts is configured."""
        return self.source is not None or self.sql is not None

    @property
    def request(self) -> Request:
        """The request options with which `lexveil release` rewrites the texts of the inbox."""
        return Request.of(
            {
                name: getattr(self, name)
                for name in (*BUDGETS, "mechanism", "strategy", "band", "spans_column")
            }
        )

    @field_validator("archive")
    @classmethod
    def _own_folder(cls, archive: str) -> str:
        parts = Path(archive).parts
        if (
            not parts
            or Path(archive).is_absolute()
            or ".." in parts
            or parts[0] in NOT_TO_PUBLISH_IN
        ):
            raise refused(
                f"it must be a folder of this project outside {', '.join(NOT_TO_PUBLISH_IN)}, "
                "such as releases"
            )
        return archive

    @model_validator(mode="after")
    def _complete(self) -> Self:
        operator = Path(self.operator).absolute()
        published = {
            Path(name).absolute() for name in (self.archive, "artifacts", "data", ".dvc", ".git")
        }
        if published & {operator, *operator.parents}:
            raise ValueError(
                "inbox.operator lies in a folder that is published or tracked; choose "
                "another folder, such as .lexveil/operator"
            )
        if self.source is not None and self.sql is not None:
            raise ValueError("inbox.source and inbox.sql are both set; remove one of them")
        if self.attach is not None and self.sql is None:
            raise ValueError(
                "inbox.attach is set without inbox.sql, which reads that database; write a "
                "SELECT into inbox.sql"
            )
        given = [f"inbox.{name}" for name in BUDGETS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} are both set, but each determines what a release "
                "spends; keep one of them"
            )
        if self.is_on and not given:
            raise ValueError(
                "set one of inbox.protection (a level), inbox.epsilon (base epsilon per "
                "word), inbox.document_budget (budget of each document) and inbox.recovery "
                "(share of words that an adversary is expected to name), because releases "
                "of the inbox have no default budget"
            )
        named = [self.id_column, *self.text_columns, *(self.columns or [])]
        if len(set(named)) < len(named):
            raise ValueError(
                "inbox.id_column, text_columns and columns repeat a column; name each column once"
            )
        if self.subject_column in self.text_columns:
            raise ValueError(
                "inbox.subject_column is one of inbox.text_columns, which are rewritten; "
                "name a column that is not rewritten"
            )
        if self.spans_column is not None and self.spans_column in (*named, self.subject_column):
            raise ValueError(
                "inbox.spans_column is also another column of inbox; use a separate column "
                "for spans"
            )
        return self


class PresidioParams(Documented):
    """Settings of Presidio as a detector. It finds matches by its pattern recognizers, which need
    no model, and named entities by a spaCy model of yours.
    """

    language: str = "en"
    """language of the texts, by its code"""
    entities: list[str] = []
    """entity types to detect, by Presidio's names; []: all types"""
    countries: list[str] = []
    """codes of the countries whose numbers are detected, such as us; []: all countries"""
    threshold: float = Field(0.3, ge=0, le=1)
    """smallest score of a match; below 0.3, many matches are false"""
    spacy_model: str | None = as_requested("spacy_model", example="en_core_web_sm")


class DetectionParams(Documented):
    """Settings of the detectors of names, numbers and similar entities, in releases and previews
    (docs/how-to/detectors.md). Runs of the graph use no detectors.
    """

    detector: Literal["presidio"] | None = as_requested("detector", example="presidio")
    types: dict[TypeName, FoundAction] = as_requested(
        "types", {}, example={"PERSON": "pseudonym", "PHONE_NUMBER": "digits"}
    )
    protect: str | None = as_requested("protect", example="protect.txt")
    allow: str | None = as_requested("allow", example="allow.txt")
    pseudonyms: str | None = as_requested("pseudonyms", example="pseudonyms.txt")
    presidio: PresidioParams = Field(default_factory=PresidioParams)
