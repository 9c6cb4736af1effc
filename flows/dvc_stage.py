"""`dvc repro --single-item STAGE` whose cost does not grow with the stages of the project.

    python -m flows.dvc_stage [STAGE...]    for the stages that are asked for on standard input, see dvc_forks.py

DVC itself reads the whole of dvc.lock before a stage and writes the whole of it again afterwards. This reads only the
entry of its stage, and appends the new one to the journal of dvc.lock (lexveil/runtime/lock_journal.py), under the same
lock and with the same bytes. dvc.lock in another form than DVC's is left to DVC's own code. What DVC does several times
for one stage is done once (lexveil/runtime/dvc_economy.py), and what stages share before the first of them: forks have
it. Another version of DVC than the one this was written for does everything itself.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dvc.dvcfile
import dvc.utils.serialize
from dvc.stage.serialize import to_lockfile
from dvc.utils.serialize import dump_yaml, dumps_yaml, loads_yaml

from flows.dvc_forks import serve
from lexveil.runtime import lock_journal
from lexveil.runtime.dvc_economy import economize
from lexveil.runtime.lock_text import HEAD
from lexveil.runtime.lock_yaml import entry_text

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
            entry = self._entry()
            if entry is None:
                return super()._load(**kwargs)  # type: ignore[no-any-return]
            text = HEAD + entry if entry else ""
            return loads_yaml(text) if text else {}, text

        def dump_stages(self, stages: Any, **kwargs: Any) -> None:
            if self._entry() is None or [stage.name for stage in stages] != [stage_name]:
                super().dump_stages(stages, **kwargs)
                return
            record = to_lockfile(stages[0], **kwargs)[stage_name]
            lock_journal.append(stage_name, f"  {stage_name}:\n{entry_text(record, dumps_yaml, '    ')}")
            self.repo.scm_context.track_file(self.relpath)

        def _entry(self) -> str | None:
            """The stage's entry, "" if it has none; None if the file is another one or not of DVC's form."""
            own = Path(self.path).absolute() == lock_journal.LOCKFILE.absolute()  # DVC gives either form
            return lock_journal.current(stage_name) if own else None

    return OneEntry


def main(stage_name: str) -> int:
    """Bring one stage up to date, and return DVC's exit code."""
    from dvc.cli import main as dvc_main

    if economize():
        dvc.dvcfile.Lockfile = one_entry(stage_name)
        dvc.utils.serialize.dump_yaml = dump_record
    # Without --wait-for-lock (before the subcommand) parallel stages fail, some after their command has run.
    return int(dvc_main(["--wait-for-lock", "repro", "--single-item", stage_name]))


def dump_record(path: str, data: Any, **options: Any) -> None:
    """Write a record of DVC's cache of runs, which is the only file that DVC writes so for a stage."""
    if options or not isinstance(data, dict) or "cmd" not in data:
        dump_yaml(path, data, **options)
        return
    Path(path).write_text(entry_text(data, dumps_yaml), encoding="utf-8")


def import_ahead() -> None:
    """Import what bringing a stage up to date takes, most of which DVC imports only where it is used."""
    from dvc.cli import parse_args

    parse_args(["repro"])
    for name in AHEAD:
        importlib.import_module(name)


def look_ahead(stage_names: Sequence[str]) -> None:
    """Read dvc.yaml and the parameters, and hash the files that these stages depend on, in the process that forks.

    A fork finds each file as it is, or looks at it again. Nothing may run yet. What is wrong here is said by the stage.
    """
    from dvc.repo import Repo

    if not stage_names or not economize():
        return
    with contextlib.suppress(Exception), Repo(_wait_for_lock=True) as repo:
        for name in stage_names:
            dvc.dvcfile.Lockfile = one_entry(name)
            for dependency in (dep for stage in repo.stage.from_target(name) for dep in stage.deps):
                if dependency.protocol == "local" and dependency.exists:
                    dependency.get_hash()


if __name__ == "__main__":
    import_ahead()
    look_ahead(sys.argv[1:])
    serve(main)
