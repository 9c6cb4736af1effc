"""A service that writes sentences of a bank: its answers, what they cost and disclose, and what it
refuses.
"""

import json
import os
from pathlib import Path

import httpx
import jsonschema
import numpy as np
import pytest
from starlette.testclient import TestClient

from benchmarks.service import running
from lexveil.base.errors import RequestError
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.faces.service.app import create_app
from lexveil.faces.service.rewriting import TextRewriter
from lexveil.faces.service.terms import Terms, fixed_settings
from lexveil.faces.service.warm_model import WarmModel
from lexveil.io.artifacts.sentence_banks import open_bank
from tests.privatization.sentence_banks import SENTENCES, build_bank
from tests.same_noise import SameAnswers
from tests.service.conftest import charges

TEXTS = ["The food was cold. Nobody came! We left early.", None, "Great film, see it."]
OTHERS = ["x", None, "One. Two. Three. Four, five and six are far too many for me."]
ADDRESS = "/v1/privatize"


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    return build_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture
def sentences(outside, bank):
    """Makes a service of sentences; ``fixed`` beside strategy, bank and epsilon."""

    def make(model="en", **fixed):
        of_bank = {"mechanism": "tem", "strategy": "S5", "bank": str(bank), "epsilon": 10.0}
        terms = Terms(
            model=model, fixed=fixed_settings(of_bank | fixed), allowed_host=("testserver",)
        )
        rewriter = TextRewriter(terms, WarmModel.find(model))
        rewriter.warm_up()
        return TestClient(create_app(rewriter))

    return make


def answered(client, texts=TEXTS, **more):
    answer = client.post(ADDRESS, json={"texts": texts} | more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def n_written(text):
    parts = text.split(". ")
    assert {f"{part.rstrip('.')}." for part in parts} <= {*SENTENCES}
    return len(parts)


def test_a_text_becomes_sentences_of_the_bank(sentences):
    texts = answered(sentences(sentences="3"))["texts"]
    assert [text and n_written(text) for text in texts] == [3, None, 3]


def test_each_sentence_becomes_one(sentences):
    texts = answered(sentences(unit="sentence"))["texts"]
    assert [text and n_written(text) for text in texts] == [3, None, 1]


def test_purposes_hold_in_a_service(sentences):
    record = answered(sentences("en+sentiment=3"))["record"]
    assert record["sentences"]["diameter"] == pytest.approx(2 * 10**0.5)


def test_each_sentence_that_is_written_is_charged(sentences, ledger):
    answered(sentences(sentences="3"), subjects=["ann", "ann", "ben"])
    ((_, state, n_subjects, nano),) = charges(ledger)
    assert (state, n_subjects, nano) == ("committed", 2, 60 * 10**9)


def test_the_record_is_that_of_a_release_of_sentences(
    sentences,
):
    record = answered(sentences())["record"]
    schema = Path(__file__).parents[2] / "docs/record.schema.json"
    jsonschema.validate(record, json.loads(schema.read_text()))
    assert record["guarantee"]["formula"] == "Pr[M(D)=y] <= exp(4·ε·d(D,D'))·Pr[M(D')=y]"
    assert record["sentences"]["per_text"] == 4


def test_an_inspection_counts_sentences_and_charges_nothing(sentences, ledger):
    answer = sentences().post("/v1/inspect", json={"texts": TEXTS})
    inspection = answer.json()["inspection"]
    assert inspection["by_class"]["sentence"]["perturbed"] == 8
    assert inspection["budget"]["document_budget"] == 40.0
    assert not ledger.exists()


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        pytest.param({"strategy": "S5", "mechanism": "tem"}, None, id="the same"),
        pytest.param({"epsilon": 11.0}, "fixed", id="another epsilon"),
        pytest.param({"strategy": "S1"}, "fixed", id="words"),
        pytest.param({"stopwords": "keep"}, "fixed", id="of words"),
        pytest.param({"bank": "/etc"}, "invalid", id="a folder of the operator"),
    ],
)
def test_all_is_fixed(sentences, settings, code):
    answer = sentences().post(ADDRESS, json={"texts": TEXTS, "settings": settings})
    assert answer.json().get("error", {"code": None})["code"] == code


