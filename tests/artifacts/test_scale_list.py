"""Public lists of factors: what is read, and what is refused, without quoting an entry."""

import pytest

from lexveil.base.errors import ParameterError
from lexveil.base.runtime.hashes import sha256
from lexveil.io.artifacts.user_lists import load_factors


def named(file, content):
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return f"{file}@{sha256(file)[:12]}"


def test_words_by_their_normal_forms(tmp_path):
    text = '\ufeffword,factor\nAnne,0\nNew York,0.5\n\n"ÉCOLE",1e1\n'
    assert load_factors(named(tmp_path / "a@b.csv", text)) == {
        "anne": 0.0,
        "new_york": 0.5,
        "école": 10.0,
    }


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("anne,0\n", "line 1: the columns must be word,factor"),
        ("word,factor\nanne,0\nbob\n", "line 3: the line must be a word and a factor"),
        ("word,factor\nanne,-1\n", "line 2: the line must be"),
        ("word,factor\nanne,nan\n", "line 2: the line must be"),
        ("word,factor\nanne,0\nAnne,1\n", "line 3: the word is a duplicate"),
        (b"word,factor\nann\xe9,0\n", "not a text file in UTF-8"),
    ],
)
def test_what_is_refused(tmp_path, content, says):
    with pytest.raises(ParameterError, match=says) as refused:
        load_factors(named(tmp_path / "list.csv", content))
    assert "ann" not in str(refused.value).replace(str(tmp_path), "").lower()


def test_another_file_than_params_name(tmp_path):
    with pytest.raises(ParameterError, match="does not exist"):
        load_factors(f"{tmp_path}/absent.csv@0123456789ab")
    right = named(tmp_path / "list.csv", "word,factor\n")
    with pytest.raises(ParameterError, match=f"but the file is now {right}"):
        load_factors(f"{tmp_path}/list.csv@0123456789ab")
    assert load_factors(right) == {}
