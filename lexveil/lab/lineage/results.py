"""Typed dictionaries for the results of lineage, verification and garbage collection, with the
fields of their JSON.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class LockedPath(TypedDict):
    """A file or folder with its md5, as dvc.lock records it; paths outside the project have no
    md5.
    """

    path: str
    md5: str


class LockEntry(TypedDict, total=False):
    """Entry of a stage in dvc.lock, with only the fields that this package reads."""

    deps: list[LockedPath]
    outs: list[LockedPath]


class Environment(TypedDict):
    """Python version, platform and libraries of a run."""

    python: str
    platform: str
    packages: dict[str, str]


class RunRecord(TypedDict):
    """Record of the run that made the results of a stage in dvc.lock.

    Attributes:
        entry: hash of the entry in dvc.lock.
        at: time of the run, UTC.
        flow_run, flow_run_name, task_run: ids and name in Prefect.
        commit, committed: commit of the code, and whether the code equals that commit; None without
            git.
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
    """Content of the file .provenance.json."""

    schema: int
    stages: dict[str, RunRecord]
    environments: dict[str, Environment]


class StageInput(TypedDict):
    """An input of a pipeline stage, with its hash and the stages that made it.

    Attributes:
        md5: hash of the input; for a folder, the hash of DVC's list of its files, which ends in
            ``.dir``.
        made_by: the stages that made the input; None for code and data.
        as_made: whether the input equals the latest result of those stages; None if DVC's cache
            does not have the necessary list.
    """

    path: str
    md5: str | None
    made_by: str | None
    as_made: bool | None


class StageOutput(TypedDict):
    """An output of a pipeline stage; ``unchanged`` is true if the present file equals the recorded
    one.
    """

    path: str
    md5: str | None
    unchanged: bool


class ChainEntry(TypedDict):
    """One stage in the chain of stages from an artifact back to the data.

    Attributes:
        command: command of the stage; None for data.
        sources: data files that the chain reads; None if DVC's cache does not have their list.
        privacy: privacy record, if the stage rewrote documents.
        made: the run that made the outputs; None if the outputs were not made by `lexveil run`.
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
    """An artifact that a privacy record names by its hash; path, md5 and stage are None if no known
    dvc.lock has the file.
    """

    name: str
    sha256: str
    path: str | None
    md5: str | None
    stage: str | None


class ReleaseRecord(TypedDict):
    """Fields of a privacy record (JSON about a release) that lineage reads;
    lexveil.core.accounting.record defines the whole record.
    """

    mode: str
    made_with: dict[str, str]
    guarantee: dict[str, object]
    model: NotRequired[dict[str, str] | None]
    output: NotRequired[dict[str, str]]


class Lineage(TypedDict):
    """Lineage of an artifact of the pipeline, or of a file that `lexveil privatize` wrote.

    Attributes:
        artifact: path of the artifact or file.
        at: the requested git revision, None for the work tree; for a written file, the newest
            commit that has all of its artifacts, or most of them if none has all.
        commit: commit of that revision; for the work tree, the commit on which it is based; None
            without git.
        committed: whether dvc.lock and dvc.yaml equal that commit; None without git.
        chain: stages from the maker of the artifact down to the data.
        environments: environments of the runs that made the chain.
        md5, stage: hash and stage of an artifact; the hash is None if DVC's cache does not have it.
        record, made_with: record and artifacts of a written file.
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
    """Difference of one file from its record: changed, missing or added."""

    path: str
    how: str


class Finding(TypedDict):
    """Result of comparing one file or folder with its recorded hash.

    Attributes:
        kind: an output, a source, code, a link of a stage to the one before it, or an artifact that
            a privacy record names.
        state: "same": it equals the record; "committed": code that equals the record in ``commit``
            and was changed since; "absent": the file does not exist, so it cannot differ;
            "unknown": DVC's cache does not have the earlier content; "changed": it differs, in
            ``files`` (None if DVC's cache does not have the list of the earlier files).
    """

    kind: Kind
    path: str
    stage: str | None
    state: State
    commit: NotRequired[str]
    files: NotRequired[list[FileDifference] | None]


class ChainVerification(TypedDict):
    """Result of comparing an artifact, and the chain of stages that made it, with the records;
    ``holds`` is true if there is no difference.
    """

    artifact: str
    at: str | None
    holds: bool
    findings: list[Finding]
