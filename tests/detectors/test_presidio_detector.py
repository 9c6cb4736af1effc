"""Presidio's pattern recognizers, without a model and without a network."""

import socket

import pytest

pytest.importorskip("presidio_analyzer")

from lexveil.detectors.presidio import Presidio
from lexveil.errors import RequestError

TEXT = "Mail ann@example.com or call 212-555-0123; card 4111 1111 1111 1111. Version 3.14."


def found(detector: Presidio) -> set[tuple[str, str]]:
    (spans,) = detector.find([TEXT])
    return {(TEXT[span.start : span.end], span.type) for span in spans}


def test_patterns_need_no_model_and_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the detector opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    spans = found(Presidio())
    assert {("ann@example.com", "EMAIL_ADDRESS"), ("212-555-0123", "PHONE_NUMBER")} <= spans
    assert ("4111 1111 1111 1111", "CREDIT_CARD") in spans
    assert not any("3.14" in text for text, _ in spans)


def test_only_what_is_asked_for_is_found() -> None:
    assert found(Presidio(entities=("EMAIL_ADDRESS",))) == {("ann@example.com", "EMAIL_ADDRESS")}


def test_what_presidio_does_not_look_for_is_refused() -> None:
    with pytest.raises(RequestError, match="finds no SHOE_SIZE"):
        Presidio(entities=("SHOE_SIZE",)).check()


def test_its_name_says_the_version_and_no_folder() -> None:
    assert Presidio(spacy_model="/home/ann/models/en").name.endswith("(patterns and en)")
