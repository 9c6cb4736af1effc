"""The page without a browser: who is let in, what is shown and asked, by the toy model and its own background."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lexveil.cli.options import command_of
from lexveil.service.gate import TOKEN_HEADER
from lexveil.service.page.drawing import ExploreSession
from lexveil.service.page.form import MOST, SAMPLES
from lexveil.service.page.pages import Row, Shown, create_page
from lexveil.service.server import Quiet

TOKEN = "a-token-of-this-test"
ROW = "The zanzibarsecret burned down."
HOUSE = {"text": "The house burned.", "mechanism": "tem", "strategy": "S1"}
ROW_0 = "/api/sample?sample=row:0"


@pytest.fixture
def client(outside: Path) -> TestClient:
    """The page's client, who knows the token."""
    shown = Shown([Row(ROW, column="body")], "my file.csv", "body", command_of)
    app = create_page(ExploreSession("toy"), TOKEN, shown)
    return TestClient(app, base_url="http://127.0.0.1", headers={TOKEN_HEADER: TOKEN})


def test_nobody_is_let_in_without_the_token_or_by_another_name(client: TestClient) -> None:
    for method, path in (("GET", "/"), ("GET", f"/?token={TOKEN[:-1]}"), ("GET", ROW_0), ("POST", "/api/draws")):
        for token in ("", TOKEN[1:]):
            refused = client.request(method, path, headers={TOKEN_HEADER: token})
            assert refused.status_code == 401 and "zanzibar" not in refused.text
    assert client.get(f"/?token={TOKEN}", headers={TOKEN_HEADER: ""}).status_code == 200
    assert client.get("/").status_code == 401  # the page itself by its address alone
    assert client.get(f"/?token={TOKEN}", headers={"host": "evil.example"}).status_code == 400


def test_browsers_are_told_to_load_nothing_else_and_to_keep_nothing(client: TestClient) -> None:
    page = client.get(f"/?token={TOKEN}")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert page.headers["cache-control"] == "no-store" and page.headers["referrer-policy"] == "no-referrer"
    assert "<script>" not in page.text and " style=" not in page.text
    for address in re.findall(r'(?:src|href|hx-post|hx-get)="([^"#]+)"', page.text):
        assert re.match(r"(static|api)/", address)
        if address.startswith("static/"):
            assert client.get(f"/{address}").status_code == 200


def test_rows_are_listed_without_their_text(client: TestClient) -> None:
    listed = client.get(f"/?token={TOKEN}").text
    assert f">row 1 ({len(ROW)} characters)</option>" in listed and "zanzibar" not in listed
    assert ROW in client.get(ROW_0).text


def test_a_text_is_cut_and_drawn(client: TestClient) -> None:
    shown = client.post("/api/draws", data={"text": ROW, "mechanism": "tem", "strategy": "S1", "draws": "2"})
    assert shown.status_code == 200 and shown.text.count("<article") == 2
    assert "zanzibarsecret<span" in shown.text and "This row is private" in shown.text
    assert "lexveil privatize &#39;my file.csv&#39; -o OUT --protection balanced --mechanism tem" in shown.text
    public = client.post("/api/draws", data={"text": next(iter(SAMPLES.values()))})
    assert "public sample" in public.text and "private" not in public.text
    own = client.post("/api/draws", data={"text": "something else"})
    assert "not one of the public samples" in own.text


def test_a_purpose_is_kept_and_said(client: TestClient) -> None:
    """By name, of those that the page offers; the command keeps it, too."""
    assert re.search(r'"purpose".*?<option>sentiment</option>', client.get(f"/?token={TOKEN}").text, re.DOTALL)
    fields = HOUSE | {"budget": "epsilon", "epsilon": "6", "purpose": "sentiment"}
    shown = client.post("/api/draws", data=fields)
    assert shown.status_code == 200 and "--model toy+sentiment=1" in shown.text
    expected = client.post("/api/expected", data=fields).text
    assert "Less hidden, by the purpose sentiment=1: of 100 words" in expected


def test_no_text_becomes_part_of_the_page_as_markup(client: TestClient) -> None:
    shown = client.post(
        "/api/draws", data={"text": "<script>alert('x')</script> & <b>", "oov": "keep", "punctuation": "keep"}
    )
    assert shown.status_code == 200 and "<script" not in shown.text and "<b>" not in shown.text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"epsilon": "0"}, "epsilon must lie between 1e-09 and 1e+09"),
        ({"draws": "7"}, "draws: must be a whole number from 1 to 6"),
        ({"epsilon": "zanzibarsecret"}, "epsilon must be a number"),
        ({"mechanism": "zanzibarsecret"}, "mechanism must be one of"),
        ({"model": "toy+zanzibarsecret.tsv"}, "there is no model or purpose"),
        ({"purpose": "zanzibarsecret.tsv"}, "there is no model or purpose"),
        ({"text": "zanzibarsecret " * MOST}, "longer than 10,000"),
        ({"budget": "recovery", "recovery": "1"}, "between 0 (excluded) and 1"),
        (HOUSE | {"budget": "recovery", "recovery": "0.0001"}, "ask for more"),
    ],
)
def test_errors_say_what_to_do(
    client: TestClient, fields: dict[str, str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    refused = client.post("/api/draws", data={"text": ROW} | fields)
    assert refused.status_code == 422 and said in refused.text
    assert "zanzibarsecret" not in refused.text + "".join(capfd.readouterr())


def test_a_token_says_what_it_becomes_and_what_a_reader_guesses_and_nothing_is_left_behind(
    client: TestClient, outside: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    fields = HOUSE | {"text": "The house of zanzibarsecret.", "epsilon": "20", "token": "1"}
    detail = client.post("/api/token", data=fields)
    assert detail.status_code == 200 and "of 500 draws" in detail.text and "Nearest neighbours" in detail.text
    shares = [float(share) for share in re.findall(r'class="number">([\d.]+)%', detail.text)]
    assert shares and shares == sorted(shares, reverse=True) and sum(shares) <= 100.5
    guesses = client.post("/api/guesses", data=fields)
    assert "likeliest first" in guesses.text and "(draw" in guesses.text
    expected = client.post("/api/expected", data=fields)
    assert "of rare ones" in expected.text
    assert client.post("/api/token", data=fields | {"token": "7"}).status_code == 422
    said = "".join(capfd.readouterr()) + "".join(Quiet("%(message)s").format(record) for record in caplog.records)
    assert "zanzibar" not in said and TOKEN not in said
    files = [file for file in (outside.parent / "home").rglob("*") if file.is_file()]
    assert not [file for file in files if "ledger" in str(file) or b"zanzibar" in file.read_bytes()]
