"""Makes sure that data/ exists before a run: as it is, from DVC, or the embedded default."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from lexveil.errors import RequestError
from lexveil.lineage.file_hashes import Files
from lexveil.runtime.dvc_graph import open_repo
from lexveil.runtime.project import STATE
from lexveil.runtime.run_events import RunObserver

if TYPE_CHECKING:
    from dvc.output import Output

DATA, POINTER = Path("data"), Path("data.dvc")
TRIAL = STATE / "default"


class DataUnreachable(RequestError):
    """The DVC remote that holds the data did not give it; it may later."""


def ensure_data(watcher: RunObserver) -> None:
    """Make sure that data/ exists; existing data is never changed.

    Raises:
        RequestError: if data.dvc names data that neither DVC's cache nor a remote nor the embedded default has;
            DataUnreachable if a remote is set up.
    """
    if DATA.is_dir() and any(DATA.iterdir()):
        return
    from lexveil.data.data_store import materialize_default, use_default

    if not POINTER.exists():
        watcher.say("no data yet: making the embedded default")
        use_default(Path())
        return
    with open_repo() as repo:
        from dvc.exceptions import CheckoutError, DvcException

        (out,) = repo.stage.collect(str(POINTER))[0].outs
        try:
            damaged = Files(repo).drop_damaged(str(out.hash_info.value))
            if damaged:
                watcher.say(f"DVC's cache has {damaged} damaged object{'s' * (damaged != 1)} of data/; removed from it")
            if out.get_obj() is not None and not out.changed_cache():
                watcher.say("data/ is absent: taken from DVC's cache")
                repo.checkout([str(POINTER)])
                return
        except CheckoutError:
            pass
        # Made elsewhere and compared first: a run would take data/ as it is and rewrite data.dvc.
        try:
            materialize_default(TRIAL)
            if _hash(out, TRIAL / DATA) == out.hash_info.value:
                watcher.say("data/ is absent: making the embedded default, which data.dvc names")
                if DATA.is_dir():
                    DATA.rmdir()
                os.replace(TRIAL / DATA, DATA)
                return
        finally:
            shutil.rmtree(TRIAL, ignore_errors=True)
        reason, kind = "no DVC remote is set up", RequestError
        if repo.config["core"].get("remote"):
            try:
                watcher.say("data/ is absent: fetching it from the DVC remote")
                repo.pull([str(POINTER)])
                return
            except DvcException as error:
                reason, kind = f"`dvc pull` failed: {' '.join(str(error).split())[:200]}", DataUnreachable
    raise kind(
        f"data/ is absent, data.dvc does not name the embedded default, and {reason}; bring the data back by "
        "`dvc pull`, or choose other data by `lexveil data use` or `lexveil data default`"
    )


def _hash(out: Output, folder: Path) -> str | None:
    """Return the hash that DVC would give ``folder`` if it stood where ``out`` stands."""
    from dvc_data.hashfile.build import build

    _, _, tree = build(out.cache, str(folder.resolve()), out.fs, out.hash_name, dry_run=True)
    return tree.hash_info.value if tree.hash_info else None
