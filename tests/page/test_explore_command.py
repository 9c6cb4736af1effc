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


def run(shown: str, *more: str, text: str = TEXT) -> int:
    """Run the command that is shown on a file of one text; what it writes is out.jsonl."""
    Path("one.jsonl").write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
    files = {"FILE": "one.jsonl", "OUT": "out.jsonl"}
    return int(main([*(files.get(part, part) for part in command_of(shown)), *more]))


def seen_and_written(shown: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run the command that is shown, as an experiment: its token log and record; the page's figures are theirs."""
    assert run(shown, "--seed", str(SEED)) == 0
    tokens = pq.read_table("out.jsonl.tokens.parquet").to_pylist()
    record = json.loads(Path("out.jsonl.record.json").read_text())
    spent, budget = sum(token["epsilon"] for token in tokens), float(record["document_budget"]["input"])
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
        ONE | {"average_words": "11", "consistent": "true", "keep_layout": "true", "stopwords": "drop"},
        ONE | {"mechanism": "tem", "strategy": "S4", "punctuation": "perturb", "oov": "keep"},
        {"strategy": "S1", "budget": "recovery", "recovery": "0.5", "average_words": "8", "max_token_epsilon": "3"},
    ],
)
def test_the_page_shows_what_the_command_gives(outside: Path, fields: dict[str, str]) -> None:
    shown = draw(page("toy"), fields)
    assert command_of(shown)[-2:] == ["--model", "toy"]  # also where it was named when the page was opened
    tokens, record = seen_and_written(shown)
    rows = re.findall(r'<tr><th scope="row">.*?</th><td>(.*?)</td><td class="number">(.*?)</td>', shown)
    assert [name.replace("random", "sampled") for name, _ in rows] == [token["action"] for token in tokens]
    assert [said for _, said in rows] == [f"{token['epsilon']:.3g}" if token["epsilon"] else "" for token in tokens]
    # Exactly, and the first draw is that very experiment.
    form = Form.of(text=TEXT, seed=str(SEED), **fields)
    drawing = ExploreSession("toy").draw(form, None if form.request.recovery is None else record["base_epsilon"])
    assert [token.epsilon for token in drawing.tokens] == [token["epsilon"] for token in tokens]
    assert drawing.budget.total == record["document_budget"]["input"]
    output = drawing.draws[0].output
    assert json.loads(Path("out.jsonl").read_text())["text"] == output
    assert f'<p class="output">{output}</p>' in re.sub(r"</?span[^>]*>", "", shown)


def of_project(**sections: dict[str, Any]) -> None:
    params = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    for section, values in sections.items():
        params[section] |= values
    Path("params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def test_defaults_are_those_of_the_project(project: Path) -> None:
    of_project(release={"average_words": 30.0, "max_token_epsilon": 1.5})
    shown = draw(page(), {"strategy": "S1", "budget": "recovery", "recovery": "0.5"})
    seen_and_written(shown)
    assert '<dd class="small dim">at most 1.5</dd>' in shown


TEM = {"strategy": "S1", "mechanism": "tem", "epsilon": "500"}
PAPER = {"mechanisms": {"truncated_gumbel": {"calibration": "paper"}}}


@pytest.mark.parametrize(
    ("sections", "fields", "said"),
    [
        (PAPER, ONE | {"mechanism": "truncated_gumbel"}, "no guarantee can be given"),
        ({"ledger": {"keys": "plain"}}, ONE, "the ledger would name texts by themselves"),
        ({"ledger": {"cap": 0.5, "on_exhausted": "refuse"}}, ONE, "the cap of 0.5 epsilon per subject"),
        ({"release": {"max_recovery": 0.2}}, TEM, "release.max_recovery allows 20.0%"),
        ({"release": {"max_recovery": 0.2, "shares": {"stopwords": 0.5}}}, TEM, "recovery is not known"),
    ],
)
def test_what_a_release_refuses_the_page_says_in_its_words(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    sections: dict[str, Any],
    fields: dict[str, str],
    said: str,
) -> None:
    monkeypatch.setattr(engine, "FEW", 300)
    of_project(**sections)
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
    fields_of = {options.option_name(field): field for field in FileRequest.model_fields}  # as the page calls them
    names = re.sub("--[a-z-]+", lambda option: fields_of[option[0]], words)
    assert said in words and names in said_by_page
    assert run(shown, "--seed", "1") == 0  # so the draws are there


def test_a_text_that_its_cap_withholds_is_said_to_be_withheld(project: Path) -> None:
    of_project(ledger={"cap": 0.5})
    shown = draw(page(), ONE)
    assert "As a release this would be refused:" in shown and "it would be withheld" in shown
    assert run(shown) == 1 and Path("out.jsonl").read_text() == ""


def test_an_output_that_is_stamped_is_said_to_be(project: Path) -> None:
    of_project(release={"without_guarantee": True}, **PAPER)
    shown = draw(page(), ONE | {"mechanism": "truncated_gumbel"})
    assert "As a release this would have no guarantee:" in shown and "would be refused" not in shown
    assert run(shown) == 0 and Path("out.no-guarantee.jsonl").exists()
    assert "no guarantee:" not in draw(page(), ONE)


def test_a_text_without_spaces_is_not_drawn(outside: Path) -> None:
    texts = [TEXT, CHINESE]
    client = page("toy", Shown([Row(text, "", n, "body") for n, text in enumerate(texts, 1)], "some.csv", "body"))
    refused = client.post("/api/draws", data={"text": CHINESE} | ONE)
    assert refused.status_code == 422 and "row 2: `body` is in Chinese script" in html.unescape(refused.text)
    assert CHINESE not in refused.text


def test_another_language_is_said(outside: Path) -> None:
    (text,) = german_texts(1, sentences=20)
    assert "looks like German (function words de " in draw(page("toy"), ONE, text)
    assert "looks like" not in draw(page("toy"), ONE, next(iter(SAMPLES.values())))


def test_what_detectors_find_has_a_name(project: Path) -> None:
    Path("names.txt").write_text("[PERSON]\nzanzibar\n[CODE]\nAB-12\n", encoding="utf-8")
    of_project(policy={"protect": "names.txt", "types": {"CODE": "digits"}})
    client, fields = page(), {"text": "The zanzibar has AB-12.", "token": "1"} | ONE
    shown = client.post("/api/draws", data=fields)
    assert shown.status_code == 200 and "zanzibar<span" in shown.text
    assert ", placeholder</span>" in shown.text and ", digits</span>" in shown.text
    assert "replaced by its type" in client.post("/api/token", data=fields).text
