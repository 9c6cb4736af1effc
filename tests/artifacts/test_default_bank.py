"""The bank of sentences that ships: what its sentences are, and that it serves where no bank is
named.
"""

import csv
import json
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from asking import command

from benchmarks.written_bank.levels import page
from lexveil.base.errors import RequestError
from lexveil.core.protection import LEVELS
from lexveil.core.screen_parts import PARTS
from lexveil.core.text.encode import encode
from lexveil.io.artifacts import default_bank
from lexveil.io.artifacts.default_bank import (
    SENTENCES_FILE,
    WRITTEN,
    WRITTEN_LEVELS,
    MeasuredWritten,
    bank_named,
    bank_of,
    level_of_written,
    levels_of_written,
    read_written_card,
)
from lexveil.io.artifacts.levels import CARD
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.screened_words import is_screened, screen_record, screened_words
from lexveil.io.artifacts.sentence_banks import open_bank
from lexveil.readers import sentence_levels

CONTACT = re.compile(r"[@#/\\_|<>{}\[\]()]|www|http|\w\.(com|org|net)\b|[0-9]{3}|[0-9][ .-]+[0-9]")
NAMES = "john mary emily sarah michael david james alex lisa anna smith johnson emma jack".split()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, with a user's folder of its own."""
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def sentences():
    return pq.read_table(WRITTEN / SENTENCES_FILE).column("text").to_pylist()


def test_it_has_as_many_sentences_as_its_card_says(here, sentences):
    model = Model.load(name="en")
    bank = open_bank(bank_of(model), model)
    assert list(bank.texts) == sentences
    assert read_written_card().sentences == len(sentences) >= 1_000


def test_it_takes_little_room():
    assert sum(file.stat().st_size for file in WRITTEN.iterdir()) < 4 * 2**20


def test_it_has_no_screened_word(sentences):
    words = {form.lower() for form in encode(sentences, Model.load(name="en").lexicon("S1")).forms}
    assert not is_screened([*words], screened_words(PARTS)).any()
    assert read_written_card().screen == screen_record(PARTS)


def test_it_has_no_sentence_twice(sentences):
    assert len({sentence.lower() for sentence in sentences}) == len(sentences)


def test_it_has_no_address_and_no_number_to_call(sentences):
    assert not [sentence for sentence in sentences if CONTACT.search(sentence)]


def test_it_has_no_usual_name_of_a_person(sentences):
    words = {word for sentence in sentences for word in re.findall(r"[a-z]+", sentence.lower())}
    assert not words & {*NAMES}


