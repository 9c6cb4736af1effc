"""Answers of a service, and its charges by then."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest

from lexveil.release.engine.worker import BatchWorker
from lexveil.release.ledger.ledger import Ledger
from lexveil.release.ledger.transaction import Transaction
from lexveil.release.ledger.verification import verify
from tests.service.conftest import charges

SECRET = "zanzibarsecret"
TEXTS = ["The fire burned for days.", None, "The police were there."]


def test_an_answer_is_paid_and_has_texts_and_record(service, ledger):
    client = service()
    answer = client.post("/v1/privatize", json={"texts": TEXTS, "subjects": ["ann", "ann", "ben"]})
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    texts = answer.json()["texts"]
    record = answer.json()["record"]
    assert [text is None for text in texts] == [False, True, False]
    ((name, state, n_subjects, nano),) = charges(ledger)
    assert record["release"]["id"] == name and state == "committed" and n_subjects == 2
    # eight words, each at twice the base epsilon
    assert nano / 1e9 == pytest.approx((4 + 4) * 40.0)
    assert (
        record["mode"] == "release"
        and "operator" not in answer.text
        and "head" not in record["release"]
    )
    jsonschema.validate(
        record,
        json.loads(Path(__file__).parents[2].joinpath("docs/record.schema.json").read_text()),
    )


def test_requests_choose_what_is_not_fixed(service, ledger):
    client = service(fixed={"mechanism": "tem", "max_token_epsilon": 5.0})
    settings = {"strategy": "S1", "document_budget": 50.0, "consistent": True}
    answer = client.post("/v1/privatize", json={"texts": TEXTS[:1], "settings": settings})
    assert answer.status_code == 200
    record = answer.json()["record"]
    assert (record["strategy"], record["document_budget"]["input"]) == ("S1", 50.0)
    assert record["consistent"] and record["spent"]["max_token_epsilon"] == pytest.approx(5.0)
    for wrong, code in (
        ({"mechanism": "madlib"}, "fixed"),
        ({"max_token_epsilon": 9.0}, "fixed"),
        ({"document_budget": 1.0, "epsilon": 1.0}, "incomplete"),
        ({"document_budget": None}, "incomplete"),
    ):
        refused = client.post("/v1/privatize", json={"texts": ["a"], "settings": settings | wrong})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, code), wrong
    for own in (
        {"epsilon": 21.0},
        {"document_budget": 5.0},
        {"keep_layout": True},
        {"stopwords": "keep"},
    ):
        # where all is fixed
        refused = service().post("/v1/privatize", json={"texts": ["a"], "settings": own})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "fixed"), own
    assert len(charges(ledger)) == 1


def test_settings_that_are_refused_are_named_in_the_log_alone(service, logged, ledger):
    client = service(fixed={})
    # which has no guarantee
    settings = {"mechanism": "truncated_gumbel", "strategy": "S1", "epsilon": 1.0}
    refused = client.post("/v1/privatize", json={"texts": [SECRET], "settings": settings})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "refused")
    assert "guarantee" in logged.text and charges(ledger) == []
    # nobody has worked that out
    recovery = {"mechanism": "tem", "strategy": "S1", "recovery": 0.123}
    assert (
        client.post("/v1/privatize", json={"texts": ["a"], "settings": recovery}).status_code == 422
    )


def fail(*_, **__):
    raise ValueError(f"cannot rewrite {SECRET}")


FAULTS = [(Transaction, "reserve", 503, "aborted"), (BatchWorker, "draw", 500, "failed")]


@pytest.mark.parametrize(
    "fault", [*FAULTS, (Transaction, "commit", 500, "failed")], ids=lambda fault: fault[1]
)
def test_a_fault_gives_no_text_and_after_the_charge_nothing_back(
    service,
    ledger,
    logged,
    monkeypatch,
    fault,
):
    place, method, status, state = fault
    client = service()
    is_charged = state == "failed"
    monkeypatch.setattr(place, method, fail)
    answer = client.post(
        "/v1/privatize", json={"texts": [f"The fire of {SECRET}."], "subjects": [SECRET]}
    )
    ((name, found, n_subjects, nano),) = charges(ledger)
    assert (answer.status_code, found, n_subjects, nano > 0) == (
        status,
        state,
        int(is_charged),
        is_charged,
    )
    error = answer.json()["error"]
    assert (error["charged"], error.get("charge")) == (is_charged, name if is_charged else None)
    assert SECRET not in answer.text + logged.text and "not shown" in logged.text
    assert (
        f"lexveil_charged_without_answer_total {float(is_charged)}" in client.get("/metrics").text
    )


def test_nothing_goes_out_that_the_ledger_has_not_heard_of(service, monkeypatch):
    """The test simulates settings that ask for an experiment, which has no ledger."""
    monkeypatch.setattr("lexveil.release.settings.Settings.mode", "experiment")
    answer = service().post("/v1/privatize", json={"texts": TEXTS})
    assert answer.status_code in (422, 503) and "texts" not in answer.json()


@pytest.mark.parametrize(
    "lose",
    [
        lambda ledger: (ledger / "ledger.sqlite").write_bytes(b"not a ledger"),
        lambda ledger: (ledger / "ledger.sqlite").unlink(),
        lambda ledger: (ledger / "salt").unlink(),
        lambda ledger: ledger.rename(ledger.with_name("elsewhere")),
    ],
    ids=["replaced", "removed", "without salt", "moved away"],
)
def test_without_its_ledger_a_service_answers_nothing_and_is_not_well(service, ledger, lose):
    client = service()
    well = {"status": "ok", "version": "0.1.0", "ledger": "ok"}
    assert client.get("/v1/health").json() == well
    lose(ledger)
    answer = client.post("/v1/privatize", json={"texts": TEXTS})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    health = client.get("/v1/health")
    assert (health.status_code, health.json()["ledger"]) == (503, "failed")


@pytest.mark.parametrize(("own", "shown"), [(300.0, 300.0), (None, "unlimited")])
def test_inspecting_shows_the_cap_that_the_ledger_has(service, ledger, own, shown):
    client = service()
    before = client.post("/v1/inspect", json={"texts": TEXTS}).json()["inspection"]["budget"]
    assert before["cap"] is None and before["default_cap"] > 0
    with Ledger.open(ledger, anchor=None) as opened:
        opened.set_cap(own, "of the test")
    after = client.post("/v1/inspect", json={"texts": TEXTS}).json()["inspection"]["budget"]
    assert (after["cap"], after["default_cap"]) == (shown, None)


def test_it_is_ready_once_what_goes_before_requests_is_done(service):
    """Health answers meanwhile, and requests wait."""
    client = service()
    may_end = threading.Event()
    assert client.get("/v1/ready").json()["status"] == "ready"
    client.app.state.queue.begin(lambda: may_end.wait(600) and None)
    answer = client.get("/v1/ready")
    assert (answer.status_code, answer.json()["status"]) == (503, "starting")
    assert client.get("/v1/health").status_code == 200
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.post, "/v1/privatize", json={"texts": TEXTS})
        assert not asked.done()
        may_end.set()
        assert asked.result(600).status_code == 200
    assert client.get("/v1/ready").status_code == 200


def test_exhausted_subjects_get_nothing(service, ledger):
    """The ledger's own cap is ten document budgets, of which each of these texts takes one."""
    fixed = {"mechanism": "tem", "strategy": "S3", "document_budget": 1.0, "max_token_epsilon": 1.0}
    client = service(fixed=fixed)
    texts = ["The fire burned."] * 11
    answer = client.post("/v1/privatize", json={"texts": texts, "subjects": ["ann"] * 11}).json()
    assert [text is None for text in answer["texts"]] == [False] * 10 + [True]
    refused = client.post(
        "/v1/privatize", json={"texts": texts[:1], "subjects": ["ann"], "on_exhausted": "refuse"}
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "exhausted")
    assert [state for _, state, _, _ in charges(ledger)] == ["committed", "aborted"] and verify(
        ledger
    ).holds
    assert "lexveil_texts_withheld_total 1.0" in client.get("/metrics").text


