"""Parts of the public list of words that are never put out: what a request chooses, what comes out,
and what the record says.
"""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import lexveil
from lexveil import Model, RequestError
from lexveil.base import paths
from lexveil.core.accounting.budgets import Action
from lexveil.core.screen_parts import DEFAULT, NONE, PARTS, chosen_parts
from lexveil.core.text.languages.english import STOP_WORDS
from lexveil.io.artifacts.project import Project
from lexveil.io.artifacts.screened_words import (
    is_screened,
    listed_words,
    nearest_of_others,
    replacements,
    screened_words,
)
from lexveil.io.artifacts.sentence_banks import open_bank
from lexveil.io.config import parse_configuration, parse_params
from lexveil.io.request import Request
from lexveil.lab.data.sentence_banks import BankOptions, build
from lexveil.lab.modelling.screening import own
from lexveil.release.engine.batch import Batch
from lexveil.release.engine.engine import WordEngine
from lexveil.release.engine.worker import Components
from lexveil.release.settings import document_budget, resolve_settings
from lexveil.release.settings import settings_of as completed
from tests.privatization.sentence_banks import SENTENCES, write_texts

PLAIN = "the waiter brought cold soup and warm beer to a large table near the old window . " * 40
EVERY = ",".join(PARTS)
WAYS = [
    ("tem", "S1"),
    ("tem_context", "S1"),
    ("tem_context", "S3"),
    ("diffractor_geometric", "S1"),
    ("madlib", "S3"),
]


def words_of(text):
    """The words of an output, and those between their hyphens, without a possessive s."""
    whole = {word for found in re.findall(r"[\w'-]+", text) for word in (found, *found.split("-"))}
    return whole | {word.removesuffix("'s") for word in whole}


def some_parts():
    """Return each way to rewrite with parts of the list that are drawn at random, and each part by
    itself."""
    rng = np.random.default_rng(11)
    drawn = [
        (*way, ",".join(rng.permutation(PARTS)[: rng.integers(1, len(PARTS))].tolist()))
        for way in WAYS
    ]
    return [*drawn, *(("tem", "S1", part) for part in PARTS)]


def settings_of(screen, model, **more):
    asked = {"mechanism": "tem", "strategy": "S1", "epsilon": 3.0, "seed": 1} | more
    return resolve_settings(Request(**asked, screen=screen), model)


def test_the_nearest_of_the_others_takes_the_place_by_hand():
    vectors = np.array([[0.0], [1.0], [1.5], [5.0]], dtype=np.float32)
    screened = np.array([False, True, False, True])
    assert nearest_of_others(vectors, screened).tolist() == [0, 2, 2, 2]
    assert nearest_of_others(vectors, np.zeros(4, dtype=bool)) is None
    assert nearest_of_others(vectors, np.ones(4, dtype=bool)) is None


@pytest.mark.parametrize(
    ("token", "holds"),
    [
        ("bad", True),
        ("good_bad", True),
        ("bad's", True),
        ("not-so-bad", True),
        ("the_bad's_end", True),
        ("so-so", True),
        ("badly", False),
        ("so", False),
    ],
)
def test_a_token_holds_a_listed_word(token, holds):
    assert is_screened([token], frozenset({"bad", "so-so"})).tolist() == [holds]


def test_the_list_has_words_of_each_part_and_none_that_s1_keeps():
    """A stop word is kept in S1, so that listing it would promise what is not kept."""
    by_part = listed_words().by_part
    assert tuple(by_part) == PARTS
    for part, words in by_part.items():
        assert len(words) > 200, part
        assert not words & {*STOP_WORDS}, part
        assert all(word == word.lower() and not re.search(r"[\s_]", word) for word in words)
    assert own("slurs.txt") <= by_part["vulgar"]
    assert {"fainting", "morphine", "patient"} <= by_part["health"]


@cache
def rewritten(mechanism, strategy, screen):
    """The record, and the words, of what comes of plain words and of words of all parts. The
    epsilon makes all words likely.
    """
    listed = screened_words(PARTS)
    known = {*Model.load(name="en").lexicon("S1").tokens}
    source = [PLAIN, " ".join(sorted(listed & known)), " ".join(sorted(listed)[::9])]
    how = {"mechanism": mechanism, "strategy": strategy, "epsilon": 0.5, "seed": 2, "model": "en"}
    done = lexveil.privatize(source, screen=screen, quiet=True, **how)
    return done.record, words_of(" ".join(done.values))