def test_a_file_becomes_its_sentences_in_an_empty_folder(here, sentences):
    (here / "reviews.csv").write_text("text\nThe room was dirty and loud.\nI love this phone.\n")
    assert command("privatize", "reviews.csv", "-o", "out.csv", "--strategy", "S5") == 0
    with (here / "out.csv").open(newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    known = {*sentences}
    for text in texts:
        parts = re.split(r"(?<=[.!?]) (?=[A-Z])", text)
        assert any(" ".join(parts[:n]) in known for n in range(1, len(parts) + 1)), text
    assert len(texts) == 2


def test_the_record_names_the_packaged_bank(here, sentences):
    (here / "in.txt").write_text("The room was dirty and loud.\n")
    command("privatize", "in.txt", "-o", "out.txt", "--strategy", "S5")
    record = json.loads((here / "out.txt.record.json").read_text())
    folder = bank_of(Model.load(name="en"))
    card = json.loads((folder / CARD).read_text())
    assert record["sentences"]["bank_sentences"] == len(sentences)
    assert card["sources"][0]["sha256"] == read_written_card().sha256
    assert (record["mode"], record["base_epsilon"], record["sentences"]["per_text"]) == (
        "release",
        5.0,
        4,
    )


def test_its_vectors_are_computed_once(here):
    model = Model.load(name="en")
    first = (bank_of(model) / CARD).stat().st_mtime_ns
    assert (bank_of(model) / CARD).stat().st_mtime_ns == first


def test_an_edited_file_of_it_is_refused(here, monkeypatch, tmp_path):
    edited = tmp_path / "written"
    edited.mkdir()
    for file in WRITTEN.iterdir():
        (edited / file.name).write_bytes(file.read_bytes())
    (edited / SENTENCES_FILE).write_bytes(b"another")
    monkeypatch.setattr(default_bank, "WRITTEN", edited)
    with pytest.raises(RequestError, match="differs from the hash in its card"):
        bank_of(Model.load(name="en"))


def test_a_model_of_another_language_asks_for_a_bank(here, monkeypatch):
    model = Model.load(name="en")
    monkeypatch.setattr(Model, "language", property(lambda _: "de"))
    with pytest.raises(RequestError, match="make a bank with `lexveil sentences build"):
        bank_of(model)


def test_it_is_shown_without_a_name_and_by_its_name(here, capsys):
    for asked in ([], ["shipped"]):
        assert command("sentences", "show", *asked) == 0
        assert capsys.readouterr().out.startswith("shipped: 34,652 sentences")


def test_the_nearest_of_its_sentences_need_no_library_of_projects(here, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "duckdb"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "lexveil.io.execution.duckdb_session", raising=False)
    monkeypatch.delitem(sys.modules, "lexveil.lab.data.sentence_banks", raising=False)
    assert command("sentences", "show", "shipped", "The parcel never came.", "--nearest", "2") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_it_serves_by_its_name(here):
    (here / "in.txt").write_text("The room was dirty.\n")
    options = ["--strategy", "S5", "--bank", "shipped"]
    assert command("privatize", "in.txt", "-o", "out.txt", *options) == 0
    assert json.loads((here / "out.txt.record.json").read_text())["base_epsilon"] == 5.0


def test_its_name_is_refused_for_a_model_of_another_language(here, monkeypatch):
    model = Model.load(name="en")
    monkeypatch.setattr(Model, "language", property(lambda _: "de"))
    with pytest.raises(RequestError, match="shipped: the packaged bank works only with"):
        bank_named("shipped", model)


def test_its_levels_keep_what_they_promise():
    """Words may be named half as often again as without any output."""
    measured = levels_of_written(Model.load(name="en"))
    for found in (level for one in measured for level in one.levels):
        allowed = LEVELS[found.level]
        assert found.linkage <= allowed.content
        assert found.content <= max(allowed.content, 1.5 * found.content_without)
        assert found.rare <= max(allowed.rare, 1.5 * found.rare_without)


@pytest.mark.parametrize("level", [*LEVELS])
@pytest.mark.parametrize("model", ["en", "en+sentiment=3"])
def test_it_has_levels_for_the_usual_settings(level, model):
    assert level_of_written(Model.load(name=model), 4, level).level == level


def test_the_page_has_the_levels_that_ship():
    table = MeasuredWritten.model_validate_json((WRITTEN / WRITTEN_LEVELS).read_bytes())
    assert page(table) in Path("docs/reference/levels.md").read_text(encoding="utf-8")


def test_a_level_of_it_needs_no_search(here, monkeypatch):
    monkeypatch.setattr(sentence_levels, "found_at", None)
    (here / "in.txt").write_text("The room was dirty.\n")
    options = ["--strategy", "S5", "--protection", "strong"]
    assert command("privatize", "in.txt", "-o", "out.txt", *options) == 0
    record = json.loads((here / "out.txt.record.json").read_text())
    strong = level_of_written(Model.load(name="en"), 4, "strong")
    assert record["base_epsilon"] == strong.epsilon
    assert record["linkage"]["at"][0]["found"] == strong.linkage


def test_a_level_that_names_more_than_it_allows_says_so(here, capsys):
    """A reader of reviews names about 9 % of the content words without any output."""
    (here / "in.txt").write_text("The room was dirty.\n")
    options = ["--strategy", "S5", "--protection", "strong"]
    assert command("inspect", "in.txt", *options) == 0
    missed = level_of_written(Model.load(name="en"), 4, "strong").missed
    assert f"that is more than the level allows: {missed}" in capsys.readouterr().out
    assert command("privatize", "in.txt", "-o", "out.txt", *options) == 0
    assert json.loads((here / "out.txt.record.json").read_text())["protection"]["missed"] == missed
    statement = " ".join((here / "out.txt.statement.txt").read_text().split())
    assert f"that is more than the level allows: {missed}" in statement


def test_its_levels_are_of_its_sentences_alone(monkeypatch):
    """Whoever exchanges the sentences has to measure anew."""
    model = Model.load(name="en")
    assert levels_of_written(model)
    card = read_written_card().model_copy(update={"sha256": "0" * 64})
    monkeypatch.setattr(default_bank, "read_written_card", lambda: card)
    assert not levels_of_written(model)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sentences", "5"], ": 4 for a text; 4 for a text with sentiment=3; "),
        (["--purpose", "sentiment=2"], "4 for a text with sentiment=3; 8 for a text"),
    ],
)
def test_a_level_of_other_settings_is_refused_with_what_to_do(here, capsys, options, said):
    (here / "in.txt").write_text("The room was dirty.\n")
    asked = ["--strategy", "S5", "--protection", "light", *options]
    assert command("inspect", "in.txt", *asked) == 2
    told = capsys.readouterr().err
    assert said in told and "name --epsilon of each sentence" in told


def test_its_levels_are_shown(here, capsys):
    assert command("sentences", "show") == 0
    shown = capsys.readouterr().out
    strong = level_of_written(Model.load(name="en"), 4, "strong")
    assert f"protection strong, 4 for a text: epsilon {strong.epsilon:g} of each" in shown
