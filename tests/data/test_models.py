"""Models that come in: sound ones as they are, plain vectors with composed collocations, hostile
ones refused."""

import json
import shutil
import stat
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import command

from lexveil.base.errors import RequestError
from lexveil.base.runtime.hashes import sha256
from lexveil.core.embeddings.composition import composed
from lexveil.io.artifacts.model_store import find
from lexveil.io.artifacts.packaged_model import PackagedModel
from lexveil.lab.data import imported_models
from lexveil.lab.data.default import articles
from lexveil.lab.data.imported_models import counts_by_rank
from lexveil.lab.data.model_verification import (
    UnsoundModelError,
    unpack,
    verify_folder,
    write_archive,
)
from lexveil.lab.data.word_vectors import read_model


@pytest.fixture
def folder(packaged, tmp_path):
    """A copy of a sound model, to damage."""
    shutil.copytree(packaged.folder, tmp_path / "model")
    return tmp_path / "model"


def sign(folder, **fields):
    """Write the hashes of the files as they are now into the card, as who makes a model can, and
    change its fields."""
    card = json.loads((folder / "model.json").read_text())
    card["files"] = {
        name: sha256(folder / name) for name in card["files"] if (folder / name).is_file()
    }
    (folder / "model.json").write_text(json.dumps(card | fields))


def words(change):
    def damage(folder):
        file = folder / "words.txt"
        lines = file.read_text(encoding="utf-8").split("\n")[:-1]
        file.write_text("".join(line + "\n" for line in change(lines)), encoding="utf-8")

    return damage


def array(name, change):
    def damage(folder):
        values = np.load(folder / name)
        changed = change(values)
        np.save(folder / name, values if changed is None else changed)

    return damage


def at(place, value):
    def change(values):
        values.reshape(-1)[place] = value

    return change


def pickled(folder):
    """An array that runs code when it is unpickled: this one would leave a file."""

    class Bomb:
        def __reduce__(self):
            return Path.touch, (folder.parent / "executed",)

    values = np.empty(1, dtype=object)
    values[0] = Bomb()
    np.save(folder / "pmi.npy", values, allow_pickle=True)


def structure(**changes):
    def damage(folder):
        given = json.loads((folder / "structure.json").read_text())
        given["word"] |= changes
        (folder / "structure.json").write_text(json.dumps(given))

    return damage


