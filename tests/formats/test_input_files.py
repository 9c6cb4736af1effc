"""Input files of a path."""

from pathlib import Path

import pytest

from lexveil.base.errors import RequestError
from lexveil.io.formats.input_files import dataset_names, find_sources
from lexveil.io.formats.registry import FORMATS, as_source


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_a_folder_is_read_recursively_in_order_and_without_its_companions(tmp_path):
    wanted = ["a.jsonl", "b/1.csv", "b/2.PARQUET", "b/c/x.json.gz", "z.txt"]
    touch(
        *(
            tmp_path / name
            for name in [*reversed(wanted), "README.md", "LICENSE", ".hidden.csv", "b/_SUCCESS"]
        )
    )
    touch(tmp_path / ".cache/y.csv", tmp_path / "a.jsonl.sha256")
    assert [str(source.path.relative_to(tmp_path)) for source in find_sources([tmp_path])] == wanted


@pytest.mark.parametrize(
    ("name", "form", "compression", "stem"),
    [
        ("a.json.gz", "jsonl", "gz", "a"),
        ("a.b.JSONL", "jsonl", "", "a.b"),
        ("a.csv.ZST", "csv", "zst", "a"),
        ("a.txt.bz2", "txt", "bz2", "a"),
        ("a.tsv.xz", "tsv", "xz", "a"),
        *((f"a.{ending}", form.name, "", "a") for form in FORMATS for ending in form.endings),
    ],
)
def test_the_ending_says_how_a_file_is_read(name, form, compression, stem):
    source = as_source(Path(name))
    assert source is not None
    assert (source.format.name, source.compression, source.stem) == (form, compression, stem)


@pytest.mark.parametrize("name", ["a", "a.xlsx", "a.gz", "a.parquet.gz", "a.zip", "csv"])
def test_other_endings_are_not_read(name):
    assert as_source(Path(name)) is None


def test_links_are_followed_once_and_circles_end(tmp_path):
    touch(tmp_path / "real/one.csv", tmp_path / "elsewhere/two.csv")
    (tmp_path / "real/circle").symlink_to(tmp_path / "real")
    (tmp_path / "real/again.csv").symlink_to(tmp_path / "real/one.csv")
    (tmp_path / "real/other").symlink_to(tmp_path / "elsewhere")
    found = [source.path.name for source in find_sources([tmp_path / "real"])]
    assert found == ["again.csv", "two.csv"]  # again.csv is one.csv, and is met first


def test_names_of_document_sets(tmp_path):
    touch(*(tmp_path / name for name in ["Über set (1).csv", "sst-2_x.jsonl", "v1.2.parquet"]))
    assert list(dataset_names(find_sources([tmp_path]))) == ["sst-2_x", "v1-2", "ber-set-1"]


@pytest.mark.parametrize(
    ("one", "other"), [("a/x.csv", "b/x.jsonl"), ("a/x y.csv", "b/x-y.csv"), ("a/X.csv", "b/x.csv")]
)
def test_a_collision_names_both_files(tmp_path, one, other):
    touch(tmp_path / one, tmp_path / other)
    with pytest.raises(RequestError, match=f"(?s){one}.*{other}"):
        dataset_names(find_sources([tmp_path]))
