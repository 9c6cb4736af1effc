"""The results of lineage, verification and garbage collection, as their JSON has them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class LockedPath(TypedDict):
    """A file or folder with its hash, as dvc.lock records it; outside the project it has no md5."""

    path: str
    md5: str


class LockEntry(TypedDict, total=False):
    """What this package reads of a stage's entry in dvc.lock."""

    deps: list[LockedPath]
    outs: list[LockedPath]


class Environment(TypedDict):
    """The libraries that a run used."""

    python: str
    platform: str
    packages: dict[str, str]


class RunRecord(TypedDict):
    """Which run made what dvc.lock records of a stage.

    Attributes:
        entry: hash of the entry in dvc.lock.
        at: when, UTC.
        flow_run, flow_run_name, task_run: of Prefect.
        commit, committed: of the code; None without git.
        environment: key of an ``Environment``.
    """

    entry: str
    at: str
    flow_run: str
    flow_run_name: str
    task_run: str | None
    commit: str | None
    committed: bool | None
    environment: str


class Provenance(TypedDict):
    """The content of .provenance.json."""

    schema: int
    stages: dict[str, RunRecord]
    environments: dict[str, Environment]


class StageInput(TypedDict):
    """What a stage read.

    Attributes:
        md5: of a folder, that of DVC's list of its files, which ends in ``.dir``.
        made_by: the stages before it; None for code and data.
        as_made: it is what those stages last made; None where DVC's cache does not tell.
    """

    path: str
    md5: str | None
    made_by: str | None
    as_made: bool | None


class StageOutput(TypedDict):
    """What a stage made; ``unchanged``: the file there now is still the recorded one."""

    path: str
    md5: str | None
    unchanged: bool


class ChainEntry(TypedDict):
    """One stage of a chain.

    Attributes:
        command: None for data.
        sources: the files of the data that the chain reads; None where DVC's cache does not tell.
        privacy: the record of a run that rewrote documents.
        made: the run that made it; None where it was not `lexveil run`.
    """

    stage: str
    command: str | None
    params: dict[str, object]
    inputs: list[StageInput]
    outputs: list[StageOutput]
    sources: list[LockedPath] | None
    privacy: dict[str, object] | None
    made: RunRecord | None


class MadeWith(TypedDict):
    """A file that a privacy record names; path, md5 and stage are None where no dvc.lock that is
    known here has it.
    """

    name: str
    sha256: str
    path: str | None
    md5: str | None
    stage: str | None


class ReleaseRecord(TypedDict):
    """What lineage reads of the privacy record of a written file; see lexveil.accounting.record for
    all of it.
    """

    mode: str
    made_with: dict[str, str]
    guarantee: dict[str, object]
    model: NotRequired[dict[str, str] | None]
    output: NotRequired[dict[str, str]]


class Lineage(TypedDict):
    """Where an artifact of the graph comes from, or a file that `lexveil privatize` wrote.

    Attributes:
        artifact: path.
        at: the git revision asked for, None for the work tree; of a written file, the newest commit
            that has all of what it was made with, or else most.
        commit: of that time; of the work tree, the one it is based on; None without git.
        committed: whether dvc.lock and dvc.yaml are as in that commit; None without git.
        chain: from the stages that made it down to the data.
        environments: of the runs that made the chain.
        md5, stage: of an artifact; its md5 is None where DVC's cache does not tell.
        record, made_with: of a written file.
    """

    artifact: str
    at: str | None
    commit: str | None
    committed: bool | None
    chain: list[ChainEntry]
    environments: dict[str, Environment | None]
    md5: NotRequired[str | None]
    stage: NotRequired[str]
    record: NotRequired[ReleaseRecord]
    made_with: NotRequired[list[MadeWith]]


Kind = Literal["output", "source", "code", "link", "record"]
State = Literal["same", "committed", "absent", "unknown", "changed"]


class FileDifference(TypedDict):
    """How a file differs: changed, missing or added."""

    path: str
    how: str


class Finding(TypedDict):
    """What verification found of one file or folder.

    Attributes:
        kind: an output, a source, code, a link of a stage to the one before it, or what a privacy
            record names.
        state: "same": it is as recorded; "committed": code that is as recorded in ``commit`` and
            was changed since; "absent": it is not there, so it cannot differ; "unknown": DVC's
            cache does not tell what it was; "changed": it differs, in ``files`` (None where DVC's
            cache does not tell what the files were).
    """

    kind: Kind
    path: str
    stage: str | None
    state: State
    commit: NotRequired[str]
    files: NotRequired[list[FileDifference] | None]


class ChainVerification(TypedDict):
    """An artifact and its chain, compared with the records; ``holds``: nothing differs."""

    artifact: str
    at: str | None
    holds: bool
    findings: list[Finding]


class ReleaseArtifacts(TypedDict):
    """The record of a release, and the names of what it was made with that DVC's cache does not
    hold.
    """

    file: str
    missing: list[str]


class Garbage(TypedDict):
    """Objects of DVC's cache that nothing refers to.

    Attributes:
        removed: whether they are gone now.
        objects, bytes: of what nothing refers to.
        unlisted: folders that a record names and whose list of files the cache does not hold: they
            cannot be brought back from it, and files that only they name are not known to be
            theirs.
    """

    removed: bool
    objects: int
    bytes: int
    kept_objects: int
    kept_bytes: int
    unlisted: int
    releases: list[ReleaseArtifacts]
