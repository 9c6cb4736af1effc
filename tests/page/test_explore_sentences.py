"""The explore page of strategy S5: a text is shown as its units, and a unit with the sentences that
may take its place.
"""

import html
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.faces.cli import options
from lexveil.faces.cli.main import main
from lexveil.faces.service.gate import TOKEN_HEADER
from lexveil.faces.service.page.drawing import ExploreSession
from lexveil.faces.service.page.form import Form
from lexveil.faces.service.page.pages import Shown, create_page
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import open_bank, units_of_texts
from tests.privatization.sentence_banks import build_bank

TOKEN = "a-token-of-this-test"
TEXT = "The food was cold. Nobody came! We left early."


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    return build_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture(scope="module")
def opened(bank):
    return open_bank(bank, Model.load(name="en"))


@pytest.fixture
def client(outside):
    app = create_page(ExploreSession("en"), TOKEN, Shown(command=options.command_of))
    return TestClient(app, base_url="http://127.0.0.1", headers={TOKEN_HEADER: TOKEN})


def form(bank, **more):
    """The fields of a form, with all that the page sends empty."""
    empty = dict.fromkeys(("mechanism", "unit", "sentences", "stopwords", "average_words"), "")
    asked = {"text": TEXT, "strategy": "S5", "bank": str(bank), "budget": "epsilon"}
    return empty | asked | {"epsilon": "5", "draws": "2"} | more


def asked(client, path, fields):
    answer = client.post(f"/api/{path}", data=fields)
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


def test_a_text_is_one_unit_for_several_sentences(client, bank):
    shown = asked(client, "draws", form(bank, sentences="3"))
    assert shown.count('id="t') - shown.count('id="tokens"') == 2  # one, and where it is shown
    assert "2 draws of 1 tokens" in shown
    assert shown.count('class="out replaced"') == 1 + 2 * 3  # one of the legend


def test_each_sentence_is_a_unit(client, bank):
    shown = asked(client, "draws", form(bank, unit="sentence"))
    assert "2 draws of 3 tokens" in shown
    assert "ε of a sentence that is written" in shown


def test_a_unit_has_its_ten_likeliest_sentences_and_their_chances(client, bank, opened):
    detail = asked(client, "token", form(bank, token="0"))
    draws = SentenceDraws(opened.vectors, opened.space.radius)
    query = opened.space.embed(units_of_texts([TEXT], Model.load(name="en")))
    chances = np.exp(draws.log_pmf_of(query, np.array([5.0]))[0])
    likeliest = np.argsort(-chances, kind="stable")[:10]
    found = re.findall(r'<th scope="row">(.*?)</th><td class="number">(.*?)%</td>', detail)
    assert [text for text, _ in found] == [opened.texts[row] for row in likeliest]
    assert [float(share) for _, share in found] == pytest.approx(100 * chances[likeliest], rel=0.05)


def test_the_likeliest_of_a_sentence_are_those_of_that_sentence(client, bank, opened):
    text = f"Nobody came. {opened.texts[7]}"
    fields = form(bank, unit="sentence", epsilon="200", text=text, token="1")
    assert f'<th scope="row">{opened.texts[7]}</th>' in asked(client, "token", fields)


def test_no_reader_guesses_words_of_a_sentence(client, bank):
    assert "api/guesses" not in asked(client, "token", form(bank, token="0"))


def test_the_page_says_how_often_a_text_is_found_again(client, bank):
    assert "who finds the text again" in asked(client, "expected", form(bank))


def test_the_default_level_is_the_epsilon_of_the_bank_that_ships(outside):
    asked_for = Form.of(text=TEXT, strategy="S5").request
    assert asked_for.protection is None
    assert "--protection" not in options.command_of(asked_for, "FILE", (), None)


def test_its_first_draw_is_that_of_the_command(client, bank, outside):
    shown = asked(client, "draws", form(bank))
    (command,) = re.findall(r"<pre id=\"command\".*?>(.*?)</pre>", shown)
    words = shlex.split(command)[1:]
    pd.DataFrame({"text": [TEXT]}).to_csv("FILE.csv", index=False)
    words = [{"FILE": "FILE.csv", "OUT": "OUT.csv"}.get(word, word) for word in words]
    assert main([*words, "--seed", "1"]) == 0
    assert pd.read_csv("OUT.csv")["text"][0] in re.sub("<[^>]*>", "", shown)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param({"mechanism": "tem_context"}, "replaces only words", id="mechanism"),
        pytest.param({"stopwords": "keep"}, "stopwords", id="of words"),
        pytest.param({"bank": "nowhere"}, "is no bank of sentences", id="bank"),
        pytest.param({"budget": "protection", "protection": "strong"}, "too few texts", id="level"),
    ],
)
def test_what_sentences_do_not_have_is_refused(client, bank, more, said):
    answer = client.post("/api/draws", data=form(bank) | more)
    assert answer.status_code == 422
    assert said in html.unescape(answer.text)
