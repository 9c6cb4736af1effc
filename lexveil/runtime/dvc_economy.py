"""DVC's own work done once where DVC does it again and again; what it decides and writes stays the same.

A stage that depends on a hundred files costs DVC seconds of processor: for each file a new object of the file system,
checked against the schema of a remote, and up to seven looks at its hash; for each of its own nested steps a file of
locks read, checked and written; for each record a dump by a YAML library in Python. Here

* a path of this machine gets the one object of its file system, and what several stages depend on is made once;
* a file whose inode, size and time are as before has the hash that DVC found then, and the same parameters. A folder is
  looked at anew, but for one pass over all stages, in which whatever several depend on is looked at once
  (:func:`one_look`);
* what this process has locked it does not lock again;
* an entry of dvc.lock that was read before is not parsed and checked again (:mod:`lexveil.runtime.lock_cache`).

All this stands on functions of DVC that are not its interface. Another version than ``KNOWN`` does all of its work.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import stat
from collections.abc import Callable, Collection, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any

from lexveil.runtime.lock_cache import parsed

KNOWN = "3.67.1"  # the version of DVC whose code was read for this module and for flows/dvc_stage.py

_looks: list[dict[Any, Any]] = []  # what was looked at, while one pass is under way


def known() -> bool:
    """Whether DVC is the version whose functions may be replaced."""
    import dvc

    return bool(dvc.__version__ == KNOWN)


def _is_local(fs: Any) -> bool:
    """Whether files are of this machine. Those of a revision in Git have the same protocol."""
    import dvc.fs

    return isinstance(fs, dvc.fs.LocalFileSystem)


def economize() -> bool:
    """Have DVC in this process work as described above, and return whether it does; again is no harm."""
    import dvc.dependency
    import dvc.dvcfile
    import dvc.fs
    import dvc.output
    import dvc.rwlock
    from dvc.dependency import param

    if not known():
        return False
    if hasattr(param.load_path, "__wrapped__"):
        return True
    output = dvc.output.Output
    param.load_path = parsed_once(param.load_path)
    param.read_param_file = _picked_once(param.read_param_file)
    dvc.output.get_cloud_fs = _one_file_system(dvc.output.get_cloud_fs)
    # Questions about texts, asked twice for each file of each stage.
    dvc.fs.LocalFileSystem.isin = staticmethod(cache(dvc.fs.LocalFileSystem.isin))
    dvc.fs.LocalFileSystem.parts = staticmethod(cache(dvc.fs.LocalFileSystem.parts))
    dvc.output.urlparse = cache(dvc.output.urlparse)
    dvc.dependency._get = _made_once(dvc.dependency._get, dvc.dependency.Dependency)
    output._build = _hashed_once(output._build)
    output.get_hash = _looked_at_once(output.get_hash)
    output.exists = property(_looked_at_once(output.exists.fget))
    dvc.dvcfile.ProjectFile._load_yaml = _loaded_once(dvc.dvcfile.ProjectFile._load_yaml)
    dvc.dvcfile.Lockfile._load_yaml = _read_once(dvc.dvcfile.Lockfile)
    dvc.rwlock.rwlock = _locked_once(dvc.rwlock.rwlock)
    return True


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Look for no garbage while the block runs: half a million objects of a graph are made, and all stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def one_look() -> Iterator[None]:
    """Look at each path once while the block runs, in which nothing may change: DVC's lock is held."""
    _looks.append({})
    try:
        yield
    finally:
        _looks.pop()


def parsed_once(load: Callable[..., Any]) -> Callable[..., Any]:
    """Parse a file of parameters anew only if it has changed, and not for every stage that depends on it."""
    kept: dict[tuple[str, int, int, int], Any] = {}

    @wraps(load)
    def load_once(path: str, fs: Any = None, **options: Any) -> Any:
        if options or not _is_local(fs):
            return load(path, fs, **options)
        key = _identity(path)
        if key not in kept:
            kept[key] = load(path, fs)
        return copy.deepcopy(kept[key])

    return load_once


def _identity(path: str) -> tuple[str, int, int, int]:
    """Return what is another one after a file has changed."""
    about = Path(path).stat()
    return path, about.st_ino, about.st_size, about.st_mtime_ns


def _picked_once(read: Callable[..., Any]) -> Callable[..., Any]:
    """Pick the same parameters out of a file only once."""
    kept: dict[Any, dict[str, Any]] = {}

    @wraps(read)
    def read_once(fs: Any, path: str, keys: list[str] | None = None, flatten: bool = False, **options: Any) -> Any:
        if options or not keys or not flatten or not _is_local(fs):
            return read(fs, path, keys, flatten=flatten, **options)
        key = (_identity(path), *keys)
        if key not in kept:
            kept[key] = read(fs, path, keys, flatten=True)
        return copy.deepcopy(kept[key])

    return read_once


