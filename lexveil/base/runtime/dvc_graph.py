"""The pipeline graph as DVC reads it: stages in execution order, their dependencies, their outputs,
and the stale stages.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.parameters import nearest

if TYPE_CHECKING:
    from dvc.repo import Repo

DVC_YAML = Path("dvc.yaml")
LOCKFILE = Path("dvc.lock")
CODE_STAGE = (
    "code"  # the stage that writes code.json; all others depend on it, so a run executes it first
)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of dvc.yaml, or one data source (data.dvc). Its name is the name in DVC, for
    example ``privatize@madlib-S1-1.0``.
    """

    name: str
    needs: tuple[str, ...]  # stages whose outputs this stage reads
    deps: tuple[Path, ...]  # files and folders that this stage reads, relative to the project
    outs: tuple[Path, ...]
    locked: bool  # gets an entry in dvc.lock when it has run
    is_new: bool = False  # has no entry in dvc.lock yet


@dataclass(frozen=True, slots=True)
class StageGraph:
    """All stages that `dvc repro` would visit, in the order of their execution.

    Attributes:
        stages: the stages, by name.
        stale: for each stale stage, the changes that DVC reports.
        own: for each stale stage, the changes that are not outputs of another stale stage. A stage
            that has only changes of the other kind is absent. A stage may be absent from both
            mappings although `dvc repro` will execute it: DVC reports a stage only once its inputs
            have changed.
    """

    stages: dict[str, Stage]
    stale: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)

    def reached(self) -> dict[str, list[str]]:
        """Return the stages that `dvc repro` may execute, each with the stages that cause its
        execution: the stage itself if it has changes of its own, otherwise the changed stages that
        it depends on.
        """
        reached: dict[str, list[str]] = {}
        for name, stage in self.stages.items():
            roots = [root for need in stage.needs for root in reached.get(need, ())]
            if name in self.own:
                reached[name] = [name]
            elif roots:
                reached[name] = list(dict.fromkeys(roots))
        return reached

    def wanted(self, until: str | None) -> list[Stage]:
        """Return the stages that must be brought up to date: stage ``until`` and all stages that it
        depends on. If ``until`` is None, return all stages.

        Raises:
            RequestError: if dvc.yaml has no stage of this name.
        """
        if until is None:
            return list(self.stages.values())
        if until not in self.stages:
            raise RequestError(
                f"dvc.yaml has no stage {until} (nearest: {nearest(until, self.stages)})"
            )
        names = {until}
        waiting = [until]
        while waiting:
            needs = set(self.stages[waiting.pop()].needs) - names
            names |= needs
            waiting += needs
        return [stage for stage in self.stages.values() if stage.name in names]


