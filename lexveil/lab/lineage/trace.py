"""Lineage of an artifact back to the data: the commands, parameters and inputs that made it, as
recorded in dvc.lock.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lexveil.base import paths
from lexveil.base.errors import RequestError, option
from lexveil.base.runtime.dvc_graph import LOCKFILE, StageGraph, name_of, open_repo, read_graph
from lexveil.io.artifacts.levels import SKIPPED
from lexveil.lab.lineage.file_hashes import Files, Listing, below, digest, within
from lexveil.lab.lineage.provenance import PROVENANCE, RECORDS, lock_entries, matching
from lexveil.lab.lineage.results import (
    ChainEntry,
    Environment,
    Lineage,
    LockedPath,
    RunRecord,
    StageInput,
    StageOutput,
)

if TYPE_CHECKING:
    from dvc.output import Output
    from dvc.repo import Repo
    from dvc.stage import Stage


@dataclass(frozen=True, slots=True)
class History:
    """The records in dvc.lock and data.dvc at one git revision, and the present files.

    Attributes:
        graph: stages of that revision.
        nodes: DVC's stages, by name.
        outputs: every output of a stage or of data.dvc: path -> (stage, md5); the md5 is None if
            the stage had not run.
        files: hashes of files in the cache and the work tree.
        origins: the run that made the latest results of a stage, if it is known; see
            lexveil.lab.lineage.provenance.
        environments: environments of these runs.
        commit: commit of that revision; for the work tree, the commit on which it is based; None
            without git.
        committed: whether the records equal that commit; None without git.
    """

    graph: StageGraph
    nodes: dict[str, Stage]
    outputs: dict[str, tuple[str, str | None]]
    files: Files
    origins: dict[str, RunRecord]
    environments: dict[str, Environment]
    commit: str | None
    committed: bool | None

    def listing(self, out: str) -> Listing | None:
        """List the files that an output had when its stage wrote it, by their paths in the project;
        the result is None if DVC's cache does not have the list.
        """
        listing = self.files.recorded(out, self.outputs[out][1])
        return None if listing is None else within(out, listing)

    def makers(self, path: str) -> list[str]:
        """Return the pipeline outputs that equal ``path``, contain it, or lie in it."""
        return [
            out
            for out in self.outputs
            if f"{out}/".startswith(f"{path}/") or path.startswith(f"{out}/")
        ]

    def hash_of(self, path: str) -> str | None:
        """Return the recorded hash of an output, of a file or folder inside an output, or of a
        folder with several outputs.

        The hash is None if no stage makes the path, or DVC's cache does not have the list of its
        folder.
        """
        if path in self.outputs:
            return self.outputs[path][1]
        files: Listing = {}
        for out in self.makers(path):
            listing = self.listing(out)
            if listing is None:
                return None
            if path in listing:
                return listing[path]
            files |= below(listing, path)
        return digest(files) if files else None


@contextlib.contextmanager
def history(revision: str | None = None, trust: bool = True) -> Iterator[History]:
    """Context manager that yields the recorded history of the project at present or at a git
    revision, without changing the work tree.

    Args:
        revision: a commit, tag or branch; None reads the work tree.
        trust: whether to trust DVC's stored hashes, as in ``Files``.

    Raises:
        RequestError: if there is no such revision, or DVC cannot read the project of that revision.
    """
    from dvc.repo.brancher import switch
    from dvc.scm import NoSCM, RevError, resolve_rev
    from scmrepo.exceptions import SCMError

    with open_repo() as repo:
        files = Files(repo, trust)
        if revision is None:
            yield _read(repo, files, *_commit(repo))
            return
        if isinstance(repo.scm, NoSCM):
            raise RequestError(f"{option('at')} {revision}: this project is in no git repository")
        try:
            resolved = resolve_rev(repo.scm, revision)
        except (RevError, SCMError):  # also raised if there is no commit yet
            raise RequestError(
                f"{option('at')} {revision}: there is no such commit, tag or branch"
            ) from None
        with switch(repo, resolved) as commit:
            yield _read(repo, files, commit, committed=True)


def _read(repo: Repo, files: Files, commit: str | None, committed: bool | None) -> History:
    graph = read_graph(repo)
    nodes = {name_of(repo, stage): stage for stage in repo.index.stages}
    outs = [(out, name) for name, node in nodes.items() for out in node.outs]
    outputs = {
        Path(repo.fs.relpath(out.fs_path)).as_posix(): (name, _md5(out)) for out, name in outs
    }
    provenance = json.loads(_text(repo, PROVENANCE) or "{}")
    origins = matching(provenance, lock_entries(_text(repo, LOCKFILE)))
    return History(
        graph, nodes, outputs, files, origins, provenance.get("environments", {}), commit, committed
    )


def _text(repo: Repo, file: Path) -> str:
    path = repo.fs.join(repo.root_dir, file.name)
    return str(repo.fs.read_text(path, encoding="utf-8")) if repo.fs.exists(path) else ""


def lineage(artifact: Path, revision: str | None = None) -> Lineage:
    """Return the lineage of ``artifact``: the chain of stages that made it, with commands, inputs
    and provenance.

    Args:
        artifact: path relative to the project of an output, or of a file or folder inside one.
        revision: a git revision; None reads the work tree.

    Raises:
        RequestError: if no stage makes the artifact, its stage has not run yet, its run was
            skipped, or there is no such revision.
    """
    with history(revision) as known:
        owner = owner_of(known, artifact)
        if owner not in made_stages(known, ancestors(known.graph, [owner])):
            raise RequestError(
                f"{artifact} belongs to a run that was skipped, because its level of recovery "
                "is out of reach; the file itself states the reason, and has no lineage"
            )
        return {
            "artifact": artifact.as_posix(),
            "md5": _artifact_md5(known, artifact),
            "stage": owner,
            "at": revision,
            "commit": known.commit,
            "committed": known.committed,
            "chain": chain(known, [owner]),
            "environments": environments(known, [owner]),
        }


def chain(known: History, owners: Sequence[str]) -> list[ChainEntry]:
    """Return one entry for each stage that ``owners`` need, including the owners, without the
    stages of runs that were skipped.
    """
    names = made_stages(known, ancestors(known.graph, owners))
    read = {dep.as_posix() for name in names for dep in known.graph.stages[name].deps}
    return [_entry(known, name, read) for name in names]


def environments(known: History, owners: Sequence[str]) -> dict[str, Environment | None]:
    """Return the environments (Python and libraries) of the runs that made the chain of
    ``owners``.
    """
    names = ancestors(known.graph, owners)
    used = sorted({known.origins[name]["environment"] for name in names if name in known.origins})
    return {name: known.environments.get(name) for name in used}


def owner_of(known: History, artifact: Path) -> str:
    """Return the name of the stage that made ``artifact``, which is an output, or a file or folder
    inside one.

    Raises:
        RequestError: if there is no such stage, or it has not run.
    """
    makers = {out: stage for stage in known.graph.stages.values() for out in stage.outs}
    stage = next((makers[path] for path in (artifact, *artifact.parents) if path in makers), None)
    if stage is not None:
        if any(known.outputs[output.as_posix()][1] is None for output in stage.outs):
            raise RequestError(
                f"{artifact} is made by stage {stage.name}, which has not run yet; "
                "`lexveil run` runs it"
            )
        return stage.name
    inside = next((out for out in makers if artifact in out.parents), None)
    if inside is not None:
        raise RequestError(
            f"{artifact} is a folder with outputs of several stages; name one, such as {inside}"
        )
    raise RequestError(
        f"{artifact} is not made by any stage of dvc.yaml; `dvc stage list` lists the outputs"
    )


def ancestors(graph: StageGraph, names: Sequence[str]) -> list[str]:
    """Return ``names`` and all stages that they depend on, each stage after the stages that depend
    on it.
    """
    wanted = set(names)
    for stage in reversed(graph.stages.values()):
        if stage.name in wanted:
            wanted.update(stage.needs)
    return [stage.name for stage in reversed(graph.stages.values()) if stage.name in wanted]


def made_stages(known: History, names: Sequence[str]) -> list[str]:
    """Return the named stages without those that belong to skipped runs of the grid, which are the
    stages that rewrite the run's texts and the stages that measure these texts.
    """
    skipped = {
        name.partition("@")[2]
        for name in names
        for out in known.graph.stages[name].outs
        if f"{out.as_posix()}/{SKIPPED}" in (known.listing(out.as_posix()) or ())
    }
    return [name for name in names if name.partition("@")[2] not in skipped]


def inputs_of(known: History, name: str) -> Iterator[tuple[str, str | None]]:
    """Yield path and md5 of each input that a stage had when it last ran."""
    from dvc.dependency import ParamsDependency

    deps = [dep for dep in known.nodes[name].deps if dep.protocol == "local"]
    for path, dep in zip(known.graph.stages[name].deps, deps, strict=True):
        if not isinstance(dep, ParamsDependency):
            yield path.as_posix(), _md5(dep)


def params_of(known: History, name: str) -> dict[str, object]:
    """Return the parameters with which a stage last ran."""
    from dvc.dependency import ParamsDependency

    params: dict[str, object] = {}
    for dep in known.nodes[name].deps:
        if isinstance(dep, ParamsDependency) and dep.hash_info:
            params.update(dep.hash_info.value or {})
    return params


def _entry(known: History, name: str, read: set[str]) -> ChainEntry:
    stage = known.graph.stages[name]
    node = known.nodes[name]
    inputs: list[StageInput] = []
    for path, md5 in inputs_of(known, name):
        makers = known.makers(path)
        by = ", ".join(sorted({known.outputs[out][0] for out in makers})) or None
        expected = known.hash_of(path) if makers else None
        inputs.append(
            {
                "path": path,
                "md5": md5,
                "made_by": by,
                "as_made": expected == md5 if expected else None,
            }
        )
    outs = [out.as_posix() for out in stage.outs]
    outputs: list[StageOutput] = [
        {
            "path": out,
            "md5": known.outputs[out][1],
            "unchanged": known.files.md5(out) == known.outputs[out][1],
        }
        for out in outs
    ]
    return {
        "stage": name,
        "command": node.cmd,
        "params": params_of(known, name),
        "inputs": inputs,
        "outputs": outputs,
        "sources": None if stage.locked else _sources(known, outs, read),
        "privacy": privacy_record(known, outs),
        "made": known.origins.get(name),
    }


def _sources(known: History, outs: list[str], read: set[str]) -> list[LockedPath] | None:
    """List the data files that a chain of stages read; None if DVC's cache does not have the
    list.
    """
    sources: list[LockedPath] = []
    for out in outs:
        listing = known.listing(out)
        if listing is None:
            return None
        sources += [
            {"path": path, "md5": md5} for path, md5 in listing.items() if lies_in(path, read)
        ]
    return sources


def lies_in(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path equals one of the given files or folders, or lies in one."""
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def privacy_record(known: History, outs: list[str]) -> dict[str, object] | None:
    """Return the privacy record among the outputs of a run, as its stage wrote it; None if the
    outputs have no privacy record. lexveil.core.accounting.record defines the record.
    """
    for out in outs:
        if (paths.ARTIFACTS / "private") in Path(out).parents:
            md5 = known.hash_of(f"{out}/record.json")
            file = known.files.content(f"{out}/record.json", md5) if md5 else None
            if file:
                record: dict[str, object] = json.loads(file.read_bytes())
                return record
    return None