def _loaded_once(load: Callable[..., Any]) -> Callable[..., Any]:
    """Read and check dvc.yaml anew only if it has changed."""
    kept: dict[Any, tuple[Any, str]] = {}

    @wraps(load)
    def load_once(self: Any, **options: Any) -> Any:
        if options or not _is_local(self.repo.fs):
            return load(self, **options)
        key = _identity(str(Path(self.path).absolute()))
        if key not in kept:
            kept[key] = load(self)
        data, text = kept[key]
        return copy.deepcopy(data), text

    return load_once


def _made_once(get: Callable[..., Any], plain: type[Any]) -> Callable[..., Any]:
    """Copy a dependency on a file that another stage of the same repository depends on too."""
    kept: dict[tuple[str, str], Any] = {}
    repos: list[Any] = [None]  # the one that was asked for last

    @wraps(get)
    def get_once(stage: Any, path: Any, info: Any, **options: Any) -> Any:
        if info or any(value is not None for value in options.values()) or not path or "://" in path:
            return get(stage, path, info, **options)
        if repos[0] is not stage.repo:
            kept.clear()
            repos[0] = stage.repo
        key = (stage.wdir, path)
        if key not in kept:
            made = get(stage, path, info, **options)
            if type(made) is plain:
                kept[key] = copy.copy(made)
                kept[key].stage = None
            return made
        model = kept[key]
        made = object.__new__(plain)  # several times as fast as copy.copy
        made.__dict__.update(model.__dict__)
        made.stage = stage
        made.annot, made.meta = type(model.annot)(labels=[], meta={}), type(model.meta)()
        return made

    return get_once


def _looked_at_once(look: Callable[..., Any]) -> Callable[..., Any]:
    """Ask the file system about a dependency once in a pass over all stages."""

    @wraps(look)
    def look_once(self: Any) -> Any:
        if not _looks or not self.IS_DEPENDENCY or not _is_local(self.fs):
            return look(self)
        key = (look.__name__, self.fs_path, self.hash_name)
        if key not in _looks[-1]:
            _looks[-1][key] = look(self)
        return _looks[-1][key]

    return look_once


def _one_file_system(get: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[int, tuple[Any, Any, Callable[..., Any]]] = {}

    @wraps(get)
    def get_once(config: Any, **options: Any) -> Any:
        url = options.get("url")
        if len(options) != 1 or not isinstance(url, str) or "://" in url:
            return get(config, **options)
        if id(config) not in kept or kept[id(config)][0] is not config:
            kind, settings, _ = get(config, **options)
            made = kind(**settings)
            kept[id(config)] = config, kind, lambda **_: made
        _, kind, one = kept[id(config)]
        return one, {}, kind._strip_protocol(url)

    return get_once


def _hashed_once(build: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[Any, Any] = {}

    @wraps(build)
    def build_once(self: Any, odb: Any, path: Any, fs: Any, name: str, **options: Any) -> Any:
        if not options.get("dry_run") or not _is_local(fs):
            return build(self, odb, path, fs, name, **options)
        about = Path(path).stat()  # as DVC, which raises the same error where there is none
        key: Any = (path, name, about.st_ino, about.st_size, about.st_mtime_ns)
        memory = kept if stat.S_ISREG(about.st_mode) else _looks[-1] if _looks else None
        if memory is None:
            return build(self, odb, path, fs, name, **options)
        if key not in memory:
            memory[key] = build(self, odb, path, fs, name, **options)
        staging, meta, found = memory[key]
        return staging, copy.copy(meta), found

    return build_once


def _read_once(lockfile: Any) -> Callable[..., Any]:
    """Return the method of DVC's class that reads and checks a dvc.lock, with entries that are known not read again."""
    from dvc import __version__
    from dvc.utils.serialize import loads_yaml

    load = lockfile._load_yaml

    def parse(text: str) -> dict[str, Any]:
        return dict(lockfile.SCHEMA(loads_yaml(text))["stages"])

    @wraps(load)
    def load_once(self: Any, **options: Any) -> Any:
        path = Path(self.path)
        if not options and _is_local(self.repo.fs) and path.name == "dvc.lock":
            with contextlib.suppress(Exception):  # whatever is wrong with it, DVC says it
                text = path.read_text(encoding="utf-8")
                if text and (entries := parsed(text, f"dvc-{__version__}", parse)) is not None:
                    return {"schema": "2.0", "stages": entries}, text
        return load(self, **options)

    return load_once


def _locked_once(lock: Callable[..., Any]) -> Callable[..., Any]:
    reading: dict[str, int] = {}
    writing: dict[str, int] = {}

    @contextlib.contextmanager
    def hold(held: dict[str, int], paths: Collection[str]) -> Iterator[None]:
        for path in paths:
            held[path] = held.get(path, 0) + 1
        try:
            yield
        finally:
            for path in paths:
                held[path] -= 1
                if not held[path]:
                    del held[path]

    @wraps(lock)
    @contextlib.contextmanager
    def lock_once(folder: str, fs: Any, cmd: str, read: list[str], write: list[str], hardlink: bool) -> Iterator[None]:
        if all(path in writing for path in write) and all(path in reading or path in writing for path in read):
            yield
            return
        with lock(folder, fs, cmd, read, write, hardlink), hold(reading, read), hold(writing, write):
            yield

    return lock_once
