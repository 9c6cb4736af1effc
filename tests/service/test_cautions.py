"""A service that hides little says so when it starts."""

import pytest

from lexveil.core.accounting.expected_recovery import BandRecovery, Meaning, MeaningAt
from lexveil.faces.service import server
from lexveil.faces.service.cautions import caution_of_meaning
from lexveil.faces.service.rewriting import TextRewriter
from lexveil.faces.service.terms import Terms
from lexveil.faces.service.warm_model import WarmModel
from lexveil.release.ledger.ledger import Ledger

TEM = ("--mechanism", "tem", "--strategy", "S3")


@pytest.mark.parametrize(
    ("options", "warns"),
    [
        ((*TEM, "--epsilon", "10"), True),  # a token of a short text gets 20
        ((*TEM, "--epsilon", "5"), False),
        ((), False),
        (("--protection", "light"), False),
        ((*TEM, "--max-token-epsilon", "15"), False),
        ((*TEM, "--max-token-epsilon", "16"), True),
        (("--max-token-epsilon", "9"), True),  # with tem_context
    ],
)
def test_more_than_light_is_said_before_it_serves(
    options,
    warns,
    outside,
    cli,
    monkeypatch,
):
    monkeypatch.setattr(server, "serve", lambda _: 0)
    home = outside.parent / "home"
    with Ledger.open(home / "ledger", anchor=home / "ledger-anchor.json") as ledger:
        ledger.set_cap(1e6, "of the test")
    said = cli("service", "--model", "en", *options).err
    assert ("CAUTION: " in said and "the level light" in said) == warns


@pytest.mark.parametrize(("epsilon", "warns"), [(500.0, True), (0.5, False)])
def test_a_worker_that_leaves_words_as_they_are_says_so(epsilon, warns, outside, logged):
    """The caution is computed on public texts, for a model without figures too."""
    fixed = {"mechanism": "tem", "strategy": "S3", "epsilon": epsilon}
    TextRewriter(Terms(model="toy", fixed=fixed), WarmModel.find("toy")).warm_up()
    assert ("WARNING CAUTION: hardly a word of public texts" in logged.text) == warns


def test_what_is_worked_out_later_is_judged_by_content_words():
    def meaning(content):
        shares = {"function": (0.5, 0.9), "frequent": (0.3, content), "rare": (0.2, content)}
        bands = {
            name: BandRecovery(share_of_words=part, recovered=named, low=0, high=1, unchanged=0)
            for name, (part, named) in shares.items()
        }
        return Meaning(at=[MeaningAt(epsilon=1.0, bands=bands, bound=None)], sentences=[])

    assert caution_of_meaning(None) is None and caution_of_meaning(meaning(0.5)) is None
    assert "to name 51 of 100 content words" in str(caution_of_meaning(meaning(0.51)))
