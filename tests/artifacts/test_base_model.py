"""The base that params.yaml names: found by name or hash, its most frequent tokens, what does not go together."""

from pathlib import Path

import pytest

from lexveil import paths
from lexveil.artifacts.base_model import find_base
from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.config import EmbeddingParams
from lexveil.errors import ParameterError


@pytest.fixture
def named(outside: Path, packaged: PackagedModel) -> str:
    return f"toy@{packaged.hash[:12]}"


def test_a_base_is_found_by_name_and_hash(named: str, packaged: PackagedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_base(EmbeddingParams(base=named))
    assert found is not None and found.hash == packaged.hash
    assert find_base(EmbeddingParams(base="none")) is None
    with pytest.raises(ParameterError, match=f"toy does not ship with the library; write {named}"):
        find_base(EmbeddingParams(base="toy"))
    monkeypatch.setattr(paths, "MODELS", found.folder.parent)  # as if it shipped
    assert find_base(EmbeddingParams(base="toy")) == found


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base": "toy@000000000000"}, r"embeddings\.base is toy@000000000000, but the installed model is toy@"),
        ({"base": "other"}, r"there is no model other \(there are: .*toy\).*lexveil model add"),
        ({"dimensions": 300}, r"embeddings\.dimensions is 300, but vectors of the base toy have 16.*dimensions: null"),
    ],
)
def test_what_does_not_go_together(named: str, settings: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        find_base(EmbeddingParams(**{"base": named} | settings))