def test_sentences_are_served_where_the_operator_fixed_them_alone(service, ledger):
    settings = {"strategy": "S5", "mechanism": "tem", "epsilon": 1.0}
    answer = service(fixed={}).post(ADDRESS, json={"texts": ["a"], "settings": settings})
    wrong = {
        "field": "settings.strategy",
        "message": "the service accepts this setting only from its operator",
    }
    assert answer.json()["error"]["fields"] == [wrong]
    assert charges(ledger) == []


def test_a_bank_that_is_not_there_stops_the_start(sentences):
    with pytest.raises(RequestError, match="is no bank of sentences"):
        sentences(bank="nowhere")


def test_what_is_answered_is_a_function_of_the_output(
    sentences,
    outside,
    monkeypatch,
    tmp_path,
):
    """Two sources that have nothing in common but the number of texts, and draws that answer both
    alike: answers are the same byte by byte.
    """
    same = SameAnswers(monkeypatch)
    monkeypatch.setattr(SentenceDraws, "noise", lambda _, e, __: np.zeros((len(e), 4), np.uint64))
    monkeypatch.setattr(
        SentenceDraws, "replace_queries", lambda _, __, of, *___: same._answers(len(of))
    )
    answers = []
    for number, texts in enumerate((TEXTS, OTHERS)):
        monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / f"home-{number}"))
        client = sentences()
        same.restart()
        answer = client.post(ADDRESS, json={"texts": texts})
        assert answer.status_code == 200
        answers.append((answer.content, answer.headers.raw))
    assert answers[0] == answers[1]


def test_the_bank_is_opened_once(sentences, monkeypatch):
    client = sentences()
    monkeypatch.setattr("lexveil.io.artifacts.default_bank.open_bank", None)
    answered(client)


def test_no_text_stands_in_the_log(sentences, logged):
    answered(sentences(), ["The zanzibarsecret was cold."])
    assert "zanzibar" not in logged.text


def test_a_model_that_is_kept_tells_purposes_from_none(outside, bank):
    """The hash of the model without its purposes, to which the bank belongs, is not that with
    them.
    """
    model = WarmModel.find("en+sentiment=3")
    assert model.reference("S3").name == "en+sentiment=3"
    assert len(open_bank(bank, model)) == len(SENTENCES)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(("--bank", "x"), "for sentences; add --strategy S5", id="no strategy"),
        pytest.param(
            ("--strategy", "S5", "--max-token-epsilon", "5"), "--max-token-epsilon", id="of words"
        ),
        pytest.param(
            ("--strategy", "S5", "--mechanism", "tem_context"),
            "replaces only words",
            id="mechanism",
        ),
        pytest.param(("--strategy", "S5", "--bank", "x"), "is no bank of sentences", id="no bank"),
    ],
)
def test_a_service_that_cannot_write_sentences_does_not_start(options, said, outside, cli):
    told = r"(using the model.*\ncharging the ledger.*\n)?"
    assert said in cli("service", "--model", "en", *options, code=2, told=told).err


@pytest.mark.slow
def test_a_service_of_sentences_starts_answers_and_ends(outside, tmp_path, bank):
    """The bank is named from where the operator stands, whatever folder the service works in."""
    place = os.path.relpath(bank, tmp_path)
    options = ("--model", "en", "--strategy", "sentence", "--epsilon", "5", "--bank", place)
    with running(tmp_path / "home", *options, log=tmp_path / "log") as started:
        answer = httpx.post(
            f"http://127.0.0.1:{started.port}{ADDRESS}", json={"texts": TEXTS}, timeout=300
        )
        assert started.stop() == 0
    assert [text and n_written(text) for text in answer.json()["texts"]] == [4, None, 4]
