"""Provenance of the results in dvc.lock: the Prefect run, the commit and the libraries that made
each result. See docs/how-to/lineage.md.

.provenance.json lies beside dvc.lock and is committed with it. DVC does not read it, so it makes
nothing stale and changes no artifact. Each entry of .provenance.json contains a hash of the entry
of dvc.lock to which it belongs. An entry of dvc.lock that another command wrote therefore has no
provenance, and never gets the provenance of another run.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import yaml

from lexveil.base.runtime.dvc_graph import LOCKFILE
from lexveil.base.runtime.project import STATE
from lexveil.base.runtime.tables import read_object
from lexveil.lab.lineage.results import Environment, LockEntry, Provenance, RunRecord

PROVENANCE = Path(".provenance.json")
# provenance of every run on this machine, because DVC may restore the results of any run
KEPT = STATE / "provenance"
SCHEMA = 1

# Files that record how artifacts were made. They change with each stage, so they do not count as
# code.
RECORDS = ("dvc.lock", "dvc.yaml", "params.yaml", "lexveil.toml", "data.dvc", PROVENANCE.name)


@dataclass(frozen=True, slots=True)
class Origin:
    """The Prefect run and the git commit that made some results.

    Attributes:
        flow_run: id of the flow run in Prefect.
        flow_run_name: name of the flow run in Prefect.
        commit: commit of the code; None without git.
        committed: whether the code equals that commit; None without git.
    """

    flow_run: str
    flow_run_name: str
    commit: str | None
    committed: bool | None


@cache
def environment() -> Environment:
    """Return the Python version, the platform, and every installed package with its version. All
    stages of a run share this environment.
    """
    packages = {package.metadata["Name"].lower(): package.version for package in distributions()}
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "packages": dict(sorted(packages.items())),
    }


def stamp(content: object) -> str:
    """Return a hash of JSON-like values that does not depend on the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def lock_entries(text: str) -> dict[str, LockEntry]:
    """Parse the text of a dvc.lock and return the entries of its stages by name; the result is
    empty if the file is truncated.
    """
    try:
        return (yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}).get(
            "stages"
        ) or {}
    except (yaml.YAMLError, AttributeError):
        return {}


def own_entries() -> dict[str, LockEntry]:
    """Return the entries of the project's dvc.lock by stage name; the result is empty if the file
    is truncated.
    """
    return lock_entries(LOCKFILE.read_text(encoding="utf-8")) if LOCKFILE.exists() else {}


def entries_with(names: Iterable[str]) -> dict[str, LockEntry]:
    """Return the dvc.lock entries of the named stages while stages run; the result is empty if
    dvc.lock does not get them in time.

    DVC may be writing the file at this moment, so an incomplete file is read again.
    """
    wanted = sorted(set(names))
    for _ in range(20):
        entries = own_entries()
        if entries.keys() >= set(wanted):
            return {name: entries[name] for name in wanted}
        time.sleep(0.1)
    return {}


def keep(stage: str, origin: Origin, task_run: str | None) -> None:
    """Record on this machine which run made the dvc.lock entry of ``stage``. Call this function
    after the stage has run.
    """
    entry = entries_with([stage]).get(stage)
    if entry is None:
        return
    record: RunRecord = {
        "entry": stamp(entry),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "flow_run": origin.flow_run,
        "flow_run_name": origin.flow_run_name,
        "commit": origin.commit,
        "committed": origin.committed,
        "task_run": task_run,
        "environment": stamp(environment())[:12],
    }
    _write(KEPT / "environments" / f"{record['environment']}.json", environment())
    _write(KEPT / f"{record['entry']}.json", record)


def settle() -> None:
    """Update .provenance.json to match the present dvc.lock. Call this function when no DVC process
    is writing.
    """
    entries = own_entries()
    before = read_object(PROVENANCE)
    stages: dict[str, RunRecord] = {}
    environments: dict[str, Environment] = {}
    for name, entry in sorted(entries.items()):
        hashed = stamp(entry)
        record = before.get("stages", {}).get(name, {})
        if record.get("entry") != hashed:
            record = read_object(KEPT / f"{hashed}.json")
        if record:
            stages[name] = record
            used = record["environment"]
            known: Any = before.get("environments", {}).get(used) or read_object(
                KEPT / "environments" / f"{used}.json"
            )
            environments[used] = known
    after: Provenance = {
        "schema": SCHEMA,
        "stages": stages,
        "environments": dict(sorted(environments.items())),
    }
    if after != before and (stages or before):
        _write(PROVENANCE, after)


def matching(provenance: Mapping[str, Any], entries: Mapping[str, Any]) -> dict[str, RunRecord]:
    """Return the provenance of those stages whose entries in a dvc.lock match their recorded
    hashes.
    """
    return {
        name: record
        for name, record in provenance.get("stages", {}).items()
        if name in entries and record.get("entry") == stamp(entries[name])
    }


def _write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{threading.get_ident()}.partial")
    partial.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(partial, file)
