"""Formatting of the lineage of a file as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from lexveil.io.artifacts.levels import CARD_IN_RECORDS
from lexveil.lab.lineage.provenance import RECORDS
from lexveil.lab.lineage.results import (
    ChainEntry,
    ChainVerification,
    Environment,
    Lineage,
    RunRecord,
)

ELSEWHERE = (
    "from the bank whose bank.json has this sha256; a record does not state the place of the bank"
)


def as_json(result: Lineage | ChainVerification) -> Iterator[str]:
    """Yield a lineage or a verification report as one JSON document."""
    yield json.dumps(result, indent=2, ensure_ascii=False)


def as_text(lineage: Lineage) -> Iterator[str]:
    """Yield a lineage as lines of text."""
    yield f"{lineage['artifact']}  {lineage.get('md5') or ''}".rstrip()
    if "record" in lineage:  # a file that `lexveil privatize` wrote
        yield from _release(lineage)
    if lineage["commit"]:
        changes = (
            "" if lineage["committed"] else f", with changes not committed ({', '.join(RECORDS)})"
        )
        yield f"commit {lineage['commit']}{changes}"
    for entry in lineage["chain"]:
        yield ""
        yield from _entry(entry)
    for name, environment in lineage["environments"].items():
        if environment:
            yield ""
            yield from _environment(name, environment)


def _release(lineage: Lineage) -> Iterator[str]:
    model = lineage["record"].get("model")
    packaged = model is not None and model["version"] is not None
    nowhere = "not in the installed model" if packaged else "in no known dvc.lock"
    if model is not None:
        version = f" {model['version']}" if packaged else ""
        yield f"  model    {model['name']}{version}  sha256 {model['sha256']}"
    for file in lineage["made_with"]:
        unknown = ELSEWHERE if file["name"] == CARD_IN_RECORDS else nowhere
        origin = (
            f"{file['path']}  from {file['stage']}" if file["stage"] else file["path"] or unknown
        )
        yield f"  with     {file['name']}  sha256 {file['sha256']}: {origin}"
    yield from _privacy(lineage["record"])


def _entry(entry: ChainEntry) -> Iterator[str]:
    yield entry["stage"]
    if entry["command"]:
        yield f"  command  {entry['command']}"
        yield from _made(entry["made"])
    for name, value in entry["params"].items():
        yield f"  param    {name} = {value}"
    for item in entry["inputs"]:
        by = f"  from {item['made_by']}" if item["made_by"] else ""
        since = "  (made again since this stage read it)" if item["as_made"] is False else ""
        yield f"  input    {item['path']}  {item['md5']}{by}{since}"
    for output in entry["outputs"]:
        since = "" if output["unchanged"] else "  (changed since)"
        yield f"  output   {output['path']}  {output['md5']}{since}"
    yield from _privacy(entry["privacy"])
    for source in entry["sources"] or ():
        yield f"  source   {source['path']}  {source['md5']}"
    if entry["command"] is None and entry["sources"] is None:
        yield (
            "  source   DVC's cache does not have the list of files; `dvc fetch data.dvc` "
            "fetches it"
        )


def _environment(name: str, environment: Environment) -> Iterator[str]:
    yield f"environment {name}: {environment['python']} on {environment['platform']}"
    packages = " ".join(
        f"{package}=={version}" for package, version in environment["packages"].items()
    )
    yield from wrap(
        packages, 118, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


def _privacy(record: Mapping[str, Any] | None) -> Iterator[str]:
    if record is not None:
        yield f"  privacy  mode {record['mode']}; guarantee: {record['guarantee']['formula']}"
        yield f"           {record['guarantee']['statement']}"


def _made(record: RunRecord | None) -> Iterator[str]:
    if record is None:
        yield (
            "  made     by a run without a record: not by `lexveil run`, or .provenance.json "
            "belongs to other results"
        )
        return
    yield f"  made     {record['at']}, environment {record['environment']}"
    yield (
        f"  run      Prefect flow run {record['flow_run_name']} ({record['flow_run']}), "
        f"task run {record['task_run']}"
    )
    if record["commit"]:
        yield (
            "  code     commit "
            f"{record['commit']}{'' if record['committed'] else ', with changes not committed'}"
        )
