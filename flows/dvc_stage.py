"""`dvc repro --single-item STAGE` whose cost does not grow with the stages of the project.

    python -m flows.dvc_stage    for the stages that are asked for on standard input, see dvc_forks.py

DVC itself reads the whole of dvc.lock before a stage and writes the whole of it again afterwards. This reads and
replaces only the entry of its stage, under the same lock and with the same bytes, and by rename, so that no other
reader meets a half-written file. dvc.lock in another form than DVC's is left to DVC's own code. A file of parameters is
parsed once, and not for each of the stage's dependencies on one of them and each question about it.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import dvc.dvcfile
from dvc.stage.serialize import to_lockfile
from dvc.utils.serialize import dumps_yaml, loads_yaml

from flows.dvc_forks import serve
from lexveil.lineage.lock_text import HEAD, cut, joined
from lexveil.runtime.dvc_graph import parse_params_once

AHEAD = (
    *("dvc.cachemgr", "dvc.data_cloud", "dvc.parsing", "dvc.repo", "dvc.repo.artifacts", "dvc.repo.datasets"),
    *("dvc.repo.metrics", "dvc.repo.open_repo", "dvc.repo.params", "dvc.repo.plots", "dvc.repo.reproduce"),
    *("dvc.repo.stage", "dvc.rwlock", "dvc.scm", "dvc.stage.cache", "dvc.stage.loader", "dvc.stage.run"),
    *("dvc.utils.strictyaml", "dvc_data.hashfile.build", "dvc_data.hashfile.checkout", "dvc_data.hashfile.db.local"),
    *("dvc_data.hashfile.status", "dvc_data.hashfile.transfer", "psutil", "pyparsing", "ruamel.yaml", "sqlite3"),
)


def one_entry(stage_name: str) -> type[dvc.dvcfile.Lockfile]:
    """Return the class of a dvc.lock of which only the entry of one stage is read and written."""

    class OneEntry(dvc.dvcfile.Lockfile):  # type: ignore[misc]  # DVC has no types
        def _load(self, **kwargs: Any) -> tuple[Any, str]:
            entries = self._cut()
            if entries is None:
                return super()._load(**kwargs)  # type: ignore[no-any-return]
            text = HEAD + entries[stage_name] if stage_name in entries else ""
            return loads_yaml(text) if text else {}, text

        def dump_stages(self, stages: Any, **kwargs: Any) -> None:
            entries = self._cut()
            if entries is None or [stage.name for stage in stages] != [stage_name]:
                super().dump_stages(stages, **kwargs)
                return
            before = entries.get(stage_name)
            text = dumps_yaml({"stages": to_lockfile(stages[0], **kwargs)})
            entries[stage_name] = text.removeprefix("stages:\n")
            if entries[stage_name] == before:
                return
            file = Path(self.path)
            partial = file.with_name(f".{file.name}.partial")
            partial.write_text(joined(entries), encoding="utf-8")
            os.replace(partial, file)
            self.repo.scm_context.track_file(self.relpath)

        def _cut(self) -> dict[str, str] | None:
            file = Path(self.path)
            return cut(file.read_text(encoding="utf-8")) if file.exists() else {}

    return OneEntry


def main(stage_name: str) -> int:
    """Bring one stage up to date, and return DVC's exit code."""
    from dvc.cli import main as dvc_main

    dvc.dvcfile.Lockfile = one_entry(stage_name)
    parse_params_once()
    # Without --wait-for-lock (before the subcommand) parallel stages fail, some after their command has run.
    return int(dvc_main(["--wait-for-lock", "repro", "--single-item", stage_name]))


def import_ahead() -> None:
    """Import what bringing a stage up to date takes, most of which DVC imports only where it is used."""
    from dvc.cli import parse_args

    parse_args(["repro"])
    for name in AHEAD:
        importlib.import_module(name)


if __name__ == "__main__":
    import_ahead()
    serve(main)
