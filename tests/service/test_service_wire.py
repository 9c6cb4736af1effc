"""Bytes on a connection whose request has two ends, and the log about requests."""

import json
import socket
import threading

import pytest
from uvicorn import Config, Server

from lexveil.base.errors import LexveilError
from lexveil.base.logs import logger, messages_to

LOG = logger("lexveil.made_for_this_test")
CHUNKED = "Transfer-Encoding: chunked"
BODY = json.dumps({"texts": ["The fire burned."]})
CHUNKS = f"{len(BODY):x}\r\n{BODY}\r\n0\r\n\r\n"


@pytest.fixture
def port(service):
    """Port of a listening service."""
    config = Config(
        service(allowed_host=("*",)).app,
        port=0,
        lifespan="off",
        log_config=None,
        server_header=False,
    )
    listening = config.bind_socket()
    listening.listen()
    server = Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(600)


@pytest.mark.parametrize(
    ("lengths", "status", "is_closed"),
    [
        ([CHUNKED], b"200", False),
        ([CHUNKED, "Content-Length: 5"], b"400", True),
        (["Content-Length: 5", CHUNKED], b"400", True),
        (["Content-Length: 5", "Content-Length: 6"], b"400", True),
    ],
)
def test_a_request_with_two_ends_is_refused_and_its_connection_closed(
    port, lengths, status, is_closed
):
    """A proxy before the service could take another end than the service does."""
    head = "\r\n".join(
        ["POST /v1/inspect HTTP/1.1", "Host: a", "Content-Type: application/json", *lengths]
    )
    with socket.create_connection(("127.0.0.1", port), timeout=600) as connection:
        connection.sendall(f"{head}\r\n\r\n{CHUNKS}".encode())
        answer = connection.makefile("rb")
        assert answer.readline().split()[1] == status
        headers = dict(line.lower().split(b": ", 1) for line in iter(answer.readline, b"\r\n"))
        assert (headers.get(b"connection") == b"close\r\n") == is_closed
        answer.read(
            int(headers[b"content-length"])
        ) if b"content-length" in headers else answer.read()
        if is_closed:
            assert answer.read() == b""
        else:
            connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert answer.readline().split()[1] == b"200"


def test_no_count_of_a_request_is_logged(service, logged, monkeypatch):
    """No error message contains a count, and no message to the operator about subjects that look
    alike or about lists.
    """
    client = service()
    asked = {"texts": ["The fire burned."] * 2, "subjects": ["Ann Lee", "ann lee"]}
    assert client.post("/v1/privatize", json=asked).status_code == 200
    assert not [line for line in logged.messages if "differ" in line]
    # what the engine tells may count a text's words
    with messages_to(client.app.state.rewriter._say):
        LOG.info("near words: computing lists of 4,096 words")
        LOG.info("near words: computing lists of 8,192 words")
    assert [line for line in logged.messages if "near words" in line] == [
        "near words: computing lists of # words"
    ]

    def failing(*_, **__):
        raise LexveilError("text 4,711: more than 16 Mi characters; divide it")

    monkeypatch.setattr("lexveil.faces.service.rewriting.privatize_texts", failing)
    assert client.post("/v1/privatize", json=asked).status_code == 503
    assert "ERROR text #: more than # Mi characters; divide it" in logged.text
