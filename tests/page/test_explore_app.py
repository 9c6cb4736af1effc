"""The page without a browser: who is let in, what is shown, and that it is what the command that it
prints does."""

import html
import json
import re
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from lexveil import Model
from lexveil.faces.cli import options
from lexveil.faces.cli.main import main
from lexveil.faces.service.gate import TOKEN_HEADER
from lexveil.faces.service.page import readers
from lexveil.faces.service.page.drawing import ExploreSession
from lexveil.faces.service.page.form import MOST, SAMPLES, Form
from lexveil.faces.service.page.pages import Row, Shown, create_page
from lexveil.faces.service.server import Quiet
from lexveil.io.request import FileRequest, Request
from lexveil.release.settings import resolve_settings
from tests.tasks.changing import change_params

TOKEN = "a-token-of-this-test"
ROW = "The zanzibarsecret burned down."
HOUSE = {"text": "The house burned.", "mechanism": "tem", "strategy": "S1"}
ROW_0 = "/api/sample?sample=row:0"


@pytest.fixture
def client(outside):
    """The page's client, who knows the token."""
    shown = Shown([Row(ROW, column="body")], "my file.csv", "body", options.command_of)
    app = create_page(ExploreSession("toy"), TOKEN, shown)
    return TestClient(app, base_url="http://127.0.0.1", headers={TOKEN_HEADER: TOKEN})


def test_nobody_is_let_in_without_the_token_or_by_another_name(client):
    for method, path in (
        ("GET", "/"),
        ("GET", f"/?token={TOKEN[:-1]}"),
        ("GET", ROW_0),
        ("POST", "/api/draws"),
    ):
        for token in ("", TOKEN[1:]):
            refused = client.request(method, path, headers={TOKEN_HEADER: token})
            assert refused.status_code == 401 and "zanzibar" not in refused.text
    assert client.get(f"/?token={TOKEN}", headers={TOKEN_HEADER: ""}).status_code == 200
    assert client.get("/").status_code == 401  # the page itself by its address alone
    assert client.get(f"/?token={TOKEN}", headers={"host": "evil.example"}).status_code == 400


def test_browsers_are_told_to_load_nothing_else_and_to_keep_nothing(client):
    page = client.get(f"/?token={TOKEN}")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert (
        page.headers["cache-control"] == "no-store"
        and page.headers["referrer-policy"] == "no-referrer"
    )
    assert "<script>" not in page.text and " style=" not in page.text
    for address in re.findall(r'(?:src|href|hx-post|hx-get)="([^"#]+)"', page.text):
        assert re.match(r"(static|api)/", address)
        if address.startswith("static/"):
            assert client.get(f"/{address}").status_code == 200


def test_rows_are_listed_without_their_text(client):
    listed = client.get(f"/?token={TOKEN}").text
    assert f">row 1 ({len(ROW)} characters)</option>" in listed and "zanzibar" not in listed
    assert ROW in client.get(ROW_0).text


def test_a_text_is_cut_and_drawn(client):
    shown = client.post(
        "/api/draws", data={"text": ROW, "mechanism": "tem", "strategy": "S1", "draws": "2"}
    )
    assert shown.status_code == 200 and shown.text.count("<article") == 2
    assert "zanzibarsecret<span" in shown.text and "This row is private" in shown.text
    assert (
        "lexveil privatize &#39;my file.csv&#39; -o OUT --protection balanced --mechanism tem"
        in shown.text
    )
    public = client.post("/api/draws", data={"text": next(iter(SAMPLES.values()))})
    assert (
        "public sample" in public.text
        and "is private" not in public.text
        and "box warn" not in public.text
    )
    own = client.post("/api/draws", data={"text": "something else"})
    assert "not one of the public samples" in own.text


def test_the_page_says_of_its_draws_what_inspect_says_of_texts(client):
    """The page omits the budget of short texts if a level gives each token its epsilon."""
    text = "The minister said the government was there."
    fields = HOUSE | {"text": text, "budget": "epsilon", "epsilon": "200", "draws": "4"}
    shown = client.post("/api/draws", data=fields).text
    assert "of the content words of a draw 100% are unchanged (median)" in shown
    assert (
        "4 of 4 draws with content words are" in shown
        and "CAUTION: a tenth of the draws keep 100%" in shown
    )
    assert "tokens get the largest epsilon of a token, 400, and leave some of the budget" in shown
    level = client.post("/api/draws", data=HOUSE).text
    assert (
        "of the content words of a draw" in level and "the largest epsilon of a token" not in level
    )


def test_no_text_becomes_part_of_the_page_as_markup(client):
    shown = client.post(
        "/api/draws",
        data={"text": "<script>alert('x')</script> & <b>", "oov": "keep", "punctuation": "keep"},
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
        (HOUSE | {"budget": "recovery", "recovery": "0.0001"}, "ask for a higher level"),
    ],
)
def test_errors_say_what_to_do(client, fields, said, capfd):
    refused = client.post("/api/draws", data={"text": ROW} | fields)
    assert refused.status_code == 422 and said in refused.text
    assert "zanzibarsecret" not in refused.text + "".join(capfd.readouterr())


