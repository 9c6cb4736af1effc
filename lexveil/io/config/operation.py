"""Sections of lexveil.toml: the machine, scheduled runs, the ledger, releases, the inbox and
detectors. None of them changes a result of a stage.
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
NONE = "none"  # TOML has no null: a limit that has a default is lifted by this word

TypeName = Annotated[
    str, matching(r"[A-Z][A-Z0-9_]{0,63}", "types are names in capitals, such as PHONE_NUMBER")
]


def _lifted(value: object) -> object:
    return None if value == NONE else value


CanBeLifted = BeforeValidator(_lifted)


class MachineParams(Documented):
    """Resources that stages and releases may use on this machine."""

    memory_limit: Annotated[
        str,
        matching(
            MEMORY,
            "it must be a number above 0 with a unit: KB, MB, GB or TB, or KiB, MiB, GiB or TiB; "
            "write for example 2GB",
        ),
    ] = "2GB"
    """of counting, sorting and joining; what is larger goes to disk"""
    temp_directory: str = ".lexveil/work"
    """what goes to disk, and finished parts of a stopped stage"""
    threads: int = Field(2, ge=1, le=1024)
    """of one process"""
    workers: int = Field(2, ge=1, le=1024)
    """independent stages that run side by side, and processes of one"""
    stage_minutes: Annotated[int | None, CanBeLifted] = Field(480, ge=1, le=10**6)
    """a stage that is estimated to take longer is refused before it begins; "none": never"""
    dask_scheduler: Annotated[
        str | None,
        matching(
            SCHEDULER,
            "it must be the address of a Dask scheduler as tcp://HOST:PORT or "
            "tls://HOST:PORT; leave it out for machine.workers processes of this machine",
        ),
    ] = Field(None, examples=["tcp://10.0.0.5:8786"])
    """the scheduler of a Dask cluster for the parts of a stage (docs/how-to/clusters.md); left out:
    processes of this machine"""

    def alone(self) -> MachineParams:
        """Return the settings for work so small that distributing it takes longer than doing it."""
        return self.model_copy(update={"dask_scheduler": None, "workers": 1})


class OperationParams(Documented):
    """Scheduled runs, and notifications about runs (docs/how-to/operation.md)."""

    timeout_minutes: Annotated[int | None, CanBeLifted] = Field(1440, ge=1, le=10**6)
    """a scheduled run that takes longer is stopped; "none": never"""
    webhook: str | None = Field(None, examples=["https://chat.example.org/hooks/1234"])
    """http(s) address that hears of a failed run, by POST of JSON without texts; the variable
    LEXVEIL_WEBHOOK takes precedence; left out: nobody"""
    audit_days: int = Field(30, ge=1, le=3650)
    """a privacy record relies on no audit that is older"""
    openlineage: str | None = Field(None, examples=["events.jsonl"])
    """where OpenLineage events go (docs/how-to/lineage.md): a file or http://HOST:PORT; left out:
    nowhere"""

    @model_validator(mode="after")
    def _addresses(self) -> Self:
        # Do not quote such addresses: they are often secrets.
        if self.webhook is not None and not re.match(r"https?://[^/]", self.webhook):
            raise ValueError("operation.webhook must be an address that starts with http(s)://HOST")
        target = self.openlineage
        if target is not None and (
            not target or ("://" in target and not re.match(r"https?://[^@/]+(/|$)", target))
        ):
            raise ValueError(
                "operation.openlineage must be a file, or an address http://HOST:PORT "
                "without a key or "
                "password in it (the variable OPENLINEAGE_API_KEY gives a key)"
            )
        return self


class GateParams(Documented):
    """Conditions that a release must meet before it is published. A condition with the limit "none"
    is not checked.
    """

    min_coverage: Annotated[float | None, CanBeLifted] = Field(0.5, ge=0, le=1)
    """smallest share of the words that the vocabulary knows"""
    max_unprotected: Annotated[float | None, CanBeLifted] = Field(0.5, ge=0, le=1)
    """largest share of the tokens that are kept"""
    max_length_ratio: Annotated[float | None, CanBeLifted] = Field(3.0, ge=0, le=1e6)
    """words of a document's output per token of its source, at most"""
    pii: bool = True
    """no output holds e-mail or web addresses, telephone numbers, @names, 6 digits in a row"""


