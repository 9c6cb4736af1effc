"""Lineage of a file that `lexveil privatize` wrote: the artifacts with which it was made, found by
the hashes in its privacy record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lexveil.base.errors import RequestError
from lexveil.base.runtime.dvc_graph import LOCKFILE, open_repo
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.tables import read_object
from lexveil.io.artifacts.levels import CARD_IN_RECORDS, kept_cards
from lexveil.io.artifacts.model_store import OWN, files_named
from lexveil.lab.lineage.file_hashes import Files, within
from lexveil.lab.lineage.provenance import lock_entries
from lexveil.lab.lineage.results import Lineage, MadeWith, ReleaseRecord
from lexveil.lab.lineage.trace import chain, environments, history

if TYPE_CHECKING:
    from dvc.repo import Repo

RECORD = ".record.json"


def record_beside(file: Path) -> Path | None:
    """Return the path of the privacy record next to an output of `lexveil privatize`, or next to
    the output's token log, statement or operator's report; None if there is no record.
    """
    for ending in ("", RECORD, ".statement.txt", ".operator.json", ".tokens.parquet"):
        record = file.with_name(file.name.removesuffix(ending) + RECORD)
        if file.name.endswith(ending) and record.is_file():
            return record
    return None


def read_record(file: Path) -> ReleaseRecord:
    """Read a privacy record, the JSON file about a release.

    Raises:
        RequestError: if the file is not a privacy record.
    """
    record = read_object(file)
    if not {"mode", "made_with", "guarantee"} <= record.keys():
        raise RequestError(
            f"{file} is not a privacy record of `lexveil privatize`; put the record of the "
            "output next to the output"
        )
    return cast(ReleaseRecord, record)


@dataclass(slots=True)
class Search:
    """Search for files by their sha256 among the outputs that a dvc.lock names by md5.

    Attributes:
        files: hashes of files in the cache and the work tree.
        hashed: sha256 by md5 of each file that was read so far; None if the content of the file is
            not on this machine.
    """

    files: Files
    hashed: dict[str, str | None] = field(default_factory=dict)

    def find(
        self, record: Mapping[str, Any], outs: Mapping[str, str]
    ) -> dict[str, tuple[str, str]]:
        """Find the artifacts that a privacy record names among the outputs of a dvc.lock.

        Args:
            record: a privacy record.
            outs: path and md5 of every output.

        Returns:
            (path, md5) of each artifact that was found, by its name in the record.
        """
        matches = {}
        for name, wanted in record["made_with"].items():
            for path, md5 in self._files_called(name, outs):
                if self._sha256(path, md5) == wanted:
                    matches[name] = (path, md5)
                    break
        return matches

    def _files_called(self, name: str, outs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for out, md5 in outs.items():
            listing = within(out, self.files.recorded(out, md5) or {})
            yield from (
                (path, member)
                for path, member in listing.items()
                if f"/{path}".endswith(f"/{name}")
            )

    def _sha256(self, path: str, md5: str) -> str | None:
        if md5 not in self.hashed:
            content = self.files.content(path, md5)
            self.hashed[md5] = sha256(content) if content else None
        return self.hashed[md5]


def locks(repo: Repo, revision: str | None = None) -> Iterator[tuple[str | None, dict[str, str]]]:
    """Yield the path and md5 of all pipeline outputs that dvc.lock names, for the work tree and for
    every commit that changed dvc.lock.

    Args:
        revision: read this revision only; None reads the work tree and all commits.

    Yields:
        The commit (None for the work tree) and its outputs, newest first.
    """
    from dvc.scm import NoSCM
    from scmrepo.exceptions import SCMError

    if revision is None:
        yield None, _outs(LOCKFILE.read_text(encoding="utf-8") if LOCKFILE.exists() else "")
    if isinstance(repo.scm, NoSCM):
        return
    top = Path("/") / Path(repo.root_dir).relative_to(repo.scm.root_dir)
    file = (top / LOCKFILE).as_posix()
    try:
        commits = [repo.scm.resolve_rev(revision)] if revision else repo.scm.list_all_commits()
    except SCMError:  # no commit yet
        return
    seen: set[bytes] = set()
    for commit in commits:
        fs = repo.scm.get_fs(commit)
        content = fs.cat_file(file) if fs.exists(file) else b""
        if content and content not in seen:
            seen.add(content)
            yield commit, _outs(content.decode())


def _outs(text: str) -> dict[str, str]:
    return {
        out["path"]: out["md5"]
        for entry in lock_entries(text).values()
        for out in entry.get("outs", [])
    }


def released(
    file: Path, record_file: Path, revision: str | None = None, trust: bool = True
) -> Lineage:
    """Return the lineage of a file that `lexveil privatize` wrote: the artifacts with which it was
    made, and the stages that made them.

    Args:
        file: the file, inside or outside the project.
        record_file: the privacy record of the file, as ``record_beside`` returns it.
        revision: search this git revision only; None searches the work tree, then all commits,
            newest first.
        trust: whether to trust DVC's stored hashes, as in ``Files``.

    Raises:
        RequestError: if ``record_file`` is not a privacy record.
    """
    record = read_record(record_file)
    if is_of_packaged_model(record):
        return _of_packaged_model(file, record)
    with open_repo() as repo:
        search = Search(Files(repo, trust))
        best: tuple[str | None, dict[str, tuple[str, str]]] = (None, {})
        for commit, outs in locks(repo, revision):
            matches = search.find(record, outs)
            if len(matches) > len(best[1]):
                best = (commit, matches)
            if len(matches) == len(record["made_with"]):
                break
    with history(revision or best[0], trust) as known:
        located = {
            name: (path, md5, known.outputs[known.makers(path)[0]][0])
            for name, (path, md5) in best[1].items()
        }
        owners = sorted({stage for _, _, stage in located.values()})
        return {
            "artifact": str(file),
            "record": record,
            "made_with": _made_with(record, located),
            "at": revision or best[0],
            "commit": known.commit,
            "committed": known.committed,
            "chain": chain(known, owners),
            "environments": environments(known, owners),
        }


def is_of_packaged_model(record: ReleaseRecord) -> bool:
    """Return whether a released file was made with an installed model, and not with artifacts of a
    project.
    """
    return bool((record.get("model") or {}).get("name", OWN).partition("+")[0] != OWN)


def _of_packaged_model(file: Path, record: ReleaseRecord) -> Lineage:
    """Return the lineage of a file that was made with an installed model, which no stage of the
    project made.
    """
    known = {name: [file] for name, file in files_named(record["made_with"]).items()}
    known[CARD_IN_RECORDS] = kept_cards()
    matches: dict[str, tuple[str, str | None, str | None]] = {
        name: (str(file), None, None)
        for name, hashed in record["made_with"].items()
        for file in known.get(name, [])
        if sha256(file) == hashed
    }
    return {
        "artifact": str(file),
        "record": record,
        "made_with": _made_with(record, matches),
        "at": None,
        "commit": None,
        "committed": None,
        "chain": [],
        "environments": {},
    }


def _made_with(
    record: ReleaseRecord, matches: Mapping[str, tuple[str, str | None, str | None]]
) -> list[MadeWith]:
    """Return the artifacts that a privacy record names, with path, md5 and stage if an artifact
    matches a file of the project.
    """
    made_with: list[MadeWith] = []
    for name, hashed in record["made_with"].items():
        path, md5, stage = matches.get(name, (None, None, None))
        made_with.append({"name": name, "sha256": hashed, "path": path, "md5": md5, "stage": stage})
    return made_with
