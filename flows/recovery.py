"""Clean-up before a run: remains of killed runs and of removed stages, and a half-written lock
file.

DVC hashes directory dependencies as a whole, so a file that no stage owns would change the input of
a stage and the hash in dvc.lock. After a run, dvc.lock has the order of a fresh serial `dvc repro`,
whatever the order in which stages ended.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lexveil import paths
from lexveil.errors import RequestError
from lexveil.lineage.file_hashes import Files, file_md5
from lexveil.lineage.provenance import entries_with, own_entries
from lexveil.runtime.dvc_graph import CODE_STAGE, LOCKFILE, Stage, StageGraph, open_repo
from lexveil.runtime.project import SCRATCH, STATE

if TYPE_CHECKING:
    from dvc.repo import Repo

SET_ASIDE = STATE / "set-aside"
UNVERSIONED = (paths.DATA_DOCS,)  # files that stages make, but that are outputs of no stage

Say = Callable[[str], None]


def repair(repo: Repo, say: Say) -> None:
    """Repair the damage that SIGKILL can do to DVC's own files: entries of dead processes, a
    truncated dvc.lock.

    Raises:
        RequestError: if another DVC command is running in this project.
    """
    from dvc.dvcfile import Lockfile
    from dvc.exceptions import DvcException
    from dvc.repo import lock_repo

    shutil.rmtree(SCRATCH, ignore_errors=True)
    with lock_repo(repo):
        rwlock = Path(repo.tmp_dir or ".dvc/tmp") / "rwlock"
        for pid, command in _dvc_at_work(rwlock):
            raise RequestError(
                f"another DVC command is at work in this project (process {pid}: {command}); "
                "wait until it ends"
            )
        rwlock.unlink(missing_ok=True)
        _mend_cache(repo, say)
        try:
            Lockfile(repo, str(Path(repo.root_dir) / LOCKFILE)).load()
        except DvcException:
            # Every run is also in DVC's run cache, so that stages without the file are restored
            # and not run again.
            kept = STATE / "dvc.lock.damaged"
            os.replace(LOCKFILE, kept)
            say(
                f"dvc.lock was truncated or is not valid; moved to {kept}, its entries are "
                "made again"
            )


def _mend_cache(repo: Repo, say: Say) -> None:
    """Delete unfinished copies, empty folders of runs and damaged folder lists from DVC's cache.

    DVC trusts a folder list and takes the folder that it describes as the result. Damaged files are
    found when they are restored, because there are more of them and they are larger.
    """
    cache = Path(repo.cache.local.path)
    dvc_folder = Path(repo.dvc_dir or ".dvc")
    for listing in cache.rglob("*.dir"):
        if file_md5(listing) != listing.parent.name + listing.stem:
            listing.unlink()
            say(f"removed {listing.name} from DVC's cache: it was damaged")
    if cache.is_relative_to(dvc_folder):  # another project may be using a shared cache
        runs = Path(repo.stage_cache.cache_dir)
        for top in (cache, runs):
            # unfinished copies of a killed DVC or a full disk
            for left in top.rglob(".*.tmp"):
                left.unlink(missing_ok=True)
        for folder in runs.glob("*/*"):
            # DVC fails if a folder of runs is empty
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _dvc_at_work(rwlock: Path) -> Iterator[tuple[int, str]]:
    """Yield the living DVC processes that hold paths of this project."""
    import psutil

    try:
        held = json.loads(rwlock.read_text(encoding="utf-8"))
        infos = [
            *held.get("write", {}).values(),
            *(info for infos in held.get("read", {}).values() for info in infos),
        ]
        entries = [(int(info["pid"]), str(info["cmd"])) for info in infos]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # absent, or truncated by SIGKILL
    for pid, command in entries:
        try:
            # Process ids are reused: count only processes that are DVC.
            if any("dvc" in part for part in psutil.Process(pid).cmdline()):
                yield pid, command
        except psutil.Error:
            continue


def forget_damaged(stage: Stage) -> int:
    """Delete damaged objects that DVC has just restored as outputs of a stage, and those outputs.

    Returns:
        Number of damaged objects. DVC makes the outputs again, because neither they nor their
            objects exist.
    """
    entry = entries_with([stage.name]).get(stage.name)
    with open_repo() as repo:
        files = Files(repo)
        damaged = sum(
            files.drop_damaged(out["md5"]) for out in (entry.get("outs", ()) if entry else ())
        )
    for out in stage.outs if damaged else ():
        remove(out)
    return damaged


def remove(path: Path) -> None:
    """Delete a file, a link or a folder; a missing one is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def prune(graph: StageGraph, say: Say) -> None:
    """Remove and report files that no stage of the graph owns.

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
    """Yield the paths in ``folder`` that no stage owns; a folder that contains outputs is searched
    instead of yielded.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path in owned or path in UNVERSIONED:
            continue
        if path not in recorded and any(path in out.parents for out in owned | recorded):
            yield from _orphans(path, owned, recorded)
        else:
            yield path


def settle_lock(repo: Repo, graph: StageGraph) -> list[str]:
    """Bring dvc.lock into the order of a serial build, with DVC's own writer; return the dropped
    entries.
    """
    from dvc.repo import lock_repo
    from dvc.utils.serialize import modify_yaml

    with lock_repo(repo):
        present = list(own_entries())
        stages = [CODE_STAGE, *(name for name, stage in graph.stages.items() if stage.locked)]
        wanted = [name for name in stages if name in present]
        if present != wanted:
            partial = LOCKFILE.with_name(f".{LOCKFILE.name}.partial.yaml")
            shutil.copyfile(LOCKFILE, partial)
            with modify_yaml(str(partial)) as data:
                data["stages"] = {name: data["stages"][name] for name in wanted}
            os.replace(partial, LOCKFILE)
    return [name for name in present if name not in wanted]
