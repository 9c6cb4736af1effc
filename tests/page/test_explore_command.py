"""What the page shows is what the command that it prints does: the same epsilon, and the same refusals in its words."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from starlette.testclient import TestClient

from lexveil import paths
from lexveil.cli import options
from lexveil.cli.main import main
from lexveil.privatization.engine import engine
from lexveil.request import FileRequest
from lexveil.service.gate import TOKEN_HEADER
from lexveil.service.page import readers
from lexveil.service.page.drawing import ExploreSession
from lexveil.service.page.form import SAMPLES, Form
from lexveil.service.page.pages import Row, Shown, create_page
from tests.german_texts import german_texts

TOKEN = "a-token-of-this-test"
TEXT = "The Prime Minister said that the fire services of New South Wales are there, and the fire is over."
CHINESE = "这家餐厅的服务非常好，下次还会再来。"
SEED = 7


@pytest.fixture(autouse=True)
def _forget() -> None:
    """Let each test ask a process of its own, which knows no other test's project."""
    for function in vars(readers).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


def page(model: str | None = None, shown: Shown | None = None) -> TestClient:
    app = create_page(ExploreSession(model), TOKEN, shown or Shown(command=options.command_of))
    return TestClient(app, base_url="http://127.0.0.1", headers={TOKEN_HEADER: TOKEN})


def draw(client: TestClient, fields: dict[str, str], text: str = TEXT) -> str:
    """The page's answer as a browser shows it: markup, but characters for their names."""
    return html.unescape(client.post("/api/draws", data={"text": text, "seed": str(SEED)} | fields).text)


def command_of(shown: str) -> list[str]:
    """What the command that is shown says, after `lexveil`."""
    (command,) = re.findall(r'<pre id="command"[^>]*>(.*?)</pre>', shown, re.DOTALL)
    program, *parts = shlex.split(command)
    assert program == "lexveil"
    return parts


def figure(shown: str, name: str) -> str:
    (value,) = re.findall(rf"<dt>{name}</dt><dd>([^<]*)</dd>", shown)
    return str(value).strip()


def number(shown: str) -> float:
    return float(shown.replace(",", ""))


def most(shown: str) -> str:
    """What a token gets at most."""
    (value,) = re.findall(r'<dd class="small dim">at most ([^<]*)</dd>', shown)
    return str(value)


def run(parts: list[str], text: str, *more: str, column: str = "text") -> int:
    """Run a command on a file of one text; what it writes is out.jsonl."""
    Path("one.jsonl").write_text(json.dumps({column: text}) + "\n", encoding="utf-8")
    parts = ["one.jsonl" if part == "FILE" else "out.jsonl" if part == "OUT" else part for part in parts]
    return int(main([*parts, *more]))


ONE = {"strategy": "S1", "mechanism": "madlib", "epsilon": "4", "draws": "2"}