def test_inspecting_charges_nothing(service, ledger):
    answer = service().post("/v1/inspect", json={"texts": TEXTS})
    seen = answer.json()["inspection"]
    assert answer.status_code == 200 and (seen["rows"], seen["texts"]) == (3, 2)
    assert seen["budget"]["max_token_epsilon"] == 40.0 and charges(ledger) == []
    assert seen["tried"]["documents"]["documents"] == 2
    assert any("of the content words of a text" in line for line in answer.json()["in_words"])


@pytest.mark.parametrize(
    ("unknown", "field", "message"),
    [
        ({"sujects": []}, "body", "sujects: there is no such field; did you mean subjects?"),
        ({"epsilon": 1.0}, "epsilon", "epsilon: this field belongs into settings"),
        (
            {"settings": {"epsilonn": 1.0}},
            "settings",
            "epsilonn: there is no such field; did you mean epsilon?",
        ),
        (
            {"settings": {"subjects": []}},
            "settings.subjects",
            "subjects: this field belongs outside of settings",
        ),
        (
            {"settings": {"detector": "presidio"}},
            "settings",
            "detector: the operator chooses this setting, and no request can",
        ),
        (
            {SECRET: 1},
            "body",
            "there is no such field; the fields are texts, settings, subjects, on_exhausted",
        ),
    ],
)
def test_an_unknown_field_is_named_where_its_name_is_a_word_of_ours(
    service, unknown, field, message
):
    answer = service().post("/v1/privatize", json={"texts": ["a"], **unknown})
    assert answer.status_code == 422
    assert answer.json()["error"]["fields"] == [{"field": field, "message": message}]


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ('{"texts": ["a"], "texts": ["b"]}', "texts"),
        ('{"texts": ["a"], "\\u0074exts": ["b"]}', "texts"),
        ('{"texts": ["a"], "subjects": ["ana"], "subjects": ["ana"]}', "subjects"),
        ('{"texts": ["a"], "settings": {"epsilon": 1, "epsilon": 2}}', "epsilon"),
        ('{"settings": {}, "texts": ["a"], "settings": {"epsilon": 2}}', "settings"),
        ('{"texts": ["a"], "zanzibar": 1, "zanzibar": 2}', "body"),
        ('{"texts": [{"x": 1, "\\u0078": 2}]}', "body"),
    ],
)
def test_a_key_that_stands_twice_is_refused(service, ledger, content, field):
    client = service()
    for path in ("/v1/privatize", "/v1/inspect"):
        answer = client.post(path, content=content, headers={"content-type": "application/json"})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["charged"]) == (422, "invalid", False)
        message = "is repeated in an object; give it once"
        assert error["fields"] == [{"field": field, "message": message}]
        assert "zanzibar" not in answer.text
    assert charges(ledger) == []


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"content-type": "text/plain"}, "not_json"),
        ({"content-type": "application/x-www-form-urlencoded"}, "not_json"),
        ({"content-type": ""}, "not_json"),
        ({"content-type": "application/json", "content-encoding": "gzip"}, "encoded"),
    ],
)
def test_a_body_that_is_not_said_to_be_json_is_refused_by_its_header(service, headers, code):
    answer = service().post("/v1/privatize", content='{"texts": ["a"]}', headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, code)


def test_probes_may_ask_for_the_head_alone(service):
    answer = service().head("/v1/health")
    assert answer.status_code == 200 and answer.content == b""
