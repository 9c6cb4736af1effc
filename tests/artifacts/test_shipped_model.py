"""The model en as it ships: sound, screened, and small."""

from lexveil import paths
from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.data.model_verification import verify_folder
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


def test_it_knows_everyday_words_and_is_good_enough() -> None:
    words = ("please", "password", "invoice", "refund", "new_york", "credit_card", "as_soon_as", "i_don't_know")
    assert set(words) <= set(EN.tokens)
    assert EN.card.quality["similarity"]["wordsim353"]["spearman"] >= 0.55
