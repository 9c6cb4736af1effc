"""Admission to the service by hosts, keys and sizes; refusals contain nothing from the
request.
"""

import asyncio
import contextlib
import json
import sqlite3
import threading
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from lexveil.base.errors import RequestError
from lexveil.faces.service.gate import RequestQueue, read_body
from lexveil.faces.service.keys import add_key, remove_key
from lexveil.faces.service.refusals import Refusal
from tests.german_texts import german_texts
from tests.service.conftest import charges

SECRET = "zanzibarsecret"
PATH = "/v1/privatize"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (f'{{"texts": ["{SECRET}"', 422),
        (f'{{"texts": [{{"{SECRET}": "{SECRET}"}}]}}', 422),
        (f'{{"{SECRET}": 1, "texts": ["a"]}}', 422),
        (f'{{"texts": ["a"], "settings": {{"mechanism": "{SECRET}"}}}}', 422),
        (f'{{"texts": ["a"], "settings": {{"epsilon": "{SECRET}"}}}}', 422),
        (f'{{"texts": ["a"], "settings": {{"seed": "{SECRET}"}}}}', 422),
        (f'{{"texts": ["{SECRET}"], "subjects": []}}', 422),
        (f'{{"texts": ["{SECRET}"], "subjects": [" "]}}', 422),
        (f'{{"texts": ["{SECRET}\\ud800"]}}', 422),
        (f'{{"texts": ["{SECRET}\\u0000"]}}', 422),
        (f'{{"texts": ["a"], "subjects": ["{SECRET}\\n"]}}', 422),
        (f'{{"texts": ["{SECRET}"], "settings": {{"epsilon": NaN}}}}', 422),
        (f'{{"texts": ["{SECRET}"], "settings": {{"epsilon": {"9" * 5000}}}}}', 400),
        ("[" * 100_000 + f'"{SECRET}"', 400),
    ],
)
def test_no_answer_or_log_holds_what_was_sent(
    service,
    ledger,
    logged,
    capfd,
    content,
    status,
):
    client = service()
    answer = client.post(
        f"{PATH}?{SECRET}={SECRET}", content=content, headers={"content-type": "application/json"}
    )
    assert answer.status_code == status and answer.json()["error"]["charged"] is False
    assert answer.json()["error"]["code"] in ("invalid", "malformed")
    said = answer.text + str(answer.headers) + logged.text + "".join(capfd.readouterr())
    assert SECRET not in said + client.get("/metrics").text and charges(ledger) == []
    assert f"POST {PATH} {status}" in logged.text


def test_a_good_request_leaves_no_word_in_logs_and_metrics(service, logged, capfd):
    client = service()
    texts = [f"The {SECRET} burned.", *german_texts(3)]
    assert client.post(PATH, json={"texts": texts, "subjects": [SECRET] * 4}).status_code == 200
    assert client.post("/v1/inspect", json={"texts": texts}).status_code == 200
    assert client.get(f"/v1/{SECRET}").status_code == 404 and client.put(PATH).status_code == 405
    said = logged.text + client.get("/metrics").text + "".join(capfd.readouterr())
    assert SECRET not in said and "German" not in said
    assert logged.text.count("POST /v1/privatize 200") == 1


def test_a_text_without_spaces_is_the_clients_fault(service, ledger, logged, capfd):
    client = service()
    text = "这家餐厅的服务非常好，下次还会再来。"
    for path in (PATH, "/v1/inspect"):
        error = client.post(path, json={"texts": ["The fire burned.", None, text]}).json()["error"]
        assert (error["code"], error["charged"]) == ("invalid", False)
        expected = {
            "field": "texts.2",
            "message": "the text has a script without spaces between words (Chinese)",
        }
        assert error["fields"] == [expected]
    assert {(state, n_subjects) for _, state, n_subjects, _ in charges(ledger)} == {("aborted", 0)}
    said = logged.text + "".join(capfd.readouterr())
    assert logged.text.count("WARNING a text in a script") == 2
    assert "Chinese" not in said and not set(text) & set(said)


@pytest.mark.parametrize(
    "host", [f"{SECRET}.example", f"testserver@{SECRET}", f"testserver.{SECRET}", "[::1", ""]
)
def test_other_names_of_this_machine_are_refused(service, ledger, host):
    client = service()
    for method, path in (("GET", "/v1/health"), ("POST", PATH), ("GET", "/nothing")):
        answer = client.request(method, path, headers={"host": host}, json={"texts": ["a fire"]})
        assert (answer.status_code, answer.text) == (400, "Invalid host header")
        assert answer.headers["cache-control"] == "no-store"
    assert charges(ledger) == []
    allowed = client.get(
        "/v1/health", headers={"host": "TESTSERVER:8080", "origin": "http://a.example"}
    )
    assert allowed.status_code == 200 and "access-control-allow-origin" not in allowed.headers


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        pytest.param("*", "a.example", 200, id="any name"),
        pytest.param("*.example", "a.example", 200, id="any name of a domain"),
        pytest.param("*.example", "a.test", 400, id="another domain"),
        pytest.param("a.example", "[::1]:8750", 200, id="this machine"),
    ],
)
def test_names_are_those_that_are_allowed(service, allowed, host, status):
    client = service(allowed_host=(allowed,))
    assert client.get("/v1/health", headers={"host": host}).status_code == status