class ShareParams(Documented):
    """Shares of a document's budget for tokens of public classes, in hundredths; any other token
    has the share 1.

    The class of a token is then disclosed. A token of several classes belongs to the last of them
    in this list.
    """

    stopwords: Share = 1.0
    """stop words, where they are perturbed"""
    numbers: Share = 1.0
    """tokens with a digit and no letter"""
    listed: Share = 1.0
    """words of the list, and collocations with one"""
    list: ListFile | None = Field(None, examples=["names.txt@3f0a4c21b7d9"])
    """a public list, as FILE@HASH: a word a line"""


class LedgerParams(Documented):
    """The ledger, which records the spending of each subject in all releases
    (docs/explanation/ledger.md).
    """

    cap: Annotated[float, Field(ge=1e-9, le=999_999_999.0)] | Literal["unlimited"] | None = Field(
        None, examples=[5000.0]
    )
    """epsilon of one subject over all releases, for ever, or "unlimited"; left out: enough for 10
    releases of a text of ordinary length, by the settings of the first one"""
    folder: str = ".lexveil/ledger"
    """the database, its secret salt, and the locks of this machine's releases: keep copies"""
    database: Annotated[
        str | None,
        matching(
            SERVER,
            "it must be postgresql://HOST/DATABASE, without a password: libpq reads that from "
            "~/.pgpass, PGPASSFILE or PGPASSWORD; leave it out for a file in the folder",
        ),
    ] = Field(None, repr=False, examples=["postgresql://db.example.org/ledger"])
    """postgresql://HOST/DATABASE, without a password, for machines that share one budget; left out:
    a file in the folder"""
    anchor: str = ".ledger-anchor.json"
    """file that says how far the ledger has come: commit it"""
    keys: Literal["hashed", "plain"] = "hashed"
    """of subjects in the ledger: salted hashes, or plain"""
    on_exhausted: OnExhausted = "withhold"
    """documents beyond the cap are left out; or refuse: nothing is released then"""

    @model_validator(mode="before")
    @classmethod
    def _address(cls, given: object) -> object:
        return {"database": given} if isinstance(given, str) else given


class ReleaseParams(Documented):
    """Defaults and limits of all releases, by `lexveil privatize` and by the inbox."""

    average_words: float | None = Field(None, ge=1e-3, le=1e9, examples=[100.0])
    """words of a document by which a base epsilon becomes its budget: a public number; left out:
    the mean of the corpus"""
    max_token_epsilon: float | None = Field(None, ge=1e-9, le=1e9, examples=[10.0])
    """largest epsilon of a token; what a short document leaves stays unspent; left out: twice the
    base epsilon"""
    shares: ShareParams = Field(default_factory=ShareParams)
    max_recovery: float | None = Field(None, gt=0, lt=1, examples=[0.1])
    """refuse releases of which a Bayes-optimal adversary is expected to name more words, or more
    words are expected to come out unchanged, at the largest epsilon of a token; left out: no
    limit"""
    max_recovery_band: BandName = "rare"
    """of which words: all, content (all but function words), function, frequent, middle or rare"""
    max_linkage: float | None = Field(None, gt=0, le=1, examples=[0.05])
    """refuse releases whose source is found more often by whoever has it among 1,000 texts, or of
    which that was not measured; left out: no limit"""
    without_guarantee: bool = as_requested("without_guarantee", default=False)
    screen: ScreenParts = DEFAULT_SCREEN
    """parts of the public list of words that are never put out, with commas between them: vulgar,
    jargon, health, crime, religion, names; or none"""


