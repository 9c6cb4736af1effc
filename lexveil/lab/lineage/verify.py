"""Verification of an artifact, and of the chain of stages that made it, against their recorded
hashes. Every file is read and hashed; no cached hash is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lexveil.base.errors import RequestError
from lexveil.base.runtime.dvc_graph import LOCKFILE
from lexveil.base.runtime.hashes import sha256
from lexveil.lab.lineage.file_hashes import within
from lexveil.lab.lineage.release_lineage import Search, released
from lexveil.lab.lineage.results import (
    ChainVerification,
    FileDifference,
    Finding,
    Kind,
    ReleaseRecord,
    State,
)
from lexveil.lab.lineage.trace import (
    History,
    ancestors,
    history,
    inputs_of,
    lies_in,
    owner_of,
    privacy_record,
)


def verify(artifact: Path, revision: str | None = None) -> ChainVerification:
    """Compare an artifact, and every existing file of the chain that made it, with the recorded
    hashes.

    Args:
        artifact: path relative to the project.
        revision: git revision of the records; None for the work tree.

    Raises:
        RequestError: if no stage makes the artifact, its stage has not run, or the artifact does
            not exist.
    """
    with history(revision, trust=False) as known:
        owner = owner_of(known, artifact)
        if known.files.md5(artifact.as_posix()) is None:
            raise RequestError(f"{artifact} is missing; `dvc checkout` or `dvc pull` restores it")
        return _report(artifact, revision, list(_findings(known, [owner])))


def verify_released(
    file: Path, record_file: Path, revision: str | None = None
) -> ChainVerification:
    """Compare a file that `lexveil privatize` wrote, and its token log, with the hashes in its
    privacy record, and then the chain of its artifacts.

    Raises:
        RequestError: if ``record_file`` is not a privacy record.
    """
    origin = released(file, record_file, revision, trust=False)
    findings = list(_own(record_file, origin["record"]))
    for item in origin["made_with"]:
        state: State = "unknown" if item["path"] is None else "same"
        findings.append(_finding("link", item["path"] or item["name"], item["stage"], state))
    stages = sorted({item["stage"] for item in origin["made_with"] if item["stage"]})
    if stages:
        with history(origin["at"], trust=False) as known:
            findings += _findings(known, stages)
    return _report(file, origin["at"], findings)


def _report(artifact: Path, revision: str | None, findings: Sequence[Finding]) -> ChainVerification:
    holds = all(finding["state"] != "changed" for finding in findings)
    return {
        "artifact": artifact.as_posix(),
        "at": revision,
        "holds": holds,
        "findings": list(findings),
    }


def _finding(kind: Kind, path: str, stage: str | None, state: State) -> Finding:
    return {"kind": kind, "path": path, "stage": stage, "state": state}


def _changed(
    kind: Kind, path: str, stage: str | None, files: list[FileDifference] | None
) -> Finding:
    return {"kind": kind, "path": path, "stage": stage, "state": "changed", "files": files}


def _own(record_file: Path, record: ReleaseRecord) -> Iterator[Finding]:
    """Compare a released file and its token log with the hashes in the privacy record and in the
    operator's report.
    """
    file = record_file.with_name(record_file.name.removesuffix(".record.json"))
    report = file.with_name(f"{file.name}.operator.json")
    written = dict(record.get("output", {}))
    if report.is_file():
        written |= json.loads(report.read_text(encoding="utf-8")).get("output") or {}
    for path, wanted in (
        (file, "sha256"),
        (file.with_name(f"{file.name}.tokens.parquet"), "tokens_sha256"),
    ):
        if wanted not in written:
            if path.is_file():
                yield _finding("output", str(path), None, "unknown")
        elif not path.is_file():
            yield _finding("output", str(path), None, "absent")
        elif sha256(path) == written[wanted]:
            yield _finding("output", str(path), None, "same")
        else:
            yield _changed("output", str(path), None, [{"path": str(path), "how": "changed"}])


def _findings(known: History, owners: Sequence[str]) -> Iterator[Finding]:
    names = ancestors(known.graph, owners)
    read = {dep.as_posix() for name in names for dep in known.graph.stages[name].deps}
    for name in names:
        stage = known.graph.stages[name]
        outs = [out.as_posix() for out in stage.outs]
        for out in outs:
            yield _output(known, name, out, None if stage.locked else read)
        for path, md5 in inputs_of(known, name):
            yield (
                _link(known, name, path, md5)
                if known.makers(path)
                else _code(known, name, path, md5)
            )
        if record := privacy_record(known, outs):
            yield from _made_with(known, name, record)


def _output(known: History, name: str, out: str, read: set[str] | None) -> Finding:
    """Compare an output of a stage with its recorded hash; for data/, compare only the files that
    the chain reads.
    """
    kind: Kind = "output" if read is None else "source"
    now = within(out, known.files.now(out))
    if not now:
        return _finding(kind, out, name, "absent")
    if known.files.md5(out) == known.outputs[out][1]:
        return _finding(kind, out, name, "same")
    listing = known.listing(out)
    if listing is None:
        return _changed(kind, out, name, None)
    files: list[FileDifference] = [
        {
            "path": path,
            "how": "added" if path not in listing else "missing" if path not in now else "changed",
        }
        for path in sorted(listing.keys() | now.keys())
        if listing.get(path) != now.get(path) and (read is None or lies_in(path, read))
    ]
    return _changed(kind, out, name, files) if files else _finding(kind, out, name, "same")


def _link(known: History, name: str, path: str, md5: str | None) -> Finding:
    """Compare the hash of the input that a stage read with the latest result of the stage that
    makes this input.
    """
    current = known.hash_of(path)
    if current is None:
        return _finding("link", path, name, "unknown")
    return (
        _finding("link", path, name, "same")
        if current == md5
        else _changed("link", path, name, None)
    )


def _code(known: History, name: str, path: str, md5: str | None) -> Finding:
    """Compare a code file with its recorded hash. The present code is compared first, then the code
    in the commits of the run, of the records, and of the work tree.
    """
    if known.files.md5(path) == md5:
        return _finding("code", path, name, "same")
    run = known.origins.get(name)
    recorded_in = known.files.last_change(LOCKFILE.name, known.commit) if known.commit else None
    for commit in filter(None, (run and run["commit"], recorded_in, known.commit)):
        if known.files.committed(path, commit) == md5:
            return {**_finding("code", path, name, "committed"), "commit": commit}
    return _changed("code", path, name, [{"path": path, "how": "changed"}])


def _made_with(known: History, name: str, record: Mapping[str, Any]) -> Iterator[Finding]:
    """Compare the hashes of artifacts in a privacy record with the latest results of the stages
    that make these artifacts.
    """
    wanted = ancestors(known.graph, [name])
    outs = {out: md5 for out, (maker, md5) in known.outputs.items() if md5 and maker in wanted}
    matches = Search(known.files).find(record, outs)
    # Otherwise some content is not on this machine.
    complete = all(known.files.md5(out) for out in outs)
    for file in record["made_with"]:
        if file in matches:
            yield _finding("record", matches[file][0], name, "same")
        else:
            yield (
                _changed("record", file, name, None)
                if complete
                else _finding("record", file, name, "unknown")
            )


CHANGED: dict[Kind, str] = {
    "output": "differs from the output of {stage}",
    "source": "differs from data.dvc",
    "code": "differs from the code that {stage} ran, in the work tree and in the run's commit",
    "link": "was made again since {stage} read it",
    "record": "differs from the hash in the privacy record of {stage}",
}

PLURAL: dict[Kind, str] = {
    "output": "outputs",
    "source": "of data",
    "code": "of code",
    "link": "inputs from other stages",
    "record": "files named by privacy records",
}


def as_text(report: ChainVerification) -> Iterator[str]:
    """Yield a verification report as lines of text, differences first."""
    findings = report["findings"]
    yield (
        f"{report['artifact']}: "
        f"{'all existing files are' if report['holds'] else 'some files are NOT'} as recorded"
    )
    for finding in findings:
        if finding["state"] == "changed":
            difference = CHANGED[finding["kind"]].format(
                stage=finding["stage"] or "lexveil privatize"
            )
            yield f"  CHANGED  {finding['path']}: {difference}"
            if finding["files"] is None and finding["kind"] == "output":
                yield (
                    "           DVC's cache does not have the list of its files; `dvc fetch` "
                    "fetches it"
                )
            for file in finding["files"] or ():
                yield f"           {file['how']:8} {file['path']}"
    for state, text in (
        ("same", "as recorded"),
        ("committed", "changed since, but as recorded in the run's commit"),
        ("absent", "missing, so not compared"),
        ("unknown", "not compared, because DVC's cache lacks the record"),
    ):
        kinds = [finding["kind"] for finding in findings if finding["state"] == state]
        if kinds:
            yield f"  {text}: " + ", ".join(
                f"{kinds.count(kind)} {PLURAL[kind]}" for kind in dict.fromkeys(kinds)
            )