def test_a_name_with_a_star_inside_is_refused(service):
    with pytest.raises(ValueError, match=r"a\*b: write \* alone, or \*\. before a name"):
        service(allowed_host=("a*b",))


class Asked:
    """A service with a key of a client, and one for its metrics, and what it answers."""

    def __init__(self, service, folder):
        self.file = folder / "keys.json"
        self.key = add_key(self.file, "billing")
        self.metrics = add_key(self.file, "watch", "metrics")
        self.client = service(keys=str(self.file))

    def status(self, path, authorization):
        """Status of a request."""
        headers = {}
        if authorization is not None:
            headers["Authorization"] = authorization.encode("latin-1")
        method = "POST" if path == PATH else "GET"
        answer = self.client.request(method, path, json={"texts": ["a fire"]}, headers=headers)
        return int(answer.status_code)


@pytest.fixture
def asked(service, tmp_path):
    return Asked(service, tmp_path)


def test_keys_are_kept_private_and_not_in_clear(asked):
    assert asked.key not in asked.file.read_text()
    assert asked.file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(None, id="no header"),
        pytest.param("", id="an empty header"),
        pytest.param("Bearer", id="no key"),
        pytest.param("Bearer {key}x", id="a longer key"),
        pytest.param("Bearer {shorter}", id="a shorter key"),
        pytest.param("Basic {key}", id="another scheme"),
        pytest.param("Bearer é", id="no ASCII"),
    ],
)
def test_nobody_without_a_key_is_served(asked, wrong, ledger):
    if wrong is not None:
        wrong = wrong.format(key=asked.key, shorter=asked.key[:-1])
    paths = (PATH, "/metrics", "/v1/openapi.json")
    assert {path: asked.status(path, wrong) for path in paths} == dict.fromkeys(paths, 401)
    assert charges(ledger) == []


def test_health_is_told_without_a_key(asked):
    assert asked.status("/v1/health", None) == 200


def test_keys_say_who_may_ask_for_what(asked, ledger):
    client = f"Bearer {asked.key}"
    watch = f"bearer {asked.metrics}"
    assert (asked.status(PATH, client), asked.status("/metrics", client)) == (200, 403)
    assert (asked.status(PATH, watch), asked.status("/metrics", watch)) == (403, 200)
    assert len(charges(ledger)) == 1


def test_a_removed_key_is_refused_at_once(asked):
    remove_key(asked.file, "billing")
    assert asked.status(PATH, f"Bearer {asked.key}") == 401


