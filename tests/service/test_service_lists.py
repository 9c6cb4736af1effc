"""Nobody learns from the service, without paying, what stands on the operator's lists."""

import pytest

from lexveil import Model
from tests.service.conftest import SETTINGS


@pytest.fixture
def words(outside):
    """Two words that the model knows, of which one is listed."""
    tokens = [token for token in Model.load(name="toy").embedding("S1").tokens if token.isalpha()]
    first, second = sorted(tokens, key=len)[-2:]
    return first, second


@pytest.mark.parametrize("action", ["placeholder", "drop", "sample", "perturb", "digits"])
@pytest.mark.parametrize("listed", [0, 1, None])
def test_inspection_is_the_same_whichever_word_is_listed(service, outside, words, action, listed):
    """One word, several, in capitals, and a phrase; all counts and sentences but those of draws."""
    (outside / "protect.txt").write_text(
        "[NAME]\nzorblax\n" + ("" if listed is None else f"{words[listed]}\n"), encoding="utf-8"
    )
    fixed = SETTINGS | {"protect": str(outside / "protect.txt"), "types": {"NAME": action}}
    client = service(fixed=fixed)
    plain = service()
    for text in (words[0], f"{words[0].upper()} {words[1]}", f"the {words[1]}.", "zorblax"):
        found = [of.post("/v1/inspect", json={"texts": [text]}).json() for of in (client, plain)]
        assert [counted(one) for one in found[:1]] == [counted(one) for one in found[1:]]


def counted(answer):
    """An answer without what was drawn in it."""
    inspection = dict(answer["inspection"])
    return {name: value for name, value in inspection.items() if name not in ("tried", "examples")}


def test_an_answer_that_is_paid_for_still_keeps_to_the_list(service, outside, words):
    (outside / "protect.txt").write_text(f"[NAME]\n{words[0]}\n", encoding="utf-8")
    client = service(fixed=SETTINGS | {"protect": str(outside / "protect.txt")})
    answer = client.post("/v1/privatize", json={"texts": [words[0]]}).json()
    assert answer["texts"] == ["[NAME]"]
