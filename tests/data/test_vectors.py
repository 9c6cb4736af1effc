"""Word vectors made by others: every published form, every fault by its place, words as the
tokenizer makes them."""

import gzip
import struct

import numpy as np
import pytest
from gensim.models import KeyedVectors

from lexveil.base.errors import RequestError
from lexveil.lab.data.word_vectors import read_model

WORDS = ["the", "of", "café", "don't", "u.s."]
VECTORS = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)


def rows(words=WORDS, vectors=VECTORS, end="\n"):
    lines = (
        " ".join([word, *map(repr, map(float, vector))])
        for word, vector in zip(words, vectors, strict=True)
    )
    return "".join(line + end for line in lines).encode()


def binary(end, words=None):
    words = [word.encode() for word in WORDS] if words is None else words
    packed = (
        word + b" " + struct.pack("<4f", *vector) + end
        for word, vector in zip(words, VECTORS, strict=True)
    )
    return b"5 4\n" + b"".join(packed)


FORMS = {
    "GloVe": ("glove text", rows()),
    "GloVe from Windows, no last line end": ("glove text", rows(end="\r\n")[:-2]),
    "word2vec text": ("word2vec text", b"5 4\n" + rows()),
    "fastText .vec": ("word2vec text", b"5 4\n" + rows(end=" \n")),
    "word2vec binary, the original program": ("word2vec binary", binary(b"\n")),
    "word2vec binary, gensim": ("word2vec binary", binary(b"")),
}


@pytest.fixture
def file(tmp_path):
    def make(content):
        path = tmp_path / "vectors"
        path.write_bytes(content)
        return path

    return make


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_read(file, name, zipped):
    form, content = FORMS[name]
    model = read_model(file(gzip.compress(content) if zipped else content))
    assert (model.form, model.n_read, model.left_out) == (form, 5, {})
    assert list(model.space.tokens) == WORDS
    assert model.space.vectors.dtype == np.float32 and np.array_equal(model.space.vectors, VECTORS)
    assert model.space.counts.tolist() == [0] * 5


@pytest.mark.parametrize("is_binary", [False, True])
def test_what_gensim_writes_is_read(tmp_path, is_binary):
    """More words than are copied at a time, and than the binary reader holds at a time."""
    n = 9000
    p = 40
    keyed = KeyedVectors(p)
    vectors = np.random.default_rng(2).standard_normal((n, p)).astype(np.float32)
    keyed.add_vectors([f"w{i}" for i in range(n)], vectors)
    keyed.save_word2vec_format(str(tmp_path / "v"), binary=is_binary)
    model = read_model(tmp_path / "v")
    assert list(model.space.tokens) == [f"w{i}" for i in range(n)]
    assert np.array_equal(model.space.vectors, vectors)
    few = read_model(tmp_path / "v", max_words=5000)
    assert np.array_equal(few.space.vectors, vectors[:5000]) and few.n_read == 5000


def test_words_become_normal_forms_and_the_first_of_equal_ones_stays(
    file,
):
    words = [
        "the",
        "The",
        "the",
        "New_York",
        "new＿york",
        "cafe\u0301",
        "café",
        "'s",
        "</s>",
        "don’t",
        "....",
        "##",
    ]
    model = read_model(file(rows(words, np.arange(48, dtype=np.float32).reshape(12, 4))))
    assert list(model.space.tokens) == ["the", "café", "don't", "..."]
    assert model.space.vectors[:, 0].tolist() == [0, 20, 36, 40]
    assert model.n_read == 12
    assert model.left_out == {"no_token": 5, "repeated": 1, "same_form": 2}
    # A collocation of ours would be called new_york: no word of a model can be.
    assert not any("_" in token for token in model.space.tokens)


def test_words_with_white_space_or_foreign_bytes_are_left_out(
    file,
):
    content = (
        b"a 1 2 3\n. . . 4 5 6\nat name@domain.com 7 8 9\n 1 2 3\n\xff\xfe 1 2 3\nb 4 5 "
        b"6\n\xc2\xa0 1 2 3\n"
    )
    model = read_model(file(content))
    assert list(model.space.tokens) == ["a", "b"]
    assert model.left_out == {"no_token": 4, "not_utf8": 1}
    with_bytes = binary(b"", [b"a", b"\xff", b"new_york", b"b", b""])
    assert read_model(file(with_bytes)).left_out == {"no_token": 2, "not_utf8": 1}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "first line is empty"),
        (b"the quick brown fox\n", "line 1: neither a header nor a word"),
        (b"the 1\n", "line 1: neither a header nor a word"),
        (b"5 9999\n" + rows(), "9999 dimensions"),
        (b"a 1 2 3\nb 1 2\n", "line 2: not a word and 3 numbers"),
        (b"a 1 2 3\nb 1 x 3\n", "line 2: not a word and 3 numbers"),
        (b"a 1 2 3\nb 1 nan 3\n", "line 2: a number is not finite"),
        (b"a 1 2 3\nb 1 1e39 3\n", "line 2: a number is not finite"),
        (b"2 3\na 1 2 3\nb 1 2\n", "line 3: not a word and 3 numbers"),
        (b"3 3\na 1 2 3\nb 1 2 3\n", "the header states 3 words, but the file has 2"),
        (binary(b"")[:-1], "word 5: truncated, of 5 words"),
        (binary(b"") + b"x", "word 5: more bytes follow after the words"),
        (b"5 4\n" + b"\xff" * 4000, "word 1: the end of the word is missing"),
        (
            binary(b"").replace(struct.pack("<f", VECTORS[1, 2]), struct.pack("<f", np.inf)),
            "word 2: .*not finite",
        ),
        (gzip.compress(rows(), mtime=0)[:-9], "damaged or truncated"),
        (b"a_b 1 2\nc_d 1 2\n", "none of its 2 words"),
    ],
)
def test_faults_are_named_by_their_place(file, content, said):
    with pytest.raises(RequestError, match=said):
        read_model(file(content))