def linked(folder):
    (folder / "NOTICE.md").unlink()
    (folder / "NOTICE.md").symlink_to("/etc/hostname")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: (folder / "pmi.npy").unlink(), "pmi.npy: missing"),
        (lambda folder: (folder / "run.py").write_text("x"), "run.py: is not a file of the format"),
        (lambda folder: (folder / "model.json").unlink(), "model.json: missing"),
        (linked, "NOTICE.md: is a link or a device"),
        (words(lambda all_: [*all_[:-1], all_[0]]), "repeats an earlier token"),
        (words(lambda all_: [all_[0].upper() + "X", *all_[1:]]), "words.txt, line 1: not a token"),
        (words(lambda all_: ["", *all_[1:]]), "words.txt, line 1: not a token"),
        (words(lambda all_: ["a_b_c_d", *all_[1:]]), "4 words; a collocation has at most 3"),
        (words(lambda all_: ["a_b", *all_[1:]]), "tokens of 1, 2 and 3 words"),
        (words(lambda all_: all_[1:]), "words.txt: .* tokens; model.json states"),
        (lambda folder: (folder / "words.txt").write_bytes(b"\xff\n"), "not UTF-8 at byte 0"),
        (array("counts.npy", at(-1, 10**6)), "is larger than the one before"),
        (array("counts.npy", at(-1, 0)), "a count is 0"),
        (array("counts.npy", lambda values: values.astype(np.int32)), "counts.npy: int32"),
        (array("pmi.npy", at(5, np.nan)), "number 6 is not finite"),
        (array("pmi.npy", lambda values: values + 1), "the PMI of a single word is not 0"),
        (array("scales.npy", at(3, np.inf)), "finite and greater than 0"),
        (array("scales.npy", at(3, 1e30)), "the limit is"),
        (
            lambda folder: shutil.copy(folder / "scales.npy", folder / "trained_scales.npy"),
            "is not a file of the format",
        ),
        (array("vectors.npy", lambda values: values[:, 1:]), "vectors.npy: int8 of shape"),
        (
            array("vectors.npy", lambda values: np.asfortranarray(values).astype(np.float16)),
            "vectors.npy: .*bytes",
        ),
        (array("orders/all.npy", at(0, 1)), "order 1 is not a permutation|order 1"),
        (structure(segmentation="gst"), "not the measurement of a segmentation"),
        (structure(texts="many"), "does not hold measurements"),
        (lambda folder: (folder / "structure.json").write_text("[" * 10**5), "does not hold meas"),
        (pickled, "pmi.npy: is not an array of plain numbers"),
        (
            lambda folder: (folder / "NOTICE.md").write_bytes(bytes(2**23)),
            "NOTICE.md: 8,388,608 bytes",
        ),
    ],
)
def test_every_fault_is_refused(folder, damage, says):
    """Each fault is tried with matching hashes, as a malicious author could write them, and with
    other hashes, as after damage in transit.
    """
    damage(folder)
    if (folder / "model.json").exists():
        with pytest.raises(
            UnsoundModelError, match=r"sha256 differs|missing|not a file of the format|a link|bytes"
        ):
            verify_folder(folder)
        sign(folder)
    with pytest.raises(UnsoundModelError, match=says) as error:
        verify_folder(folder)
    assert "\n" not in str(error.value)
    assert not (folder.parent / "executed").exists()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"license": " "}, "license: is empty"),
        ({"name": "../etc"}, "name: string should match"),
        ({"name": "own"}, "own is reserved"),
        ({"format": 2}, "format 2; this version of Lexveil reads format 1"),
        ({"surprise": 1}, "surprise: extra inputs"),
        ({"n_tokens": 10**12}, "n_tokens: input should be less than"),
        ({"n_words": 1}, "do not add up"),
        ({"files": {"/etc/passwd": "0" * 64}}, "no sha256|not a file of the format"),
    ],
)
def test_a_card_that_is_none(folder, fields, says):
    sign(folder, **fields)
    with pytest.raises(UnsoundModelError, match=says):
        verify_folder(folder)


def entry(name, mode=stat.S_IFREG | 0o644):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