@pytest.mark.parametrize(
    "fields",
    [
        ONE | {"epsilon": "5.123456789012"},  # more digits than fit where they are shown
        ONE | {"average_words": "1234.5", "strategy": "S3"},
        ONE | {"average_words": "100", "max_token_epsilon": "4.000000125", "strategy": "S2"},
        ONE | {"average_words": "11", "consistent": "true", "keep_layout": "true", "stopwords": "drop"},
        ONE | {"mechanism": "tem", "strategy": "S4", "punctuation": "perturb", "oov": "keep"},
        {"strategy": "S1", "budget": "recovery", "recovery": "0.5", "average_words": "8", "max_token_epsilon": "3"},
    ],
)
def test_the_page_shows_what_the_command_gives(outside: Path, fields: dict[str, str]) -> None:
    shown = draw(page("toy"), fields)
    parts = command_of(shown)
    assert parts[-2:] == ["--model", "toy"]  # also where it was named when the page was opened
    assert run(parts, TEXT, "--seed", str(SEED)) == 0
    tokens = pq.read_table("out.jsonl.tokens.parquet").to_pylist()
    record = json.loads(Path("out.jsonl.record.json").read_text())
    # As it is shown: the table token by token, and the figures.
    rows = re.findall(r'<tr><th scope="row">.*?</th><td>(.*?)</td><td class="number">(.*?)</td>', shown)
    assert [epsilon for _, epsilon in rows] == [
        f"{token['epsilon']:.3g}" if token["epsilon"] else "" for token in tokens
    ]
    assert [name.replace("random", "sampled") for name, _ in rows] == [token["action"] for token in tokens]
    spent = sum(token["epsilon"] for token in tokens)
    budget = float(record["document_budget"]["input"])
    assert spent > 0 and number(figure(shown, "ε spent on the text, in each draw")) == float(f"{spent:.4g}")
    assert number(figure(shown, "its budget")) == float(f"{budget:.4g}")
    # Exactly.
    form = Form.of(text=TEXT, seed=str(SEED), **fields)
    found = None
    if form.request.recovery is not None:
        found = float(record["base_epsilon"])
    drawing = ExploreSession("toy").draw(form, found)
    assert [token.epsilon for token in drawing.tokens] == [token["epsilon"] for token in tokens]
    assert (drawing.spent, drawing.budget.total) == (spent, float(record["document_budget"]["input"]))
    # The first draw is that very experiment.
    assert json.loads(Path("out.jsonl").read_text())["text"] == drawing.draws[0].output
    assert f'<p class="output">{drawing.draws[0].output}' == html.unescape(
        re.sub(r"</?span[^>]*>", "", re.findall(r'<p class="output".*?</p>', shown)[0]).removesuffix("</p>")
    )


def test_average_words_and_the_limit_change_what_is_spent(outside: Path) -> None:
    client = page("toy")
    plain, capped = (draw(client, ONE | more) for more in ({}, {"average_words": "9", "max_token_epsilon": "0.5"}))
    assert figure(capped, "its budget") == "36" and figure(plain, "its budget") != "36"
    assert "--average-words" not in command_of(plain) and "--max-token-epsilon" not in command_of(plain)
    assert command_of(capped)[command_of(capped).index("--average-words") + 1] == "9"
    assert most(plain) == "8" and most(capped) == figure(capped, "ε of a perturbed token") == "0.5"
    # What an empty field stands for is told, for the field to show.
    assert 'data-average-words="9"' in capped and 'data-max-token-epsilon="8"' in plain