class InboxParams(Documented):
    """Source and target of `lexveil release` (docs/how-to/release.md). The command does nothing
    without ``source`` and ``sql``.
    """

    source: str | None = Field(None, examples=["inbox"])
    """an inbox folder, or a file or pattern of files that DuckDB reads"""
    sql: str | None = Field(None, examples=["SELECT id, text FROM tickets"])
    """a SELECT in place of a source"""
    attach: str | None = Field(None, repr=False, examples=["postgresql://host/crm"])
    """the database that sql reads, without a password: an address, or a file of DuckDB"""
    id_column: str = "id"
    """by which a document is known again"""
    ids: Literal["pseudonym", "plain"] = "pseudonym"
    """published ids and subjects: random names, others in each release; or as they are"""
    text_columns: Several[str] = ["text"]
    """columns that are rewritten"""
    subject_column: str | None = Field(None, examples=["id"])
    """whose budget a document spends; left out: each text has its own, and no document may
    change"""
    spans_column: str | None = as_requested("spans_column", example="spans")
    columns: Several[str] | None = Field(None, examples=[["label", "year"]])
    """other columns that are published as they are"""
    mechanism: MechanismName = "tem"
    """of the releases"""
    strategy: StrategyName = "S3"
    """of the releases"""
    protection: LevelName | None = as_requested("protection", example="balanced")
    epsilon: float | None = as_requested("epsilon", example=5.0)
    document_budget: float | None = as_requested("document_budget", example=200.0)
    recovery: float | None = as_requested("recovery", example=0.2)
    band: BandName = as_requested("band", "all")
    gate: GateParams = Field(default_factory=GateParams)
    archive: str = "releases"
    """folder of this project for what is released"""
    operator: str = ".lexveil/operator"
    """folder for what only the operator may see of releases; keep copies"""

    @property
    def is_on(self) -> bool:
        """Whether a source is configured."""
        return self.source is not None or self.sql is not None

    @property
    def request(self) -> Request:
        """The request with which `lexveil release` rewrites the texts of the inbox."""
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
                "another, such as "
                ".lexveil/operator"
            )
        if self.source is not None and self.sql is not None:
            raise ValueError("inbox.source and inbox.sql are both given; leave one out")
        if self.attach is not None and self.sql is None:
            raise ValueError(
                "inbox.attach is a database for inbox.sql, which is left out; write the SELECT"
            )
        given = [f"inbox.{name}" for name in BUDGETS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} are given together, and each says what a release spends; "
                "keep one of them"
            )
        if self.is_on and not given:
            raise ValueError(
                "give one of inbox.protection (a level), inbox.epsilon (base epsilon per "
                "word), inbox.document_budget "
                "(budget of each document) and inbox.recovery (share of words that an "
                "adversary is expected to name); "
                "no release of the inbox has a default for what it spends"
            )
        named = [self.id_column, *self.text_columns, *(self.columns or [])]
        if len(set(named)) < len(named):
            raise ValueError(
                "inbox.id_column, text_columns and columns name a column twice; name it once"
            )
        if self.subject_column in self.text_columns:
            raise ValueError(
                "inbox.subject_column is one of inbox.text_columns, which are rewritten"
            )
        if self.spans_column is not None and self.spans_column in (*named, self.subject_column):
            raise ValueError(
                "inbox.spans_column is another column of inbox, too; give spans a column of "
                "their own"
            )
        return self


class PresidioParams(Documented):
    """Presidio as a detector: its pattern recognizers, which need no model, and named entities by
    your own spaCy model.
    """

    language: str = "en"
    """of the texts, by its code"""
    entities: list[str] = []
    """what is looked for, by Presidio's names; []: all that there is"""
    countries: list[str] = []
    """codes of the countries whose numbers are looked for, such as us; []: of all"""
    threshold: float = Field(0.3, ge=0, le=1)
    """least score of a finding; below 0.3 many a number is taken for something"""
    spacy_model: str | None = as_requested("spacy_model", example="en_core_web_sm")


class DetectionParams(Documented):
    """Detectors of names, numbers and the like, in releases and previews
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