@pytest.mark.parametrize(
    ("extra", "content", "says"),
    [
        (entry("../outside"), b"x", r"\.\./outside: is not a file of the format"),
        (
            entry("orders/link", stat.S_IFLNK | 0o777),
            b"/etc/passwd",
            "orders/link: is a link or a folder",
        ),
        (entry("NOTICE.md"), b"again", "NOTICE.md: occurs twice"),
        (entry("more.py"), b"print()", "more.py: is not a file of the format"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_archives(folder, extra, content, says):
    archive = folder.parent / "a.zip"
    target = folder.parent / "target"
    write_archive(folder, PackagedModel(folder).card, archive)
    target.mkdir()
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr(extra, content)
    with pytest.raises(UnsoundModelError, match=says):
        unpack(archive, target)
    assert not any(target.iterdir())


def test_a_truncated_archive(folder):
    archive = folder.parent / "a.zip"
    target = folder.parent / "target"
    write_archive(folder, PackagedModel(folder).card, archive)
    whole = archive.read_bytes()
    target.mkdir()
    for cut in (10, 1000, -1):
        archive.write_bytes(whole[:cut])
        with pytest.raises(UnsoundModelError, match="damaged archive"):
            unpack(archive, target)


def test_a_bomb_is_refused_before_it_is_unpacked(folder):
    """64 MB of zeros in 64 kB; then the same with a directory that denies it."""
    archive = folder.parent / "bomb.zip"
    target = folder.parent / "target"
    target.mkdir()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = file.relative_to(folder).as_posix()
            opened.writestr(name, bytes(2**26) if name == "vectors.npy" else file.read_bytes())
    assert archive.stat().st_size < 2**22
    with pytest.raises(UnsoundModelError, match=r"vectors.npy: 67,108,864 bytes"):
        unpack(archive, target)
    assert not any(target.iterdir())
    lying = archive.read_bytes().replace(struct.pack("<I", 2**26), struct.pack("<I", 1000))
    archive.write_bytes(lying)
    with pytest.raises(UnsoundModelError, match="damaged archive"):
        unpack(archive, target)
    assert sum(path.stat().st_size for path in target.rglob("*")) < 2**22


ARCHIVE = Path("toy-1.0.lexveil.zip")


@pytest.mark.usefixtures("outside")
def test_export_gives_the_same_bytes_twice_and_replaces_no_file():
    assert command("model", "export", "toy") == 0
    assert command("model", "export", "toy") == 2
    assert command("model", "export", "toy", "-o", "again.zip") == 0
    assert ARCHIVE.read_bytes() == Path("again.zip").read_bytes()


@pytest.fixture
def exported(outside):
    """An archive of the model toy, which the user has no longer."""
    assert command("model", "export", "toy") == command("model", "remove", "toy") == 0
    return outside / ARCHIVE


@pytest.mark.usefixtures("exported")
def test_a_removed_model_is_gone():
    with pytest.raises(RequestError):
        find("toy")


def test_an_exported_model_comes_in_again(exported, packaged, cli):
    said = json.loads(cli("model", "add", exported, "--json").out)
    assert (said["model"], said["replaced"]) == (f"toy@{packaged.hash[:12]}", False)
    made = find("toy")
    assert made.hash == packaged.hash
    left = {path.name for path in made.folder.parents[1].iterdir() if "incoming" in path.name}
    assert left <= {"incoming-model.lock"}


def test_an_unpacked_model_comes_in_in_the_place_of_another_if_forced(exported, packaged, outside):
    assert command("model", "add", exported) == 0
    with zipfile.ZipFile(exported) as opened:
        opened.extractall(outside / "unpacked")
    assert command("model", "add", outside / "unpacked") == 2
    assert command("model", "add", outside / "unpacked", "--force") == 0
    assert find("toy").hash == packaged.hash


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    "arguments", [("verify", "toy"), ("list",), ("show", "toy")], ids=lambda given: given[0]
)
def test_commands_about_a_sound_model_succeed(arguments):
    assert command("model", *arguments) == 0


def test_a_sound_archive_is_verified(exported):
    assert command("model", "verify", exported) == 0


def test_an_unsound_model_is_not_added(outside, folder, cli):
    assert command("model", "remove", "toy") == 0
    array("pmi.npy", at(5, np.inf))(folder)
    sign(folder)
    for verb, code in (("verify", 1), ("add", 2)):
        assert (
            cli("model", verb, folder, code=code).err.count("pmi.npy: number 6 is not finite\n")
            == 1
        )
    assert (
        command("model", "verify", outside / "absent") == command("model", "verify", "absent") == 2
    )
    with pytest.raises(RequestError):
        find("toy")


def vectors_of(packaged, n):
    """The n most frequent words of the toy, with vectors of our own."""
    tokens = [token for token in packaged.tokens if "_" not in token][:n]
    return tokens, np.random.default_rng(3).standard_normal((n, 8)).astype(np.float32)


ADD = ("--license", "CC0-1.0", "--language", "en", "--collocations", "toy", "--name", "glove")


@dataclass(frozen=True)
class Glove:
    """A model of plain vectors, with collocations of the model toy."""

    model: PackagedModel
    words: list[str]
    vectors: np.ndarray
    collocations: list[str]

    @property
    def rows(self):
        """Rows of the collocations in the model."""
        return [self.model.tokens.index(token) for token in self.collocations]


@pytest.fixture
def glove(packaged, outside, monkeypatch):
    monkeypatch.setattr(imported_models, "articles", lambda: articles()[:40])
    words, vectors = vectors_of(packaged, 600)
    numbers = (" ".join(map(str, vector)) for vector in vectors.tolist())
    lines = [f"{word} {row}\n" for word, row in zip(words, numbers, strict=True)]
    (outside / "glove.txt").write_text("".join(lines), encoding="utf-8")
    assert command("model", "add", "glove.txt", *ADD) == 0
    of_known = [token for token in packaged.tokens if "_" in token]
    of_known = [token for token in of_known if {*token.split("_")} <= {*words}]
    assert len(of_known) > 5
    return Glove(find("glove"), words, vectors, of_known)


def test_plain_vectors_become_a_sound_model_of_words_and_collocations(glove):
    verify_folder(glove.model.folder)
    assert sorted(glove.model.tokens) == sorted([*glove.words, *glove.collocations])


def test_vectors_of_collocations_are_composed(glove):
    """8 bits: an error of at most half a step, which is a 127th of the largest coordinate of the
    row.
    """
    rows = {word: row for row, word in enumerate(glove.words)}
    expected = np.array(list(composed(glove.collocations, rows, glove.vectors)))
    error = np.abs(glove.model.space("mst").vectors[glove.rows] - expected).max(axis=1)
    assert np.all(error <= 0.5001 * np.abs(expected).max(axis=1) / 127)


def test_collocations_have_the_scores_and_counts_of_the_model_that_they_are_from(glove, packaged):
    theirs = [packaged.tokens.index(token) for token in glove.collocations]
    assert np.array_equal(glove.model.pmi[glove.rows], packaged.pmi[theirs])
    counts = glove.model.space("mst").counts[glove.rows]
    assert np.array_equal(counts, packaged.space("mst").counts[theirs])


def test_the_card_of_a_model_of_plain_vectors_has_what_was_said_and_measured(glove, packaged):
    card = glove.model.card
    assert (card.license, card.average_words) == ("CC0-1.0", packaged.card.average_words)
    assert "Lee corpus" in str(glove.model.structure("gst"))


def test_a_model_is_not_replaced_by_another_of_its_name(glove):
    assert command("model", "add", "glove.txt", *ADD) == 2
    assert find("glove").hash == glove.model.hash


def test_of_another_language_nothing_is_measured(packaged, outside):
    tokens, vectors = vectors_of(packaged, 30)
    table = pa.table({"word": tokens, "vector": vectors.tolist(), "count": list(range(30, 0, -1))})
    pq.write_table(table, outside / "v.parquet")
    asked = ("--language", "de", "--name", "wort", "--collocations", "none")
    assert command("model", "add", "v.parquet", *ADD[:2], *asked) == 0
    made = find("wort")
    assert made.structure("word") is None and any(
        "not measured" in fault for fault in made.card.known_faults
    )
    assert made.tokens == tokens and made.space("word").counts.tolist() == list(range(30, 0, -1))


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--name, --license, --language: required"),
        ((*ADD[:6], "--name", "own"), "is not a valid name of a model"),
        ((*ADD, "--version", "one"), "is not a version"),
        ((*ADD, "--collocations", "absent"), "absent"),
        (ADD, "v.txt, line 2: not a word and 2 numbers"),
    ],
)
def test_what_must_be_said(arguments, says, cli):
    Path("v.txt").write_text("a 1 2\nb 1\n")
    assert says in cli("model", "add", "v.txt", *arguments, code=2).err


