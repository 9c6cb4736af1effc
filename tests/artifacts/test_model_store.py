"""Models are found by name: shipped ones first, then the user's."""

from pathlib import Path

import pytest

from lexveil import paths
from lexveil.artifacts import model_store
from lexveil.artifacts.model import Model
from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.errors import RequestError


def test_the_user_s_folder_and_its_own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEXVEIL_HOME")
    assert paths.user_data().name == "lexveil" and paths.user_data().is_absolute()
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path))
    assert paths.user_data() == tmp_path


@pytest.mark.usefixtures("outside")
def test_a_model_of_the_user_is_found_after_the_shipped_ones(
    packaged: PackagedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert model_store.find("toy").hash == packaged.hash
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "toy").symlink_to(packaged.folder)
    monkeypatch.setattr(paths, "MODELS", tmp_path / "shipped")
    assert model_store.find("toy").folder == tmp_path / "shipped" / "toy"


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("name", ["toi", "../toy", "own", ""])
def test_a_name_that_none_has(name: str) -> None:
    with pytest.raises(RequestError, match=r"there are .*toy, own"):
        model_store.find(name)


@pytest.mark.usefixtures("outside")
def test_own_is_of_a_project() -> None:
    with pytest.raises(RequestError, match="is in no project"):
        Model.load(name="own")
