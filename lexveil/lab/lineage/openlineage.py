"""OpenLineage events about a run of the pipeline, for catalogues such as Marquez or DataHub;
disabled unless lexveil.toml enables them.

There is one job for the flow and one for each stage that runs; run ids are Prefect's. Datasets are
the outputs of stages and the parts of data/, by their paths in the project, with DVC's hash as
version and the columns of Parquet files. Events contain no text, no parameter and no path of this
machine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexveil.base import paths
from lexveil.base.runtime.dvc_graph import Stage, StageGraph
from lexveil.base.runtime.hashes import version
from lexveil.base.runtime.run_events import StageResult
from lexveil.lab.lineage.provenance import entries_with
from lexveil.lab.lineage.results import LockEntry

if TYPE_CHECKING:
    from openlineage.client.facet_v2 import DatasetFacet, RunFacet
    from openlineage.client.transport import Transport

PRODUCER = "urn:lexveil"
FLOW = "build"
PATIENCE = 5.0  # timeout of the endpoint in seconds
# The client's own environment variable: a key does not belong into lexveil.toml.
API_KEY = "OPENLINEAGE_API_KEY"

ENDED = {
    "ran": "COMPLETE",
    "restored": "COMPLETE",
    "cached": "COMPLETE",
    "failed": "FAIL",
    "stopped": "ABORT",
}


class Events:
    """Sender of OpenLineage events. After an endpoint refuses an event, the sender stops; a refusal
    never fails a run.

    Args:
        target: a file to which one event per line is appended, or the address of a server.
        flow_run: id of the flow run in Prefect.
        graph: stages of the project, from which the maker of each dataset is known.
        warn: function that is called once if events cannot be delivered.
    """

    def __init__(
        self, target: str, flow_run: str, graph: StageGraph, warn: Callable[[str], None]
    ) -> None:
        self._target = target
        self._flow_run = flow_run
        self._graph = graph
        self._warn = warn
        self._namespace = f"lexveil://{Path.cwd().name}"
        self._outs = {out for stage in graph.stages.values() if stage.locked for out in stage.outs}
        self._transport = _transport(target)
        self._lock = threading.Lock()
        self._gone = False

    def begin(self) -> None:
        """Send the event that the flow started."""
        self._send("START", FLOW, self._flow_run)

    def end(self, state: str, message: str = "") -> None:
        """Send the event that the flow ended; ``state`` is one of the states of a stage."""
        self._send(ENDED[state], FLOW, self._flow_run, message=message)

    def stage_begins(self, stage: Stage, run: str) -> None:
        """Send the event that a stage started, with its inputs."""
        self._send("START", stage.name, run, stage)

    def stage_ends(self, stage: Stage, run: str, result: StageResult) -> None:
        """Send the event that a stage ended, with its state, inputs and outputs."""
        self._send(ENDED[result.state], stage.name, run, stage, result.message)

    def _send(
        self, kind: str, job: str, run: str, stage: Stage | None = None, message: str = ""
    ) -> None:
        with self._lock:
            if self._gone:
                return
            try:
                self._transport.emit(self._event(kind, job, run, stage, message))
            except (OSError, RuntimeError, ValueError) as error:  # network errors are OSErrors
                self._gone = True
                why = " ".join(str(error).split())[:200]
                self._warn(
                    f"no more OpenLineage events are sent: {self._target} refused one ({why})"
                )

    def _event(self, kind: str, job: str, run: str, stage: Stage | None, message: str) -> Any:
        from openlineage.client import event_v2, facet_v2

        read: Iterable[Path] = ()
        outputs: Iterable[Path] = ()
        hashes: dict[str, str] = {}
        facets: dict[str, RunFacet] = {
            "processing_engine": facet_v2.processing_engine_run.ProcessingEngineRunFacet(
                version(), "lexveil"
            )
        }
        if stage is not None:
            parent = facet_v2.parent_run
            facets["parent"] = parent.ParentRunFacet(
                parent.Run(self._flow_run), parent.Job(namespace=self._namespace, name=FLOW)
            )
            read = self._inputs(stage)
            outputs = stage.outs if kind == "COMPLETE" else ()
            needed = {need for need in stage.needs if self._graph.stages[need].locked}
            hashes = _hashes(entries_with(needed | ({stage.name} if outputs else set())))
        if kind == "FAIL":
            facets["errorMessage"] = facet_v2.error_message_run.ErrorMessageRunFacet(
                message, "python"
            )
        what = facet_v2.job_type_job.JobTypeJobFacet(
            "BATCH", "LEXVEIL", "STAGE" if stage else "FLOW"
        )
        return event_v2.RunEvent(
            eventTime=datetime.now(UTC).isoformat(),
            run=event_v2.Run(run, facets),
            job=event_v2.Job(self._namespace, job, {"jobType": what}),
            producer=f"{PRODUCER}/{version()}",
            inputs=[
                event_v2.InputDataset(self._namespace, str(path), facets=_facets(path, hashes))
                for path in read
            ],
            outputs=[
                event_v2.OutputDataset(self._namespace, str(path), facets=_facets(path, hashes))
                for path in outputs
            ],
            eventType=event_v2.RunState[kind],
        )

    def _inputs(self, stage: Stage) -> list[Path]:
        """Return the datasets that a stage reads, under the names of the outputs that contain them;
        code is not a dataset.
        """
        datasets: list[Path] = []
        for dep in stage.deps:
            if dep.parts[0] == paths.DOCUMENTS.parts[0]:
                datasets.append(dep)
            else:
                datasets += sorted(
                    out
                    for out in self._outs
                    if out == dep or out in dep.parents or dep in out.parents
                )
        return list(dict.fromkeys(datasets))


def _transport(target: str) -> Transport:
    # Use the transports directly. ``OpenLineageClient`` would read settings from the user's home
    # and from the environment, and look up the git remote.
    if target.startswith(("http://", "https://")):
        from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport

        config = HttpConfig(url=target, timeout=PATIENCE, retry={"total": 0})
        if key := os.environ.get(API_KEY):
            config.auth = ApiKeyTokenProvider({"apiKey": key})
        return HttpTransport(config)
    from openlineage.client.transport.file import FileConfig, FileTransport

    return FileTransport(FileConfig(log_file_path=str(Path(target)), append=True))


def _hashes(entries: Mapping[str, LockEntry]) -> dict[str, str]:
    """Return DVC's hash of each path that is an input or output of a stage in dvc.lock. If a path
    has different hashes as an input and as an output, the hash of the output counts.
    """
    deps = [dep for entry in entries.values() for dep in entry.get("deps", ())]
    outs = [out for entry in entries.values() for out in entry.get("outs", ())]
    return {item["path"]: item["md5"] for item in deps + outs if "md5" in item}


def _facets(path: Path, hashes: Mapping[str, str]) -> dict[str, DatasetFacet]:
    from openlineage.client import facet_v2

    facets: dict[str, DatasetFacet] = {}
    if md5 := hashes.get(path.as_posix()):
        facets["version"] = facet_v2.dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=md5
        )
    if fields := _fields(path):
        facets["schema"] = facet_v2.schema_dataset.SchemaDatasetFacet(fields=fields)
    return facets


def _fields(path: Path) -> list[Any]:
    """Return the columns of a Parquet file; for a folder, return its Parquet files, each with its
    columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from openlineage.client.facet_v2 import schema_dataset

    field = schema_dataset.SchemaDatasetFacetFields
    try:
        if path.suffix == ".parquet":
            return [
                field(name=column.name, type=str(column.type)) for column in pq.read_schema(path)
            ]
        files = sorted(path.glob("*.parquet")) if path.is_dir() else []
        return [field(name=file.name, type="parquet", fields=_fields(file)) for file in files]
    except (OSError, pa.ArrowException):  # the schema is optional
        return []