def test_parquet_with_faults(tmp_path):
    def read(**columns):
        pq.write_table(pa.table(columns), tmp_path / "v.parquet")
        return read_model(tmp_path / "v.parquet")

    good = read(word=["a", "B", "c d"], vector=[[1.0, 2.0]] * 3, count=[3, 2, 1])
    assert (list(good.space.tokens), good.space.counts.tolist(), good.form) == (
        ["a", "b"],
        [3, 2],
        "parquet",
    )
    for columns, says in (
        ({"word": ["a"]}, "lacks the columns"),
        (
            {"word": ["a", None], "vector": [[1.0, 2.0]] * 2},
            "row 2: a word, a number or a count is missing",
        ),
        ({"word": ["a", "b"], "vector": [[1.0, 2.0], [1.0]]}, "row 2: 1 numbers"),
        (
            {"word": ["a", "b"], "vector": [[1.0, 2.0], [1.0, float("nan")]]},
            "row 2: a number is not finite",
        ),
        ({"word": ["a"], "vector": [[1.0, 2.0]], "count": [-1]}, "row 1"),
        ({"word": ["a"], "vector": [[1.0, 2.0]], "count": ["x"]}, "whole numbers"),
    ):
        with pytest.raises(RequestError, match=says):
            read(**columns)


def test_counts_by_rank():
    """Beyond the third, Zipf's law from there: 4·3/4, 4·3/5, 4·3/6."""
    assert counts_by_rank(6, np.array([90, 5, 4])).tolist() == [90, 5, 4, 3, 2, 2]
    assert counts_by_rank(2, np.array([90, 5, 4])).tolist() == [90, 5]
    assert counts_by_rank(4, np.empty(0, dtype=np.int64)).tolist() == [4, 2, 1, 1]