@pytest.mark.parametrize(
    ("spoil", "advice"),
    [
        (lambda file: file.chmod(0o666), "chmod go-w"),  # anybody could let himself in
        (lambda file: file.unlink(), "restore the file, or make one by `lexveil service key add"),
        (lambda file: file.write_text("{}}"), "make one by `lexveil service key add`"),
    ],
    ids=["writable", "missing", "broken"],
)
def test_without_its_keys_a_service_lets_nobody_in_and_says_why(
    service, tmp_path, logged, spoil, advice
):
    file = tmp_path / "keys7.json"
    headers = {"Authorization": f"Bearer {add_key(file, 'billing')}"}
    client = service(keys=str(file))
    spoil(file)
    answer = client.post(PATH, json={"texts": ["a fire"]}, headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (503, "no_keys")
    assert "cannot read its file of API keys" in error["message"] and str(file) not in answer.text
    assert f"ERROR {file}: " in logged.text and advice in logged.text


@pytest.mark.parametrize("name", ["billing", "", "a/b", "(no keys)", "a b", "x" * 65])
def test_names_of_keys_are_new_and_plain(tmp_path, name):
    assert add_key(tmp_path / "keys.json", "billing") != add_key(tmp_path / "keys.json", "other")
    with pytest.raises(RequestError):
        add_key(tmp_path / "keys.json", name)


@pytest.mark.parametrize(
    ("mode", "asked", "n_charged"),
    [
        ("shared", [("a", "7.0"), ("ab", "7")], 1),  # spelled alike for the ledger
        ("by-key", [("a", "7"), ("ab", "7")], 2),
        # one name after the other
        ("by-key", [("a", "bc"), ("ab", "c"), ("ab", "/c"), ("a", "b/c")], 4),
    ],
)
def test_subjects_are_one_or_each_keys_own(
    service,
    tmp_path,
    ledger,
    mode,
    asked,
    n_charged,
):
    file = tmp_path / "keys.json"
    headers = {name: {"Authorization": f"Bearer {add_key(file, name)}"} for name in ("a", "ab")}
    client = service(keys=str(file), subjects=mode, require_subjects=True)
    for name, subject in asked:
        answer = client.post(
            PATH, json={"texts": ["a fire"], "subjects": [subject]}, headers=headers[name]
        )
        assert answer.status_code == 200
    assert client.post(PATH, json={"texts": ["a fire"]}, headers=headers["a"]).status_code == 422
    with contextlib.closing(sqlite3.connect(ledger / "ledger.sqlite")) as con:
        assert con.execute("select count(*) from balances").fetchall() == [(n_charged,)]
        opened = con.execute(
            "select payload from entries where kind = 'opened' order by seq"
        ).fetchall()
    assert [json.loads(payload)["about"]["client"] for (payload,) in opened] == [
        name for name, _ in asked
    ]


@pytest.mark.parametrize("mode", ["shared", "by-key"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The fire was under control.", "The fire was under control."),
        ("The fire was under control.", "the  FIRE was under control ."),
        ("The\u00a0fire was  under control.\n", "The fire was under control."),
    ],
)
def test_by_key_no_client_learns_what_another_has_sent(service, tmp_path, mode, first, second):
    """One client spends all of a text's budget; what the other gets for the same text is what it
    gets for one that nobody has sent."""
    file = tmp_path / "keys.json"
    headers = {name: {"Authorization": f"Bearer {add_key(file, name)}"} for name in ("a", "b")}
    fixed = {"mechanism": "tem", "strategy": "S1", "document_budget": 60.0}
    client = service(keys=str(file), subjects=mode, fixed=fixed)
    once = client.post(PATH, json={"texts": [first]}, headers=headers["a"])
    record = once.json()["record"]
    copies = int(record["release"]["cap"] / record["spent"]["most"]) - 1  # amounts are rounded up

    def ask(name, text):
        body = {"texts": [text] * copies, "on_exhausted": "refuse"}
        return int(client.post(PATH, json=body, headers=headers[name]).status_code)

    client.post(PATH, json={"texts": [first] * copies}, headers=headers["a"])
    assert ask("a", first) == 409
    assert ask("b", "The control was under fire.") == 200
    assert ask("b", second) == (409 if mode == "shared" else 200)
    # Within one client equal texts have one budget still.
    assert ask("b", second) == 409


def test_sizes_are_limited(service, ledger):
    client = service(max_texts=3, max_bytes=200)
    assert client.post(PATH, json={"texts": ["a"] * 4}).json()["error"]["code"] == "too_many_texts"
    # of no announced length
    answer = client.post(PATH, content=iter([b'{"texts": ["' + b"a" * 200, b'"]}']))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert client.post(PATH, json={"texts": ["a" * 200]}).status_code == 413
    assert charges(ledger) == []


def test_a_body_that_is_too_large_is_not_read_to_its_end():
    endless = AsyncMock(
        return_value={"type": "http.request", "body": b"x" * 100, "more_body": True}
    )
    with pytest.raises(Refusal, match="too_large"):
        asyncio.run(read_body(endless, 1000))
    assert endless.await_count == 11


def test_more_than_can_wait_are_sent_away():
    here, gone = (
        SimpleNamespace(is_disconnected=AsyncMock(return_value=has_left))
        for has_left in (False, True)
    )

    async def story():
        turns = RequestQueue(1, 0.05)
        held = threading.Event()
        running = asyncio.create_task(turns.take(here, lambda: held.wait(600)))
        await asyncio.sleep(0.01)
        waiting = asyncio.create_task(turns.take(here, lambda: None))
        await asyncio.sleep(0.01)
        for refused in (turns.take(here, lambda: None), waiting):
            with pytest.raises(Refusal, match="busy"):
                await refused
        held.set()
        assert await running
        with pytest.raises(Refusal, match="busy"):
            await turns.take(gone, lambda: pytest.fail("nobody would read it"))
        assert await turns.take(here, lambda: 7) == 7

    asyncio.run(story())


def test_probes_fill_no_log(service, logged, monkeypatch):
    """An answer of a probe is logged once, until its status is another one."""
    client = service()
    for _ in range(5):
        assert client.get("/v1/ready").status_code == 200
        assert client.get("/v1/health").status_code == 200
        client.post("/v1/inspect", json={"texts": ["The fire burned."]})
    assert logged.text.count("/v1/ready 200") == logged.text.count("/v1/health 200") == 1
    assert logged.text.count("/v1/inspect 200") == 5
    monkeypatch.setattr(RequestQueue, "is_ready", False)
    assert client.get("/v1/ready").status_code == client.get("/v1/ready").status_code == 503
    assert logged.text.count("/v1/ready 503") == 1
