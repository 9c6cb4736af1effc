"""The model en as it ships: sound, screened, and small."""

import numpy as np
import pytest

from lexveil import paths
from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.data.model_verification import verify_folder
from lexveil.embeddings.scaling import scaled
from lexveil.modelling.screening import listed_slurs, own
from lexveil.text.screens import has_slur, unlike_a_word

EN = PackagedModel(paths.MODELS / "en")


def test_every_number_and_hash_of_it_is_right() -> None:
    card = verify_folder(EN.folder)
    assert card.name == "en" and card.license == "CC-BY-4.0"
    assert sum(file.stat().st_size for file in EN.folder.rglob("*") if file.is_file()) <= 15e6


def test_its_screens_hold() -> None:
    assert EN.card.parameters["model"]["min_documents"] >= 30
    slurs, plain = listed_slurs(), own("plain_words.txt")
    assert [token for token in EN.tokens if unlike_a_word(token) or has_slur(token, slurs, plain)] == []
    words = {token for token in EN.tokens if "_" not in token}
    assert all(words.issuperset(token.split("_")) for token in EN.tokens)


def test_it_says_of_what_it_is() -> None:
    names = {source.name for source in EN.card.sources}
    assert "ami-icsi-meetings" not in names and len(names) == 13
    notice = (EN.folder / "NOTICE.md").read_text(encoding="utf-8")
    assert all(name in notice for name in names)
    assert "no explicit licence text seen" in notice  # the basis of the complaints is stated


def test_it_knows_everyday_words_and_is_good_enough() -> None:
    words = ("please", "password", "invoice", "refund", "new_york", "credit_card", "as_soon_as", "i_don't_know")
    assert set(words) <= set(EN.tokens)
    assert EN.card.quality["similarity"]["wordsim353"]["spearman"] >= 0.55


def test_used_directly_its_rare_words_are_short_and_a_training_has_its_own_lengths() -> None:
    direct, trained = EN.space("mst"), EN.space("mst", as_trained=True)
    lengths, before = (np.linalg.norm(space.vectors, axis=1) for space in (direct, trained))
    # (count + half) ^ 0.2 of that of the first, and the mean length of an occurrence stays.
    ratio = (direct.counts[-1] + 0.5) / (direct.counts[0] + 0.5)
    assert lengths[-1] / lengths[0] == pytest.approx(ratio**0.2, rel=1e-4)
    assert direct.counts @ lengths == pytest.approx(direct.counts @ before, rel=1e-5)
    np.testing.assert_allclose(direct.vectors, scaled(trained, "frequency").vectors, rtol=1e-5, atol=1e-6)
