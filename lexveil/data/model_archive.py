"""A packaged model as one file, NAME-VERSION.lexveil.zip: a plain zip of its files, the same bytes on every machine."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from pathlib import Path

from lexveil.artifacts.packaged_model import CARD, ModelCard
from lexveil.data.model_verification import CARD_LIMIT, UnsoundModel, check_files, read_card
from lexveil.formats.messages import shown
from lexveil.runtime.tables import atomic_file

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can hold
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def write_archive(folder: Path, card: ModelCard, out: Path) -> None:
    """Write a model's files into one archive.

    They are stored, not compressed: zlib and zlib-ng would compress them to different bytes, and 8-bit vectors hardly
    shrink. Names are sorted, with the card first; dates and rights are fixed.
    """
    with atomic_file(out) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name in (CARD, *sorted(card.files)):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3  # Unix, whatever writes it
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, (folder / name).read_bytes())


def unpack(file: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder; every name, kind and size is checked before anything is written.

    Raises:
        UnsoundModel: if it is no archive of a model; what it holds is not checked here.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _unpack(archive, folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError):
        raise UnsoundModel(f"{shown(file)}: a damaged archive; get it again") from None
    except UnsoundModel as error:
        raise UnsoundModel(f"{shown(file)}: {error}") from None


def _unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        mode = stat.S_IFMT(entry.external_attr >> 16)
        if entry.is_dir() and entry.filename == "orders/":
            continue
        if mode not in (0, stat.S_IFREG) or entry.is_dir():
            raise UnsoundModel(f"{shown(entry.filename)}: a link or a folder; an archive has plain files only")
        if entry.flag_bits & 0x1 or entry.compress_type not in _PLAIN:
            raise UnsoundModel(f"{shown(entry.filename)}: encrypted, or compressed otherwise than by deflate")
        if entry.filename in entries:
            raise UnsoundModel(f"{shown(entry.filename)}: there twice")
        entries[entry.filename] = entry
    if CARD not in entries or entries[CARD].file_size > CARD_LIMIT:
        raise UnsoundModel(f"{CARD}: missing, or larger than {CARD_LIMIT:,} bytes; is this an archive of a model?")
    card = read_card(archive.read(entries[CARD]))
    # Only the names of a model's files pass, so that none points elsewhere, and no file is larger than its card says.
    check_files(card, {name: entry.file_size for name, entry in entries.items() if name != CARD})
    (folder / "orders").mkdir()
    for name, entry in entries.items():
        with archive.open(entry) as source, (folder / name).open("wb") as target:  # reads no more than its size
            shutil.copyfileobj(source, target)