@contextlib.contextmanager
def open_repo(root: Path = Path()) -> Iterator[Repo]:
    """Open the DVC project in a folder.

    Raises:
        RequestError: if the folder is not a DVC project, or dvc.yaml, dvc.lock or data.dvc cannot
            be read. The message is one line.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    logging.getLogger("dvc").setLevel(logging.ERROR)  # no progress bars, no hints
    try:
        with Repo(str(root), _wait_for_lock=True) as repo:
            yield repo
    except DvcException as error:
        line = " ".join(str(error).split())
        raise RequestError(f"DVC cannot read this project: {line[:300]}") from error


def track(root: Path, paths: Sequence[Path]) -> None:
    """Add files and folders to DVC: store them in its cache and describe them in .dvc files, as
    `dvc add` does.

    Raises:
        LexveilError: if DVC fails.
    """
    with open_repo(root) as repo:
        from dvc.exceptions import DvcException

        try:
            repo.add([str(path) for path in paths])
        except (DvcException, OSError) as error:
            line = " ".join(str(error).split())
            raise LexveilError(f"`dvc add` failed: {line[:300]}") from None


def changes_of(root: Path, pointer: Path) -> set[str]:
    """Return the differences that DVC finds between a .dvc file and the data that the file
    describes: "modified", "deleted" or "not in cache"; empty if there are none.
    """
    with open_repo(root) as repo:
        changes = [change for each in repo.status([str(pointer)]).values() for change in each]
    return {state for change in changes for state in change.get("changed outs", {}).values()}


def read_graph(repo: Repo) -> StageGraph:
    """Read the stages and edges of DVC's graph, except the stage that writes code.json. No file is
    hashed.
    """
    from dvc.repo.reproduce import collect_stages, get_active_graph, plan_repro

    # Use the planning functions of `dvc repro`, so that order and edges are the same.
    edges = get_active_graph(repo.index.graph)
    every = plan_repro(edges, collect_stages(repo, [DVC_YAML.name]))
    planned = [stage for stage in every if name_of(repo, stage) != CODE_STAGE]
    order = {name_of(repo, stage): i for i, stage in enumerate(planned)}
    stages = {}
    for stage in planned:
        needs = {name_of(repo, need) for need in edges.successors(stage)} & order.keys()
        stages[name_of(repo, stage)] = Stage(
            name=name_of(repo, stage),
            needs=tuple(sorted(needs, key=order.__getitem__)),
            deps=tuple(
                Path(repo.fs.relpath(dep.fs_path)) for dep in stage.deps if dep.protocol == "local"
            ),
            outs=tuple(
                Path(repo.fs.relpath(out.fs_path)) for out in stage.outs if out.protocol == "local"
            ),
            locked=stage.cmd is not None,
            is_new=stage.cmd is not None and not any(dep.hash_info for dep in stage.deps),
        )
    return StageGraph(stages)


def name_of(repo: Repo, stage: Any) -> str:
    """Return DVC's name of a stage. DVC's own ``addressing`` is wrong if ``repo`` was switched to
    another revision.
    """
    file = str(repo.fs.relpath(stage.path))
    name = getattr(stage, "name", None)
    return str(name) if name and file == DVC_YAML.name else f"{file}:{name}" if name else file


def with_status(repo: Repo, graph: StageGraph) -> StageGraph:
    """Return the graph with the up-to-date or stale status of each stage. DVC computes the status
    in one call, in which it hashes every file that changed since the last call.
    """
    changed = repo.status()
    stale: dict[str, str] = {}
    own: dict[str, str] = {}
    for name, stage in graph.stages.items():
        if name in changed and stage.is_new:
            stale[name] = own[name] = "has not run yet"
        elif name in changed:
            stale[name] = _why(changed[name])
            made = [out for need in stage.needs if need in stale for out in graph.stages[need].outs]
            own[name] = _why(_without(changed[name], made))
    return StageGraph(graph.stages, stale, {name: why for name, why in own.items() if why})


def _without(changes: list[Any], made: Sequence[Path]) -> list[Any]:
    """Remove the changes of the paths ``made``, which are outputs of some stages, from DVC's list
    of changes.
    """
    kept: list[Any] = []
    for change in changes:
        paths = change.get("changed deps") if isinstance(change, dict) else None
        if paths is None:
            kept.append(change)
            continue
        others = {path: state for path, state in paths.items() if not _overlaps(Path(path), made)}
        if others:
            kept.append({"changed deps": others})
    return kept


def _overlaps(path: Path, made: Sequence[Path]) -> bool:
    """Return whether a path equals one of the paths in ``made``, is inside one of them, or contains
    one of them.
    """
    return any(path.is_relative_to(one) or one.is_relative_to(path) for one in made)


def _why(changes: list[Any]) -> str:
    """Return the changed paths of DVC's list of changes, as one line."""
    changed = {
        kind: paths
        for change in changes
        if isinstance(change, dict)
        for kind, paths in change.items()
    }
    descriptions = [str(change) for change in changes if not isinstance(change, dict)]
    for kind, paths in changed.items():  # {"changed deps": {path: "modified" | {key: "modified"}}}
        names = [
            f"{path} ({', '.join(keys)})" if isinstance(keys, dict) else path
            for path, keys in paths.items()
        ]
        descriptions.append(f"{kind}: {', '.join(names[:4])}{', …' if len(names) > 4 else ''}")
    return "; ".join(descriptions)