def of_project(**sections: dict[str, Any]) -> None:
    params = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    for section, values in sections.items():
        params[section] |= values
    Path("params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def test_defaults_are_those_of_the_project(project: Path) -> None:
    of_project(release={"average_words": 30.0, "max_token_epsilon": 1.5})
    for fields in (ONE, {"strategy": "S1", "budget": "recovery", "recovery": "0.5"}):
        shown = draw(page(), fields)
        assert run(command_of(shown), TEXT, "--seed", str(SEED)) == 0
        record = json.loads(Path("out.jsonl.record.json").read_text())
        assert most(shown) == "1.5"
        assert number(figure(shown, "its budget")) == float(f"{record['document_budget']['input']:.4g}")
        tokens = pq.read_table("out.jsonl.tokens.parquet")["epsilon"].to_pylist()
        assert number(figure(shown, "ε spent on the text, in each draw")) == float(f"{sum(tokens):.4g}")
        for file in Path().glob("out.jsonl*"):
            file.unlink()


TEM = {"strategy": "S1", "mechanism": "tem", "epsilon": "500"}
PAPER = {"mechanisms": {"truncated_gumbel": {"calibration": "paper"}}}


@pytest.mark.parametrize(
    ("sections", "fields", "audit", "said"),
    [
        (PAPER, ONE | {"mechanism": "truncated_gumbel"}, False, "no guarantee can be given"),
        ({"ledger": {"keys": "plain"}}, ONE, False, "the ledger would name texts by themselves"),
        ({"ledger": {"cap": 0.5, "on_exhausted": "refuse"}}, ONE, False, "the cap of 0.5 epsilon per subject"),
        ({"release": {"max_recovery": 0.2}}, TEM, False, "release.max_recovery allows 20.0%"),
        ({"release": {"max_recovery": 0.2, "shares": {"stopwords": 0.5}}}, TEM, False, "recovery is not known"),
        ({}, ONE, True, "the last audit of madlib S1 found a violation"),
    ],
)
def test_what_a_release_refuses_the_page_says_in_its_words(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    sections: dict[str, Any],
    fields: dict[str, str],
    audit: bool,
    said: str,
) -> None:
    monkeypatch.setattr(engine, "FEW", 300)
    of_project(**sections)
    if audit:
        paths.AUDITS.mkdir(parents=True, exist_ok=True)
        parameters = dict(
            ExploreSession()
            .draw(Form.of(text=TEXT, mechanism="madlib", strategy="S1", epsilon="1"))
            .engine.prepared.parameters
        )
        violation = {"violation": True, "parameters": parameters}
        (paths.AUDITS / "madlib-S1-4.0.json").write_text(json.dumps(violation))
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
    assert run(command_of(shown), TEXT) == 2
    words = capsys.readouterr().err.splitlines()[-1].partition(": ")[2]
    fields_of = {options.option_name(field): field for field in FileRequest.model_fields}  # as the page calls them
    names = re.sub("--[a-z-]+", lambda option: fields_of[option[0]], words)
    assert said in words and names in said_by_page
    assert run(command_of(shown), TEXT, "--seed", "1") == 0  # so the draws are there


def test_a_text_that_its_cap_withholds_is_said_to_be_withheld(project: Path) -> None:
    of_project(ledger={"cap": 0.5})
    shown = draw(page(), ONE)
    assert "As a release this would be refused:" in shown and "it would be withheld" in shown
    assert run(command_of(shown), TEXT) == 1 and Path("out.jsonl").read_text() == ""


def test_an_output_that_is_stamped_is_said_to_be(project: Path) -> None:
    of_project(release={"without_guarantee": True}, **PAPER)
    shown = draw(page(), ONE | {"mechanism": "truncated_gumbel"})
    assert "As a release this would have no guarantee:" in shown and "would be refused" not in shown
    assert run(command_of(shown), TEXT) == 0 and Path("out.no-guarantee.jsonl").exists()
    assert "no guarantee:" not in draw(page(), ONE)


def test_a_text_without_spaces_is_not_drawn(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [TEXT, CHINESE]
    client = page("toy", Shown([Row(text, "", n, "body") for n, text in enumerate(texts, 1)], "some.csv", "body"))
    refused = client.post("/api/draws", data={"text": CHINESE} | ONE)
    Path("some.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in texts), encoding="utf-8")
    parts = command_of(draw(page("toy"), ONE))
    parts = ["some.jsonl" if part == "FILE" else "out.jsonl" if part == "OUT" else part for part in parts]
    capsys.readouterr()
    assert main([*parts, "--text-column", "body", "--seed", "1"]) == 2  # not even an experiment
    words = capsys.readouterr().err.splitlines()[-1].partition(": ")[2]
    assert words.startswith("row 2: `body` is in Chinese script")
    assert refused.status_code == 422 and words in html.unescape(refused.text) and CHINESE not in refused.text


def test_another_language_is_said(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = german_texts(1, sentences=20)
    shown = draw(page("toy"), ONE, text)
    capsys.readouterr()
    assert run(command_of(shown), text, "--seed", "1") == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "looks like" in line]
    assert line.removeprefix("the input ") in shown
    assert "looks like" not in draw(page("toy"), ONE, next(iter(SAMPLES.values())))


def test_what_detectors_find_has_a_name(project: Path) -> None:
    Path("names.txt").write_text("[PERSON]\nzanzibar\n[CODE]\nAB-12\n", encoding="utf-8")
    of_project(policy={"protect": "names.txt", "types": {"CODE": "digits"}})
    client, fields = page(), {"text": "The zanzibar has AB-12.", "token": "1"} | ONE
    shown = client.post("/api/draws", data=fields)
    assert shown.status_code == 200 and "zanzibar<span" in shown.text
    assert ", placeholder</span>" in shown.text and ", digits</span>" in shown.text
    assert "replaced by its type" in client.post("/api/token", data=fields).text