def test_a_token_says_what_it_becomes_and_what_a_reader_guesses_and_nothing_is_left_behind(
    client,
    outside,
    capfd,
    caplog,
):
    fields = HOUSE | {"text": "The house of zanzibarsecret.", "epsilon": "20", "token": "1"}
    detail = client.post("/api/token", data=fields)
    assert (
        detail.status_code == 200
        and "of 500 draws" in detail.text
        and "Nearest neighbours" in detail.text
    )
    shares = [float(share) for share in re.findall(r'class="number">([\d.]+)%', detail.text)]
    assert shares and shares == sorted(shares, reverse=True) and sum(shares) <= 100.5
    guesses = client.post("/api/guesses", data=fields)
    assert "likeliest first" in guesses.text and "(draw" in guesses.text
    expected = client.post("/api/expected", data=fields)
    assert "of rare ones" in expected.text
    assert client.post("/api/token", data=fields | {"token": "7"}).status_code == 422
    said = "".join(capfd.readouterr()) + "".join(
        Quiet("%(message)s").format(record) for record in caplog.records
    )
    assert "zanzibar" not in said and TOKEN not in said
    files = [file for file in (outside.parent / "home").rglob("*") if file.is_file()]
    assert not [file for file in files if "ledger" in str(file) or b"zanzibar" in file.read_bytes()]


TEXT = (
    "The Prime Minister said that the fire services of New South Wales are there, and the "
    "fire is over."
)
SEED = 7


@pytest.fixture(autouse=True)
def _forget():
    """Clear the caches of the readers, so that each test knows no other test's project."""
    for function in vars(readers).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


def page(model=None, shown=None):
    app = create_page(ExploreSession(model), TOKEN, shown or Shown(command=options.command_of))
    return TestClient(app, base_url="http://127.0.0.1", headers={TOKEN_HEADER: TOKEN})


def draw(client, fields, text=TEXT):
    """The page's answer as a browser shows it: markup, but characters for their names."""
    return html.unescape(
        client.post("/api/draws", data={"text": text, "seed": str(SEED)} | fields).text
    )


def parts_of(shown):
    """Return the words of the shown command, after `lexveil`."""
    (command,) = re.findall(r'<pre id="command"[^>]*>(.*?)</pre>', shown, re.DOTALL)
    program, *parts = shlex.split(command)
    assert program == "lexveil"
    return parts


def run(shown, *more, text=TEXT):
    """Run the command that is shown on a file of one text; what it writes is out.jsonl."""
    Path("one.jsonl").write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
    files = {"FILE": "one.jsonl", "OUT": "out.jsonl"}
    return int(main([*(files.get(part, part) for part in parts_of(shown)), *more]))


def seen_and_written(shown):
    """Run the command that is shown, as an experiment: its token log and record; the page's figures
    are theirs."""
    assert run(shown, "--seed", str(SEED)) == 0
    tokens = pq.read_table("out.jsonl.tokens.parquet").to_pylist()
    record = json.loads(Path("out.jsonl.record.json").read_text())
    spent = sum(token["epsilon"] for token in tokens)
    budget = float(record["document_budget"]["input"])
    for name, value in (("ε spent on the text, in each draw", spent), ("its budget", budget)):
        (said,) = re.findall(rf"<dt>{name}</dt><dd>([^<]*)</dd>", shown)
        assert value > 0 and float(said.replace(",", "")) == float(f"{value:.4g}")
    return tokens, record


ONE = {"strategy": "S1", "mechanism": "madlib", "epsilon": "4", "draws": "2"}


@pytest.mark.parametrize(
    "fields",
    [
        ONE | {"epsilon": "5.123456789012"},  # more digits than fit where they are shown
        ONE | {"average_words": "1234.5", "strategy": "S3"},
        ONE | {"average_words": "100", "max_token_epsilon": "4.000000125", "strategy": "S2"},
        ONE
        | {"average_words": "11", "consistent": "true", "keep_layout": "true", "stopwords": "drop"},
        ONE | {"mechanism": "tem", "strategy": "S4", "punctuation": "perturb", "oov": "keep"},
        {
            "strategy": "S1",
            "budget": "recovery",
            "recovery": "0.5",
            "average_words": "8",
            "max_token_epsilon": "3",
        },
    ],
)
def test_the_page_shows_what_the_command_gives(outside, fields):
    shown = draw(page("toy"), fields)
    # also where it was named when the page was opened
    assert parts_of(shown)[-2:] == ["--model", "toy"]
    tokens, record = seen_and_written(shown)
    rows = re.findall(
        r'<tr><th scope="row">.*?</th><td>(.*?)</td><td class="number">(.*?)</td>', shown
    )
    assert [name.replace("random", "sampled") for name, _ in rows] == [
        token["action"] for token in tokens
    ]
    assert [said for _, said in rows] == [
        f"{token['epsilon']:.3g}" if token["epsilon"] else "" for token in tokens
    ]
    # Exactly, and the first draw is that very experiment.
    form = Form.of(text=TEXT, seed=str(SEED), **fields)
    drawing = ExploreSession("toy").draw(
        form, None if form.request.recovery is None else record["base_epsilon"]
    )
    assert [token.epsilon for token in drawing.tokens] == [token["epsilon"] for token in tokens]
    assert drawing.budget.total == record["document_budget"]["input"]
    output = drawing.draws[0].output
    assert json.loads(Path("out.jsonl").read_text())["text"] == output
    assert f'<p class="output">{output}</p>' in re.sub(r"</?span[^>]*>", "", shown)


