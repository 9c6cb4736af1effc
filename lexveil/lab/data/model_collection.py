"""Functions of the command `lexveil model`, which lists, imports, exports, removes and verifies
packaged models.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock, Timeout

from lexveil.base import paths
from lexveil.base.errors import MissingArtifactError, RequestError, option
from lexveil.base.parameters import MODEL_NAME
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.project import find_root
from lexveil.base.runtime.user_data import make_user_data
from lexveil.io.artifacts.model_store import DEFAULT, OWN, find, installed
from lexveil.io.artifacts.packaged_model import CARD, PackagedModel
from lexveil.io.execution.stage import Progress
from lexveil.io.formats.messages import shown
from lexveil.lab.data.imported_models import MAX_WORDS, Import, import_vectors
from lexveil.lab.data.model_verification import RESERVED, unpack, verify_folder, write_archive

INCOMING = (
    "incoming-model"  # folder beside the models, so that a model has no name before it is checked
)
VERSION = r"[0-9]+(\.[0-9]+){0,2}"


def model_of(name: str) -> PackagedModel:
    """Return the packaged model with this name. The name ``own`` denotes the model that the last
    `lexveil run` of the project around the current folder made.

    Raises:
        MissingArtifactError: if the project has not packaged a model.
        RequestError: if there is no such model or project.
    """
    if name != OWN:
        return find(name)
    folder = find_root(Path.cwd()) / paths.PACKAGED
    if not (folder / CARD).is_file():
        raise MissingArtifactError(
            f"{folder} does not exist yet; `lexveil run` makes it (stage package_model)"
        )
    return PackagedModel(folder)


def listed() -> dict[str, object]:
    """Return the facts about every installed model by NAME@HASH, for `lexveil model list`."""
    return {model.pinned: _facts(model) for model in installed().values()}


def _facts(model: PackagedModel) -> dict[str, object]:
    card = model.card
    size = sum((model.folder / name).stat().st_size for name in card.files)
    return {
        **{key: getattr(card, key) for key in ("version", "language", "license")},
        **{key: getattr(card, f"n_{key}") for key in ("tokens", "words", "bigrams", "trigrams")},
        "dimensions": card.dimensions,
        "megabytes": round(size / 1e6, 1),
        "built": card.built,
        "kept": "ships with Lexveil" if model.folder.parent == paths.MODELS else str(model.folder),
    }


def card_of(name: str) -> dict[str, object]:
    """Return the complete metadata card of a model with the model's hash, for `lexveil model
    show`.
    """
    model = model_of(name)
    return {**model.card.to_dict(), "sha256": model.hash, "folder": str(model.folder)}


def verify(what: str) -> dict[str, object]:
    """Check that a model, which is given by name, as a folder or as an archive, is complete and
    sound, for `lexveil model verify`.

    Raises:
        UnsoundModelError: if the model has a fault; the message names the first one.
        RequestError: if there is neither a model nor a file with this name.
    """
    path = folder = Path(what)
    with TemporaryDirectory(prefix="lexveil-") as temporary:
        if re.fullmatch(MODEL_NAME, what) and (
            what == OWN or what in installed() or not path.exists()
        ):
            folder = model_of(what).folder
        elif path.is_file():
            folder = Path(temporary)
            unpack(path, folder)
        elif not path.is_dir():
            raise RequestError(f"{shown(what)}: no model, folder or file has this name")
        card = verify_folder(folder, path)
        return {
            "model": PackagedModel(folder).pinned,
            "sound": True,
            "tokens": card.n_tokens,
            "license": card.license,
        }


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of `lexveil model add` for plain word vectors. A packaged model needs none of these
    options, because its metadata card states these facts.
    """

    name: str | None = None
    license: str | None = None
    language: str | None = None
    collocations: str | None = None
    version: str | None = None
    max_words: int | None = None
    bigrams: Path | None = None
    trigrams: Path | None = None
    words: Path | None = None
    mixed_license: str | None = None


def add(source: Path, options: ImportOptions, force: bool) -> dict[str, object]:
    """Install a packaged model, or make a packaged model from plain word vectors, for `lexveil
    model add`.

    A model cannot be found by its name before it is complete and checked. If the process is killed,
    the next call removes the unfinished model.

    Returns:
        model: NAME@HASH; replaced: whether a model of that name existed; and the facts that
            ``listed`` returns about a model.

    Raises:
        RequestError: if the source cannot be used, a required option is missing, or a model of that
            name exists.
    """
    is_packaged = source.is_dir() or _is_zip(source)
    if is_packaged and options != ImportOptions():
        explicit_options = [
            f"--{key.replace('_', '-')}"
            for key, value in asdict(options).items()
            if value is not None
        ]
        raise RequestError(
            f"{', '.join(explicit_options)}: for plain word vectors only; {shown(source)} "
            f"states these facts in {CARD}"
        )
    with _incoming() as folder:
        if source.is_dir():
            for name in (CARD, *verify_folder(source).files):
                (folder / name).parent.mkdir(exist_ok=True)
                shutil.copyfile(source / name, folder / name)
        elif is_packaged:
            unpack(source, folder)
        else:
            wanted = _wanted(options, force)
            import_vectors(source, wanted, folder, Progress("orders", 0, "tokens"))
        card = verify_folder(folder, source)
        target = _target(card.name, force)
        replaced = target.exists()
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(exist_ok=True)
        os.replace(folder, target)
    model = PackagedModel(target)
    return {"model": model.pinned, "replaced": replaced, **_facts(model)}


def _is_zip(source: Path) -> bool:
    try:
        with source.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError as error:
        raise RequestError(f"{shown(source)}: cannot be read ({error.strerror})") from None


def _wanted(options: ImportOptions, force: bool) -> Import:
    """Check all options of an import before the vectors are read, and return them as settings."""
    name, license, language = (
        (each or "").strip() for each in (options.name, options.license, options.language)
    )
    needed = {"--name": name, "--license": license, "--language": language}
    if missing := [key for key, value in needed.items() if not value]:
        raise RequestError(
            f"{', '.join(missing)}: required with plain word vectors, because their file does "
            "not state these facts"
        )
    if not re.fullmatch(MODEL_NAME, name) or name in RESERVED:
        raise RequestError(
            f"{option('name')} {shown(name)}: is not a valid name of a model, or is one of "
            f"{', '.join(RESERVED)}"
        )
    version = options.version or "1"
    source = options.collocations or DEFAULT
    if not re.fullmatch(VERSION, version):
        raise RequestError(f"{option('version')} {shown(version)}: is not a version, such as 1.0")
    _target(name, force)
    if (options.bigrams is None) != (options.trigrams is None):
        raise RequestError(
            f"{option('bigrams')} and {option('trigrams')}: the two tables of a release belong "
            "together; give both"
        )
    tables = None
    if options.bigrams is not None and options.trigrams is not None:
        tables = (options.bigrams, options.trigrams)
    if tables is not None and options.collocations is not None:
        raise RequestError(
            f"{option('collocations')} {source}: the tables score the file's own collocations; "
            f"leave out {option('collocations')}, or leave out {option('bigrams')} and "
            f"{option('trigrams')}"
        )
    collocations = None if source == "none" or tables is not None else model_of(source)
    return Import(
        name=name,
        license=license,
        language=language,
        collocations=collocations,
        mixed_license=_mixed_license(license, options.mixed_license, collocations),
        version=version,
        max_words=options.max_words or MAX_WORDS,
        tables=tables,
        listed=options.words,
    )


def _mixed_license(
    license: str, mixed_license: str | None, collocations: PackagedModel | None
) -> str | None:
    """Return the licence of a model whose vectors and collocations have different licences, which
    only the person who imports it can state. Return None if there is one licence.

    Raises:
        RequestError: if the licences differ and none was stated, or one was stated and they do not
            differ.
    """
    mixes = collocations is not None and collocations.card.license != license
    said = (mixed_license or "").strip()
    if mixes and not said:
        assert collocations is not None
        raise RequestError(
            f"{option('mixed_license')} is missing: the model would mix vectors under {license} "
            f"with collocations of {collocations.card.name} under {collocations.card.license}; "
            "state the licence under which the model may be used, or give "
            f"{option('collocations')} none"
        )
    if said and not mixes:
        raise RequestError(
            f"{option('mixed_license')}: the model mixes no licences; leave this option out"
        )
    return said or None


def _target(name: str, force: bool) -> Path:
    """Return the folder in which a user's model of this name is stored."""
    if (paths.MODELS / name).exists():
        raise RequestError(f"{name} ships with Lexveil; choose another {option('name')}")
    target = make_user_data() / "models" / name
    if target.exists() and not force:
        raise RequestError(f"{target} exists already; replace it with {option('force')}")
    return target


def export(name: str, out: Path | None, force: bool) -> dict[str, object]:
    """Check a model and write it as one archive file, for `lexveil model export`.

    Raises:
        RequestError: if there is no such model, the model is unsound, or the file exists.
    """
    model = model_of(name)
    card = verify_folder(model.folder)
    out = out or Path(f"{card.name}-{card.version}.lexveil.zip")
    if out.exists() and not force:
        raise RequestError(f"{shown(out)} exists already; replace it with {option('force')}")
    write_archive(model.folder, card, out)
    return {"file": str(out), "model": model.pinned, "sha256": sha256(out)}


def remove(name: str) -> dict[str, object]:
    """Delete a model that the user added, for `lexveil model remove`.

    Raises:
        RequestError: if there is no model with this name, or the model ships with Lexveil.
    """
    folder = find(name).folder
    if folder.parent == paths.MODELS:
        raise RequestError(f"{name} ships with Lexveil and cannot be removed")
    folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
    return {"removed": str(folder)}


@contextmanager
def _incoming() -> Iterator[Path]:
    """Context manager that yields an empty folder for building a model, on the disk where models
    are stored. Only one process at a time may build.
    """
    home = make_user_data()
    folder = home / INCOMING
    try:
        with FileLock(home / f"{INCOMING}.lock", timeout=0):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except Timeout:
        raise RequestError(
            f"another model is being added to {home}; wait until that process ends, and run again"
        ) from None
