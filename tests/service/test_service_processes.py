"""A service of real processes: it starts, answers, loses workers, and ends when it is asked to."""

import importlib.util
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from benchmarks.service import Asked, ask, killing, running, unpaid
from flows.prefect_server import free_port
from lexveil import Ledger, Model, RequestError
from lexveil.faces.service.rewriting import check_start
from lexveil.faces.service.terms import Terms

pytestmark = pytest.mark.slow

SETTINGS = {"mechanism": "madlib", "strategy": "S1", "epsilon": 20.0}


def test_what_is_answered_is_paid_also_when_workers_are_killed(outside, tmp_path):
    home = tmp_path / "home"
    log = tmp_path / "log"
    with Ledger.open(home / "ledger", anchor=home / "ledger-anchor.json") as ledger:
        ledger.set_cap(1e6, "of the test")
    with running(
        home, "--model", "toy", "--max-token-epsilon", "40", "--workers", "2", log=log
    ) as service:
        with killing(service, 0.5, 1, most=2) as killed:
            asked = ask(service.port, 3, [1, 5], 0.0, "load", at_least=12, settings=SETTINGS)
            while not killed:
                time.sleep(0.05)
        # who was killed is replaced
        after = ask(service.port, 2, [1], 0.0, "after", at_least=4, settings=SETTINGS)
        numbers = httpx.get(f"http://127.0.0.1:{service.port}/metrics", timeout=300).text
        assert service.stop() == 0
    assert unpaid(service.ledger, asked) == [] and unpaid(service.ledger, after) == []
    assert (
        'route="/v1/privatize",status="200"' in numbers
        and "headache" not in log.read_text() + numbers
    )
    # The check can say no.
    unknown = Asked(answers=[("20261122T000000-00000000", 1)])
    assert unpaid(service.ledger, unknown) != []


def test_at_a_stop_new_connections_are_refused_and_what_is_begun_is_answered(outside, tmp_path):
    fixed = ("--mechanism", "tem", "--strategy", "S3", "--epsilon", "20")
    body = b'{"texts": ["The fire burned."]}'
    headers = ("Host: localhost", "Content-Type: application/json", "Expect: 100-continue")
    head = "\r\n".join(["POST /v1/privatize HTTP/1.1", *headers, f"Content-Length: {len(body)}"])
    with running(tmp_path / "home", "--model", "toy", *fixed, log=tmp_path / "log") as service:
        address = ("127.0.0.1", service.port)
        with socket.create_connection(address, timeout=600) as begun:
            begun.sendall(f"{head}\r\n\r\n".encode())
            answer = begun.makefile("rb")
            # a worker has the request, and waits for its body
            assert [answer.readline() for _ in range(2)] == [b"HTTP/1.1 100 Continue\r\n", b"\r\n"]
            service.process.send_signal(signal.SIGTERM)
            assert is_refused(address), (tmp_path / "log").read_text()
            assert service.process.poll() is None
            begun.sendall(body)
            assert answer.readline().split()[1] == b"200"
        assert service.process.wait(600) == 0


def is_refused(address):
    """Return whether an address comes to refuse connections."""
    for _ in range(300):
        try:
            socket.create_connection(address, timeout=600).close()
        except ConnectionRefusedError:
            return True
        time.sleep(0.1)
    return False


def test_a_service_that_cannot_serve_does_not_start(outside, tmp_path, cli):
    for options, said in (
        (["--model", "nowhere"], "nowhere"),
        (["--model", "toy", "--max-token-epsilon", "9"], "has no cap yet"),
        (["--model", "toy", "--host", "0.0.0.0"], "--keys"),
        (["--keys", str(tmp_path / "none.json")], "lexveil service key add"),
        (["--model", "toy", "--subjects", "by-key"], "--keys"),
        (["--model", "toy", "--project", str(tmp_path / "nowhere")], "--project"),
        (["--mechanism", "none"], "none"),
    ):
        assert said in cli("service", *options, code=2, told=r"(using the model.*\n)?").err, options
    with pytest.raises(RequestError, match="requests may choose any epsilon"):
        check_start(Terms(model="toy", fixed={"mechanism": "tem"}), Model.load(name="toy"))


def test_what_its_workers_cannot_do_ends_it(outside):
    """The service ends with the message of the command line, and with the exit code of a wrong
    request.
    """
    fixed = ["--model", "toy", "--mechanism", "tem", "--strategy", "S1", "--recovery", "1e-4"]
    command = [
        sys.executable,
        "-m",
        "lexveil.faces.cli",
        "service",
        "--port",
        str(free_port()),
        *fixed,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert (
        "lexveil service: recovery 0.0001 of all words: a reader who sees no output" in ended.stderr
    )
    assert (
        "ask for a higher level, or another band (--band" in ended.stderr
        and "could not start" in ended.stderr
    )


def test_keys_are_made_listed_and_removed(tmp_path, cli):
    file = str(tmp_path / "keys.json")
    key = cli("service", "key", "add", "billing", "--keys", file).out.strip()
    assert (
        "billing" in (shown := cli("service", "key", "list", "--keys", file).out)
        and key not in shown
    )
    for code in (0, 2):
        cli("service", "key", "remove", "billing", "--keys", file, code=code)
    cli("service", "--keys", file, "--model", "toy", code=2)  # nobody could ask


def test_without_its_libraries_it_says_what_brings_them(monkeypatch, cli):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *a: None if name == "fastapi" else find(name, *a)
    )
    assert "pip install 'lexveil[service]'" in cli("service", code=2).err