def test_defaults_are_those_of_the_project(project):
    change_params(release={"average_words": 30.0, "max_token_epsilon": 1.5})
    shown = draw(page(), {"strategy": "S1", "budget": "recovery", "recovery": "0.5"})
    seen_and_written(shown)
    assert '<dd class="small dim">at most 1.5</dd>' in shown


TEM = {"strategy": "S1", "mechanism": "tem", "epsilon": "500"}
PAPER = {"mechanisms": {"truncated_gumbel": {"calibration": "paper"}}}


@pytest.mark.parametrize(
    ("sections", "fields", "said"),
    [
        (PAPER, ONE | {"mechanism": "truncated_gumbel"}, "no guarantee can be given"),
        (
            {"ledger": {"keys": "plain"}},
            ONE,
            "the ledger would store each text without a subject as its own key",
        ),
        (
            {"ledger": {"cap": 0.5, "on_exhausted": "refuse"}},
            ONE,
            "the cap of 0.5 epsilon per subject",
        ),
        ({"release": {"max_recovery": 0.2}}, TEM, "release.max_recovery allows 20.0%"),
        (
            {"release": {"max_recovery": 0.2, "shares": {"stopwords": 0.5}}},
            TEM,
            "recovery is not known",
        ),
    ],
)
def test_what_a_release_refuses_the_page_says_in_its_words(
    project,
    capsys,
    monkeypatch,
    sections,
    fields,
    said,
):
    monkeypatch.setattr("lexveil.readers.public_words.WORDS_OF_A_BAND", 300)
    change_params(**sections)
    client = page()
    shown = draw(client, fields)
    if "is being worked out" in shown:  # it takes long to say
        assert 'hx-post="api/release"' in shown and "would be refused:" not in shown
        said_by_page = html.unescape(client.post("/api/release", data={"text": TEXT} | fields).text)
    else:
        assert "; as a release this would be refused" in shown
        said_by_page = shown
    assert "As a release this would be refused:" in said_by_page
    capsys.readouterr()
    assert run(shown) == 2
    words = capsys.readouterr().err.splitlines()[-1].partition(": ")[2]
    # as the page calls them
    fields_of = {options.option_name(field): field for field in FileRequest.model_fields}
    names = re.sub("--[a-z-]+", lambda option: fields_of[option[0]], words)
    assert said in words and names in said_by_page
    assert run(shown, "--seed", "1") == 0  # so the draws are there


def test_a_text_that_its_cap_withholds_is_said_to_be_withheld(project):
    change_params(ledger={"cap": 0.5})
    shown = draw(page(), ONE)
    assert "As a release this would be refused:" in shown and "the text would be withheld" in shown
    assert run(shown) == 1 and Path("out.jsonl").read_text() == ""


def test_an_output_that_is_stamped_is_said_to_be(project):
    change_params(release={"without_guarantee": True}, **PAPER)
    shown = draw(page(), ONE | {"mechanism": "truncated_gumbel"})
    assert "As a release this would have no guarantee:" in shown and "would be refused" not in shown
    assert run(shown) == 0 and Path("out.no-guarantee.jsonl").exists()
    assert "no guarantee:" not in draw(page(), ONE)


def test_its_figures_speak_of_the_words_that_levels_speak_of(client):
    """Content words, in both; and a menu has the width of its longest entry."""
    page = client.get(f"/?token={TOKEN}").text
    assert re.search(r"balanced: 20 of 100 content words", page)
    answer = client.post("/api/expected", data=HOUSE | {"budget": "epsilon", "epsilon": "9"}).text
    assert "% of content words" in answer and "% of words" not in answer
    of_level = {"mechanism": "tem", "strategy": "S1", "protection": "light"}
    settings = resolve_settings(Request.of(of_level), Model.load(name="toy"))
    assert (level := settings.protection) is not None
    data = {"text": HOUSE["text"], "budget": "protection", **of_level}
    shown = client.post("/api/expected", data=data).text
    # the same figure as that of the level
    assert f"{100 * level.content:.1f}% of content words, {level.reader}" in shown
    style = client.get("/static/explore.css").text
    assert re.search(r"\.choice select \{ grid-column: 1 / -1;", style)
