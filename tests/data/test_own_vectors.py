"""Models of word vectors in memory, the licence of a mixed one, and a file named as a model."""

from types import SimpleNamespace

import numpy as np
import pytest
from gensim.models import KeyedVectors

import lexveil
from lexveil import Model, RequestError
from lexveil.io.artifacts.model_store import find

SAID = {"name": "ours", "license": "CC0-1.0", "language": "en"}


@pytest.fixture
def keyed(packaged):
    """Vectors of the most frequent words of the toy, as gensim has them."""
    tokens = [token for token in packaged.tokens if "_" not in token][:200]
    vectors = KeyedVectors(8)
    vectors.add_vectors(tokens, np.random.default_rng(3).standard_normal((200, 8)))
    for place, token in enumerate(tokens):
        vectors.set_vecattr(token, "count", 1000 - place)
    return vectors


def test_vectors_in_memory_become_a_model(keyed, outside):
    """Vectors in memory become a model as those of a file do, with their counts; texts take the
    name that comes back.
    """
    name = lexveil.add_model(keyed, **SAID, collocations="none")
    space = Model.load(name=name).embedding("S1")
    rows = {token: row for row, token in enumerate(space.tokens)}
    for token in ("the", "government"):
        expected = keyed[token]
        step = np.abs(expected).max() / 127
        assert np.abs(space.vectors[rows[token]] - expected).max() <= 0.5001 * step
        assert space.counts[rows[token]] == keyed.get_vecattr(token, "count")
    how = {"mechanism": "tem", "strategy": "S1", "document_budget": 50.0}
    done = lexveil.privatize(["the government"], model=name, max_token_epsilon=5.0, seed=1, **how)
    assert done.record.model is not None and done.record.model.name == "ours"
    keyed.save(str(outside / "v.kv"))
    lexveil.add_model(outside / "v.kv", **SAID, collocations="none", force=True)
    assert find("ours").tokens == space.tokens
    with pytest.raises(RequestError, match="exists already"):
        lexveil.add_model(keyed, **SAID, collocations="none")


@pytest.mark.usefixtures("outside")
def test_what_holds_no_vectors_is_refused(keyed):
    for wrong in ([1.0, 2.0], {"the": [1.0]}, SimpleNamespace(index_to_key=["a"], vectors="b")):
        with pytest.raises(RequestError, match="give gensim's KeyedVectors"):
            lexveil.add_model(wrong, **SAID, collocations="none")
    short = SimpleNamespace(index_to_key=["the"], vectors=keyed.vectors)
    with pytest.raises(RequestError, match="does not have one vector for each word"):
        lexveil.add_model(short, **SAID, collocations="none")


@pytest.mark.usefixtures("outside")
def test_the_licence_of_a_mixed_model_is_asked(keyed, packaged):
    """Vectors under one, collocations under another: nobody here can say what holds of both."""
    mixed = SAID | {"license": "MIT"}
    with pytest.raises(RequestError, match=r"mixed_license is missing.*under MIT.*CC0-1.0"):
        lexveil.add_model(keyed, **mixed, collocations="toy")
    lexveil.add_model(keyed, **mixed, collocations="toy", mixed_license="MIT AND CC0-1.0")
    made = find("ours")
    assert made.card.license == "MIT AND CC0-1.0"
    assert [source.license for source in made.card.sources] == ["MIT", packaged.card.license]
    assert "MIT AND CC0-1.0" in (made.folder / "NOTICE.md").read_text(encoding="utf-8")
    for one in ({"collocations": "none"}, {"collocations": "toy", "license": "CC0-1.0"}):
        with pytest.raises(RequestError, match="the model mixes no licences"):
            lexveil.add_model(keyed, **(SAID | one), mixed_license="MIT", force=True)


@pytest.mark.parametrize("name", ["ours.kv", "glove.6B.100d.txt", "vectors.bin"])
def test_a_file_named_as_a_model_is_told_how_to_become_one(outside, name):
    with pytest.raises(RequestError, match=f"lexveil model add {name} --name"):
        lexveil.privatize(["the government"], model=name)
