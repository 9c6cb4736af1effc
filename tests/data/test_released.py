"""Releases of the authors of CLMLDP: tables of scores, embeddings with collocations, lists."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors

from lexveil.base.errors import RequestError
from lexveil.io.artifacts.model import Model
from lexveil.lab.data import model_collection
from lexveil.lab.data.keyed_vectors import read_keyed_vectors
from lexveil.lab.data.model_collection import ImportOptions
from lexveil.lab.data.released_tables import read_scores

WORDS = ["the", "new", "york", "city", "prime", "minister", "of", "state"]
PAIRS = {"new_york": 9.5, "prime_minister": 7.25}
TRIPLES = {"new_york_city": 14.0}
VECTORS = np.random.default_rng(5).standard_normal((11, 4)).astype(np.float32)
SAID = {"name": "released", "license": "MIT", "language": "en"}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / "home"))


def tables(tmp_path, pairs=PAIRS, triples=TRIPLES):
    files = (tmp_path / "bigrams.json", tmp_path / "trigrams.json")
    for file, table in zip(files, (pairs, triples), strict=True):
        file.write_text(table if isinstance(table, str) else json.dumps(table), encoding="utf-8")
    return files


def keyed(tmp_path, tokens, form="kv"):
    vectors = KeyedVectors(4)
    vectors.add_vectors(tokens, VECTORS[: len(tokens)])
    file = tmp_path / f"gst.{form}"
    if form == "kv":
        vectors.save(str(file))
    else:
        vectors.save_word2vec_format(str(file), binary=form == "bin")
    return file


def imported(tmp_path, file, **options):
    bigrams, trigrams = tables(tmp_path)
    said = SAID | {"bigrams": bigrams, "trigrams": trigrams} | options
    model_collection.add(file, ImportOptions(**said), force=False)
    packaged = Model.load(name="released").packaged
    assert packaged is not None
    return packaged


TOKENS = [*WORDS, *PAIRS, *TRIPLES]


@pytest.mark.parametrize("form", ["kv", "txt", "bin"])
def test_an_embedding_with_collocations_becomes_a_model(tmp_path, form):
    packaged = imported(tmp_path, keyed(tmp_path, TOKENS, form))
    assert sorted(packaged.tokens) == sorted(TOKENS)
    scores = dict(zip(packaged.tokens, packaged.pmi.tolist(), strict=True))
    assert scores == dict.fromkeys(WORDS, 0.0) | PAIRS | TRIPLES


def test_texts_are_cut_by_the_released_tables(tmp_path):
    imported(tmp_path, keyed(tmp_path, TOKENS))
    lexicon = Model.load(name="released").lexicon("S3")
    from lexveil.core.text.encode import encode

    encoded = encode(["The prime minister of New York City"], lexicon)
    assert [lexicon.tokens[row] for row in encoded.rows.tolist()] == [
        "the",
        "prime_minister",
        "of",
        "new_york_city",
    ]


def test_without_tables_collocations_are_no_words(tmp_path):
    file = keyed(tmp_path, TOKENS)
    model_collection.add(file, ImportOptions(**SAID, collocations="none"), force=False)
    packaged = Model.load(name="released").packaged
    assert packaged is not None
    assert sorted(packaged.tokens) == sorted(WORDS)
    assert packaged.card.dropped == {"no_token": 3}


def test_a_collocation_without_a_score_is_left_out(tmp_path):
    tokens = [*WORDS, "new_york", "state_of"]
    packaged = imported(tmp_path, keyed(tmp_path, tokens))
    assert "state_of" not in packaged.tokens
    assert packaged.card.dropped["no_score"] == 1


def test_a_public_list_chooses_words_and_collocations(tmp_path):
    listed = tmp_path / "vocab.txt"
    listed.write_text("The\nnew\nyork\n", encoding="utf-8")
    packaged = imported(tmp_path, keyed(tmp_path, TOKENS), words=listed)
    assert sorted(packaged.tokens) == ["new", "new_york", "the", "york"]
    assert packaged.card.dropped["not_listed"] == 7


def test_a_collocation_of_words_without_vectors_is_refused(tmp_path):
    with pytest.raises(
        RequestError, match=r"collocation .*new_york.* contains the word .*york.*words"
    ):
        imported(tmp_path, keyed(tmp_path, ["the", "new", "new_york"]))
    assert not (tmp_path / "home/models/released").exists()


def test_tables_of_another_embedding_are_refused(tmp_path):
    with pytest.raises(RequestError, match="none of its 1 collocations is in the tables"):
        imported(tmp_path, keyed(tmp_path, ["state", "of", "state_of"]))


@pytest.mark.parametrize(
    "pairs, message",
    [
        pytest.param({"New_York": 9.5}, "entry 1, .*capitals", id="another case"),
        pytest.param({"a_b": 1, "new_york_city": 2}, "entry 2, .*not 2 words", id="a triple"),
        pytest.param({"new_": 1.0}, "not 2 words", id="no second word"),
        pytest.param({"a_b": "7"}, "its score is not a number", id="a text"),
        pytest.param({"a_b": True}, "its score is not a number", id="a truth value"),
        pytest.param('{"a_b": NaN}', "its score is not finite", id="no finite number"),
        pytest.param('{"a_b": 1, "a_b": 2}', "has two scores", id="two scores"),
        pytest.param({"a_b": {"count": 3}}, "not 2 words|no number", id="an object"),
        pytest.param([["a_b", 1]], "not a JSON object", id="a list"),
        pytest.param({}, "not a JSON object", id="nothing"),
        pytest.param("{", "not valid JSON", id="cut off"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path, pairs, message):
    with pytest.raises(RequestError, match=rf"bigrams\.json.*({message})"):
        read_scores(*tables(tmp_path, pairs))


def test_one_table_alone_is_refused(tmp_path):
    bigrams, _ = tables(tmp_path)
    with pytest.raises(RequestError, match="belong together"):
        model_collection.add(
            keyed(tmp_path, TOKENS), ImportOptions(**SAID, bigrams=bigrams), force=False
        )


def test_large_arrays_of_gensim_lie_beside_the_file(tmp_path):
    vectors = KeyedVectors(4)
    vectors.add_vectors(WORDS, VECTORS[: len(WORDS)])
    vectors.save(str(tmp_path / "large.kv"), sep_limit=1)
    assert (tmp_path / "large.kv.vectors.npy").exists()
    words, rows, counts = read_keyed_vectors(tmp_path / "large.kv")
    assert words == WORDS
    np.testing.assert_array_equal(rows, VECTORS[: len(WORDS)])
    assert counts.shape == (len(WORDS),)


def test_a_file_that_would_run_code_is_refused_and_runs_none(tmp_path):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "executed",)

    file = tmp_path / "bomb.kv"
    file.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(RequestError, match=r"bomb\.kv: contains pathlib.*no part of word vectors"):
        read_keyed_vectors(file)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("content", [b"\x80\x04", b"\x80\x04N.", b"\x80\x04]."])
def test_a_damaged_file_of_gensim_is_refused(tmp_path, content):
    file = tmp_path / "damaged.kv"
    file.write_bytes(content)
    with pytest.raises(RequestError, match=r"damaged\.kv"):
        read_keyed_vectors(file)