@pytest.mark.parametrize(("mechanism", "strategy", "screen"), some_parts())
def test_no_word_of_a_chosen_part_comes_out_whatever_goes_in(mechanism, strategy, screen):
    listed = screened_words(chosen_parts(screen))
    _, written = rewritten(mechanism, strategy, screen)
    assert len(written) > 300 and not written & listed
    record, free = rewritten(mechanism, strategy, NONE)
    assert free & listed and record.screen is None


def test_no_word_of_a_part_comes_out_of_a_model_of_ones_own(built):
    """The words of the project are those of its own corpus."""
    known = {word for token in Model.load(built).lexicon("S3").tokens for word in words_of(token)}
    listed = screened_words(PARTS)
    source = [" ".join(sorted(known))] * 4
    how = {"mechanism": "tem", "strategy": "S3", "epsilon": 0.5, "seed": 2}
    assert known & listed
    outputs = [
        lexveil.privatize(source, screen=screen, project=built, quiet=True, **how).values
        for screen in (EVERY, NONE)
    ]
    assert [bool(words_of(" ".join(some)) & listed) for some in outputs] == [False, True]


def test_what_is_written_follows_from_the_draw_alone():
    """With equal noise every written word is a function of the one that is written without screen,
    the same for all texts.
    """
    model = Model.load(name="en")
    texts = [PLAIN, "My doctor and the police pray with Kevin. " * 30]
    batch = Batch([[text] for text in texts], [("1",), ("2",)])
    rows = []
    for screen in (NONE, EVERY):
        settings = settings_of(screen, model, epsilon=1.0)
        engine = WordEngine(settings, model)
        done = replace(engine.worker(), budget_name="1").draw(
            batch, document_budget(settings, model)
        )
        rows.append(done.rows)
    drawn, written = rows
    number = engine.vocabulary.number[drawn]
    known = number >= 0
    assert isinstance(engine.worker().components, Components) and engine.instead is not None
    instead = engine.vocabulary.rows[engine.instead[number[known]]]
    is_word = done.action[known] == Action.PERTURBED.value
    assert (instead[is_word] == written[known][is_word]).all()
    assert (drawn != written).sum() > 20


def test_edited_replacements_in_the_cache_are_made_anew(monkeypatch):
    monkeypatch.setattr("lexveil.release.engine.engine.replacements", replacements)
    model = Model.load(name="en")
    settings = settings_of("vulgar,crime", model)
    made = WordEngine(settings, model).instead
    assert made is not None
    for changed in (made, made[1:], np.arange(len(made))):
        for kept in (paths.user_cache() / "screened").glob("*.npy"):
            np.save(kept, changed)
        assert WordEngine(settings, Model.load(name="en")).instead.tolist() == made.tolist()


def test_requests_of_other_parts_with_one_model_do_not_share_replacements():
    model = Model.load(name="en")
    made = [
        WordEngine(settings_of(screen, model), model).instead for screen in (*PARTS, NONE, EVERY)
    ]
    assert made[-2] is None
    assert len({some.tobytes() for some in made if some is not None}) == len(PARTS) + 1


@pytest.mark.parametrize("written", ["names,vulgar", ["names", "vulgar"], " names , vulgar"])
def test_parts_are_a_text_or_a_list_in_any_order(written):
    assert Request(screen=written).screen == "vulgar,names"
    configured = parse_configuration({"release": {"screen": written}})
    assert configured.release.screen == "vulgar,names"


@pytest.mark.parametrize("written", ["vulgr", "none,vulgar", "", "names;vulgar", "all"])
def test_a_part_that_there_is_not_is_refused_and_all_are_listed(outside, cli, written):
    (outside / "in.txt").write_text("soup\n", encoding="utf-8")
    said = cli("privatize", "in.txt", "-o", "out.txt", f"--screen={written}", code=2).err
    assert "--screen" in said and all(part in said for part in (NONE, *PARTS))
    assert not (outside / "out.txt").exists()


