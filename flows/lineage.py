"""From an artifact back to the data: which commands, parameters and inputs made it, as dvc.lock recorded them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.graph import Graph, open_repo, read_graph
from tasks.errors import RequestError

if TYPE_CHECKING:
    from dvc.output import Output
    from dvc.repo import Repo


def lineage(artifact: Path) -> dict[str, Any]:
    """Return where ``artifact`` (relative to the project, a file or a folder) comes from.

    Returns:
        artifact, md5 (of an output or of a file inside one; None where DVC's cache does not tell), stage;
        commit, committed (whether dvc.lock and dvc.yaml are as in that commit; None without git);
        chain: from the artifact's stage down to the data, each entry with stage, command (None for data), params,
        inputs (path, md5, made_by, as_made: it is what that stage last made), outputs (path, md5, unchanged: the file
        there is still the recorded one). md5 of a folder is that of DVC's list of its files, and ends in `.dir`.

    Raises:
        RequestError: if no stage makes the artifact, or it has not been made yet.
    """
    with open_repo() as repo:
        graph = read_graph(repo)
        nodes = {stage.addressing: stage for stage in repo.index.stages if stage.addressing in graph.stages}
        owner = _owner(graph, artifact)
        if not all(out.hash_info for out in nodes[owner].outs):
            raise RequestError(f"{artifact} is made by stage {owner}, which has not run yet; `lexveil run` runs it")
        made = {_path(repo, out): (name, _md5(out)) for name, node in nodes.items() for out in node.outs}
        return {
            "artifact": artifact.as_posix(),
            "md5": _artifact_md5(repo, nodes[owner].outs, artifact),
            "stage": owner,
            **_commit(repo),
            "chain": [_entry(repo, name, nodes[name], made) for name in _ancestors(graph, owner)],
        }


def _owner(graph: Graph, artifact: Path) -> str:
    inside = []
    for stage in graph.stages.values():
        for out in stage.outs:
            if artifact == out or out in artifact.parents:
                return stage.name
            if artifact in out.parents:
                inside.append(out)
    if inside:
        raise RequestError(f"{artifact} is a folder with outputs of several stages; name one, such as {inside[0]}")
    raise RequestError(f"{artifact} is not made by any stage of dvc.yaml; outputs are listed by `dvc stage list`")


def _ancestors(graph: Graph, name: str) -> list[str]:
    """Return ``name`` and all it needs, each after everything that needs it."""
    wanted = {name}
    for stage in reversed(graph.stages.values()):
        if stage.name in wanted:
            wanted.update(stage.needs)
    return [stage.name for stage in reversed(graph.stages.values()) if stage.name in wanted]


def _entry(repo: Repo, name: str, node: Any, made: dict[str, tuple[str, str | None]]) -> dict[str, Any]:
    from dvc.dependency import ParamsDependency

    params: dict[str, Any] = {}
    inputs = []
    for dep in node.deps:
        if isinstance(dep, ParamsDependency):
            params.update((dep.hash_info.value or {}) if dep.hash_info else {})
            continue
        path = _path(repo, dep)
        by, md5 = made.get(path, (None, None))
        if by is None:  # a folder of outputs, or a file inside one
            makers = {
                maker
                for out, (maker, _) in made.items()
                if f"{out}/".startswith(f"{path}/") or path.startswith(f"{out}/")
            }
            by = ", ".join(sorted(makers)) or None
        inputs.append({"path": path, "md5": _md5(dep), "made_by": by, "as_made": md5 == _md5(dep) if md5 else None})
    outputs = [
        {"path": _path(repo, out), "md5": _md5(out), "unchanged": not out.workspace_status()} for out in node.outs
    ]
    return {"stage": name, "command": node.cmd, "params": params, "inputs": inputs, "outputs": outputs}


def _path(repo: Repo, out: Output) -> str:
    return Path(repo.fs.relpath(out.fs_path)).as_posix()


def _md5(out: Output) -> str | None:
    return str(out.hash_info.value) if out.hash_info else None


def _artifact_md5(repo: Repo, outs: list[Output], artifact: Path) -> str | None:
    for out in outs:
        path = Path(_path(repo, out))
        if artifact == path:
            return _md5(out)
        if path in artifact.parents:
            listed = {"/".join(key): hash_info.value for key, _, hash_info in (out.get_obj() or ())}
            found = listed.get(artifact.relative_to(path).as_posix())
            if listed and found is None and not any(key.startswith(f"{artifact.relative_to(path)}/") for key in listed):
                raise RequestError(f"{artifact} is not among the files that made up {path} when its stage last ran")
            return found
    return None


def _commit(repo: Repo) -> dict[str, Any]:
    from dvc.scm import NoSCM
    from scmrepo.exceptions import SCMError

    if isinstance(repo.scm, NoSCM):
        return {"commit": None, "committed": None}
    try:
        staged, unstaged, untracked = repo.scm.status()
        changed = {path for paths in (*staged.values(), unstaged, untracked) for path in paths}
        return {
            "commit": repo.scm.get_rev(),
            "committed": changed.isdisjoint({"dvc.lock", "dvc.yaml", "params.yaml", "data.dvc"}),
        }
    except SCMError:  # no commit yet
        return {"commit": None, "committed": False}


def as_text(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that `lexveil lineage` prints."""
    yield f"{found['artifact']}  {found['md5'] or ''}".rstrip()
    if found["commit"]:
        changes = (
            "" if found["committed"] else ", with changes not committed (dvc.lock, dvc.yaml, params.yaml or data.dvc)"
        )
        yield f"commit {found['commit']}{changes}"
    for entry in found["chain"]:
        yield ""
        yield entry["stage"]
        if entry["command"]:
            yield f"  command  {entry['command']}"
        for name, value in entry["params"].items():
            yield f"  param    {name} = {value}"
        for item in entry["inputs"]:
            by = f"  from {item['made_by']}" if item["made_by"] else ""
            since = "  (made again since)" if item["as_made"] is False else ""
            yield f"  input    {item['path']}  {item['md5']}{by}{since}"
        for item in entry["outputs"]:
            yield f"  output   {item['path']}  {item['md5']}{'' if item['unchanged'] else '  (changed since)'}"
