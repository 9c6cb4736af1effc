"""Clean-up before a pipeline run: half-written files of a killed DVC process, partial files of
killed stages, and outputs of removed stages.

DVC hashes a folder as a whole, so a file that no stage owns would change the input of a stage and
the hash in dvc.lock.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lexveil.base import paths
from lexveil.base.runtime.dvc_graph import CODE_STAGE, LOCKFILE, StageGraph
from lexveil.base.runtime.project import SCRATCH, STATE
from lexveil.base.runtime.tables import read_object
from lexveil.lab.lineage.provenance import own_entries

if TYPE_CHECKING:
    from dvc.repo import Repo

HOLDER = re.compile(r'"pid": (\d+)')  # age in seconds of a lock in DVC's rwlock
LINGER = 10.0  # seconds to wait for the processes of a killed run
SET_ASIDE = STATE / "set-aside"
UNVERSIONED = (paths.DATA_DOCS,)  # files that stages write, but that are outputs of no stage

Say = Callable[[str], None]


def repair(repo: Repo, say: Say) -> None:
    """Remove half-written files of a killed DVC process that make DVC itself fail: dvc.lock, DVC's
    file of locks, and entries of DVC's run cache.

    DVC needs no other help after a kill: it frees the locks of dead processes itself. This function
    waits for the end of processes that are about to end.
    """
    from dvc.dvcfile import Lockfile
    from dvc.exceptions import DvcException
    from dvc.repo import lock_repo

    shutil.rmtree(SCRATCH, ignore_errors=True)
    with lock_repo(repo):
        rwlock = Path(repo.tmp_dir or ".dvc/tmp") / "rwlock"
        _await_holders(rwlock)
        if not read_object(rwlock):
            rwlock.unlink(missing_ok=True)
        runs = Path(repo.stage_cache.cache_dir)
        if runs.is_relative_to(repo.dvc_dir or ".dvc"):  # another project may use a shared cache
            _mend_run_cache(runs)
        try:
            Lockfile(repo, str(Path(repo.root_dir) / LOCKFILE)).load()
        except DvcException:
            # Every run is also in DVC's run cache, so stages are restored without the file, and not
            # run again.
            kept = STATE / "dvc.lock.damaged"
            os.replace(LOCKFILE, kept)
            say(
                f"dvc.lock was truncated or is not valid; it was moved to {kept}, and its "
                "entries are written again"
            )


def _await_holders(rwlock: Path) -> None:
    """Wait until the stages of a killed run have ended, which their guard processes ensure within a
    second. DVC refuses to work on files of a process that still runs.
    """
    import psutil

    with contextlib.suppress(OSError, psutil.NoSuchProcess):
        pids = {int(pid) for pid in HOLDER.findall(rwlock.read_text(encoding="utf-8"))}
        holders = [psutil.Process(pid) for pid in pids - {os.getpid()} if psutil.pid_exists(pid)]
        psutil.wait_procs(holders, timeout=LINGER)


def _mend_run_cache(runs: Path) -> None:
    """Remove half-written entries from DVC's run cache, which DVC would take for complete entries,
    and folders without entries.
    """
    for folder in runs.glob("*/*"):
        for left in folder.glob(".*.tmp"):
            left.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()


def remove(path: Path) -> None:
    """Delete a file, a link or a folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def prune(graph: StageGraph, say: Say) -> None:
    """Remove files that no stage of the pipeline owns, and report them.

    Two kinds of files are deleted: outputs in dvc.lock whose stage or output no longer exists
    (DVC's cache keeps them), and partial files of killed stages. A file of unknown origin is moved
    to .lexveil/set-aside, but only if a stage would read it as part of a folder. Nothing outside
    artifacts/ is touched.
    """
    owned = {out for stage in graph.stages.values() for out in stage.outs}
    read = {dep for stage in graph.stages.values() for dep in stage.deps if dep.is_dir()}
    recorded = {
        Path(out["path"]) for entry in own_entries().values() for out in entry.get("outs", [])
    } - owned
    for path in list(_orphans(paths.ARTIFACTS, owned, recorded)):
        # .partial files of stages, .tmp files of DVC
        is_partial = path.name.startswith(".") and path.name.endswith((".partial", ".tmp"))
        if path in recorded or is_partial:
            say(f"pruned {path}: no stage of dvc.yaml makes it")
            remove(path)
        elif not read.isdisjoint(path.parents):
            kept = SET_ASIDE / time.strftime("%Y%m%d-%H%M%S") / path
            say(f"set aside {path} to {kept}: no stage makes it, and stages read its folder")
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, kept)
        else:
            continue
        for parent in path.parents:
            if parent == paths.ARTIFACTS or any(parent.iterdir()):
                break
            parent.rmdir()


def _orphans(folder: Path, owned: set[Path], recorded: set[Path]) -> Iterator[Path]:
    """Yield the paths in ``folder`` that no stage owns. A folder that contains outputs is searched,
    and not yielded itself.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path in owned or path in UNVERSIONED:
            continue
        if path not in recorded and any(path in out.parents for out in owned | recorded):
            yield from _orphans(path, owned, recorded)
        else:
            yield path


def forget_removed(repo: Repo, graph: StageGraph) -> list[str]:
    """Remove the entries of removed stages from dvc.lock, and return their names."""
    from dvc.repo import lock_repo
    from dvc.utils.serialize import modify_yaml

    with lock_repo(repo):
        removed = [
            name for name in own_entries() if name != CODE_STAGE and name not in graph.stages
        ]
        if removed:
            with modify_yaml(LOCKFILE.name) as data:
                for name in removed:
                    del data["stages"][name]
    return removed
