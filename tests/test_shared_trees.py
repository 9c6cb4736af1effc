"""What tests share is watched: each change is named, once."""

from pathlib import Path

import pytest

from tests import shared_trees


def test_a_change_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_trees, "_shared", {})
    (tmp_path / "folder").mkdir()
    for name in ("kept", "rewritten", "removed"):
        (tmp_path / "folder" / name).write_text("1")
    shared_trees.share(tmp_path)
    assert shared_trees.changes() == []
    (tmp_path / "folder" / "rewritten").write_text("22")
    (tmp_path / "folder" / "removed").unlink()
    (tmp_path / ".added").mkdir()
    named = {str(Path(path).relative_to(tmp_path)) for path in shared_trees.changes()}
    assert named == {"folder", "folder/rewritten", "folder/removed", ".added"}
    assert shared_trees.changes() == []


def test_a_project_beside_writes_nothing_there(_built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = shared_trees.stand_beside(_built, tmp_path / "beside", monkeypatch)
    assert (root / "artifacts/embeddings/gst/words.txt").read_bytes()
    (root / "artifacts/embeddings/gst/words.txt").unlink()
    (root / "data/documents/other.parquet").touch()
    assert shared_trees.changes() == []