def test_the_record_states_the_parts_and_the_list():
    texts = ["The soup was cold and my doctor left."]
    chosen = lexveil.privatize(texts, model="en", seed=1, screen="names,crime", quiet=True)
    usual = lexveil.privatize(["Nobody came."], model="en", seed=1, quiet=True)
    assert chosen.record.screen is not None and usual.record.screen is not None
    assert chosen.record.screen.parts == ["crime", "names"]
    assert chosen.record.screen.sha256 == usual.record.screen.sha256 == listed_words().sha256
    assert ",".join(usual.record.screen.parts) == DEFAULT
    in_release = chosen.record.guarantee.in_release
    assert in_release is not None and any("crime, names" in why for why in in_release.because)


def test_the_configuration_says_the_parts_where_a_request_does_not():
    configured = parse_configuration({"release": {"screen": "religion"}})
    project = Project(Path(), parse_params({"seed": 1}), configured, is_project=True)
    found = [
        completed(Request(mechanism="tem", epsilon=1.0, screen=screen), project).screen
        for screen in (None, "crime", NONE)
    ]
    assert found == [("religion",), ("crime",), ()]


def test_a_model_of_another_language_has_no_screen(monkeypatch):
    model = Model.load(name="en")
    monkeypatch.setattr(Model, "language", "de")
    assert settings_of(None, model).screen == ()
    with pytest.raises(RequestError, match="the public word list is English"):
        settings_of("health", model)


def test_a_screen_that_leaves_no_word_is_refused(monkeypatch):
    model = Model.load(name="en")
    engine = WordEngine(settings_of(EVERY, model), model)
    monkeypatch.setattr(
        "lexveil.release.engine.engine.is_screened",
        lambda tokens, words: np.ones(len(tokens), dtype=bool),
    )
    with pytest.raises(RequestError, match="every word of model en"):
        _ = engine.instead


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("The patient has diabetes, and the doctor prescribed insulin.", "health"),
        ("The invoice of last month was charged twice.", None),
    ],
)
def test_inspect_tells_texts_about_a_part_what_it_costs(outside, cli, text, part):
    (outside / "in.txt").write_text(text, encoding="utf-8")
    arguments = ("inspect", "in.txt", "--model", "en", "--screen", "vulgar,health")
    said = cli(*arguments).out
    assert (f"screened part {part}" in said) == (part is not None)
    tried = json.loads(cli(*arguments, "--json").out)["tried"]
    assert (tried["screened"]["health"] > 0.05) == (part is not None)


def sentences_with(word):
    return [*SENTENCES, *(f"The {word} was here, {kind}." for kind in ("good", "bad", "slow"))]


def test_a_bank_has_no_sentence_with_a_word_of_its_parts(tmp_path):
    texts = write_texts(tmp_path / "public.jsonl", sentences_with("priest"))
    model = Model.load(name="en")
    for number, screen in enumerate(("religion", "names", NONE)):
        card = build([texts], tmp_path / str(number), BankOptions(model="en", screen=screen))
        has = any("priest" in text for text in open_bank(tmp_path / str(number), model).texts)
        assert has == (screen != "religion")
        assert card.screen.parts == [*chosen_parts(screen)]


def test_sentences_are_refused_where_the_bank_may_have_words_of_a_part(tmp_path):
    texts = write_texts(tmp_path / "public.jsonl")
    options = BankOptions(model="en", is_public=True, screen="religion,names")
    card = build([texts], tmp_path / "bank", options)
    how = {"strategy": "S5", "epsilon": 9.0, "bank": str(tmp_path / "bank"), "model": "en"}
    done = lexveil.privatize(["Cold soup."], screen="names", seed=1, quiet=True, **how)
    assert done.record.screen == card.screen
    with pytest.raises(RequestError, match="--screen religion,names,crime"):
        lexveil.privatize(["Cold soup."], screen="crime", seed=1, quiet=True, **how)


def test_whoever_rewrites_is_told_what_a_part_takes(caplog):
    """The message appears in Python as well, whether or not somebody inspected the texts before."""
    texts = ["The patient has diabetes, and the doctor prescribed insulin."]
    done = lexveil.privatize(texts, model="en", seed=1)
    assert done.operator.screened is not None and done.operator.screened["health"] > 0.05
    assert "belong to the screened part health" in caplog.text


def test_a_part_that_takes_nothing_is_not_spoken_of(caplog):
    lexveil.privatize(["The train was late again."], model="en", seed=1)
    assert "screened part" not in caplog.text