def _md5(out: Output) -> str | None:
    return str(out.hash_info.value) if out.hash_info else None


def _artifact_md5(known: History, artifact: Path) -> str | None:
    path = artifact.as_posix()
    md5 = known.hash_of(path)
    (out,) = known.makers(path)
    if md5 is None and known.listing(out) is not None:
        raise RequestError(f"{artifact} was not in {out} when its stage last ran")
    return md5


def code_state() -> tuple[str | None, bool | None]:
    """Return the commit on which the present code is based, and whether the files equal that
    commit. Return (None, None) without git.
    """
    with open_repo() as repo:
        commit, changed = _changes(repo)
        return commit, changed is not None and changed <= set(RECORDS) if commit else None


def _commit(repo: Repo) -> tuple[str | None, bool | None]:
    commit, changed = _changes(repo, untracked=True)
    return commit, changed.isdisjoint(RECORDS) if changed is not None else None


def _changes(repo: Repo, untracked: bool = False) -> tuple[str | None, set[str] | None]:
    """Return the current git commit (None if there is none yet), and the files that differ from it
    (None without git).
    """
    from dvc.scm import NoSCM
    from scmrepo.exceptions import SCMError

    if isinstance(repo.scm, NoSCM):
        return None, None
    try:
        staged, unstaged, new = repo.scm.status()
        return repo.scm.get_rev(), {
            *(path for some in staged.values() for path in some),
            *unstaged,
        } | set(new if untracked else ())
    except SCMError:  # no commit yet
        return None, set(RECORDS)
