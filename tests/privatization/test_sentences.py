"""Sentences of a bank in the place of texts: what is written, disclosed and charged, and what is
refused.
"""

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from asking import preview
from rich.console import Console

import lexveil
from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.core.accounting.measurements import NoBoundError
from lexveil.core.embeddings.sentences import SentenceSpace
from lexveil.core.mechanisms.over_sentences import NOISY, OF_VECTORS
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.core.text.encode import encode
from lexveil.faces.cli.preview import show_preview
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import open_bank, read_card
from lexveil.lab.data import public_sentences
from lexveil.lab.data.sentence_banks import BankOptions, build
from lexveil.readers import bank_levels
from lexveil.release.engine import sentences as engine
from lexveil.release.engine.sentences import WORDS_OF_A_SENTENCE, cut
from lexveil.release.settings import PER_TEXT
from tests.privatization.sentence_banks import (
    SENTENCES,
    build_bank,
    scale_by_the_batch,
    write_texts,
)
from tests.same_noise import SameAnswers, published

TEXTS = ["The food was cold. Nobody came! We left early.", "Great film, see it.", "zzxq", ""]
TEXTS_OF_OTHERS = ["x", "One. Two. Three. Four, five and six are far too many for me.", "qq", "No"]
HOW = {"strategy": "S5", "epsilon": 10.0}


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    return build_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty current folder in no project, with a ledger of its own."""
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / "home"))
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def written(texts):
    """The sentences of outputs; each must be one of the bank."""
    found = [re.findall(r"[^.]+\.", text or "") for text in texts]
    parts = [[sentence.strip() for sentence in each] for each in found]
    assert {sentence for each in parts for sentence in each} <= {*SENTENCES}
    assert [" ".join(each) for each in parts] == [text or "" for text in texts]
    return parts


def privatize(texts, bank, model="en", **how):
    return lexveil.privatize(texts, model=model, bank=str(bank), quiet=True, **HOW | how)


def test_every_text_becomes_as_many_sentences(bank):
    """A text without a known word and an empty text become as many sentences; a value that is no
    text stays null."""
    done = privatize([*TEXTS, None], bank)
    assert done.values[-1] is None
    assert [len(each) for each in written(done.values[:-1])] == [PER_TEXT] * 4
    assert [len(each) for each in written(privatize(TEXTS, bank, sentences=7).values)] == [7] * 4


@pytest.mark.parametrize("mechanism", NOISY)
def test_a_mechanism_over_vectors_writes_sentences(bank, mechanism):
    done = privatize(TEXTS, bank, mechanism=mechanism, epsilon=60.0)
    assert [len(each) for each in written(done.values)] == [PER_TEXT] * 4
    assert done.record.guarantee.holds
    assert done.record.metric == OF_VECTORS[mechanism]


@pytest.mark.parametrize("mechanism", ["madlib", "mahalanobis"])
def test_nearly_without_noise_a_sentence_of_the_bank_comes_out(bank, mechanism):
    sentence = "The meal was terrible today."
    done = privatize([sentence], bank, mechanism=mechanism, epsilon=1e5)
    assert written(done.values) == [[sentence] * PER_TEXT]


def test_what_was_measured_with_tem_is_not_said_of_noise(here):
    how = {"strategy": "S5", "epsilon": 5.0, "model": "en", "quiet": True}
    pd.DataFrame({"text": TEXTS}).to_csv("in.csv", index=False)
    measured, other = (
        lexveil.inspect("in.csv", mechanism=mechanism, **how).linkage.sentence
        for mechanism in ("tem", "madlib")
    )
    assert " of 100 cases" in measured
    assert " of 100 cases" not in other


IN_BANK = "The meal was terrible today."


@pytest.mark.parametrize("unit", ["text", "sentence"])
def test_sentences_of_texts_that_stand_in_the_bank_are_counted(bank, unit):
    texts = [f"{IN_BANK} Nobody came!", IN_BANK, IN_BANK.lower(), "", None]
    assert privatize(texts, bank, unit=unit).operator.counts.n_in_bank == 2


def test_words_are_not_looked_for_in_a_bank():
    done = lexveil.privatize([IN_BANK], model="en", seed=1, quiet=True)
    assert "n_in_bank" not in done.operator.counts.to_dict()


def test_the_operator_is_told_why_they_are_harmless(bank, capsys):
    pd.DataFrame({"text": [IN_BANK]}).to_csv("in.csv", index=False)
    command("in.csv", "-o", "out.csv", "--bank", bank)
    said = capsys.readouterr().out
    assert "1 sentence of the texts is also in the bank: harmless" in said
    for published_file in ("out.csv.record.json", "out.csv.statement.txt"):
        assert "n_in_bank" not in Path(published_file).read_text()


def test_the_local_bound_of_mahalanobis_is_of_its_metric(bank):
    """With λ = 0.2 no distance is longer than the Euclidean one by more than 1/√0.8."""
    said = privatize(TEXTS, bank, mechanism="mahalanobis").record.sentences
    assert said.diameter == pytest.approx(2 / np.sqrt(0.8))


def test_each_sentence_becomes_one(bank):
    done = privatize(TEXTS, bank, unit="sentence")
    assert [len(each) for each in written(done.values)] == [3, 1, 1, 0]


def test_the_ledger_is_charged_epsilon_for_each_sentence(bank):
    done = privatize(TEXTS[:3], bank, subjects=["a", "b", "a"], sentences=2)
    assert done.record.spent.most == 20.0 and done.record.spent.mean == 20.0
    assert done.operator.ledger.epsilon_charged == 60.0
    again = privatize(TEXTS[:2], bank, unit="sentence", subjects=["a", "b"])
    assert again.operator.ledger.epsilon_charged == 40.0
    assert again.operator.ledger.largest_balance == pytest.approx(70.0)


def test_the_token_log_has_a_row_for_each_sentence(bank):
    log = privatize(TEXTS, bank, sentences=2).token_log.to_pydict()
    assert log["row"] == [1, 1, 2, 2, 3, 3, 4, 4] and log["position"] == [0, 1] * 4
    assert {*log["class"]} == {"sentence"} and {*log["action"]} == {"perturbed"}
    assert {*log["epsilon"]} == {10.0}


def test_the_record_states_both_bounds_of_a_text(bank):
    """The record states two bounds with the text as unit: 2·ε·d for any two texts, and 2·ε·D with
    D = 2·√(1 + 9).
    """
    guarantee = privatize(TEXTS, bank, model="en+sentiment=3", sentences=2).record.guarantee
    assert guarantee.formula == "Pr[M(D)=y] <= exp(2·ε·d(D,D'))·Pr[M(D')=y]"
    assert guarantee.statement.startswith("Any two texts are indistinguishable up to exp(2·")
    assert "local differential privacy with a loss of 2·ε·D = 126.491 nats" in guarantee.statement
    assert guarantee.not_covered is None


def test_the_record_states_the_bound_of_as_many_sentences(bank):
    record = privatize(TEXTS, bank, unit="sentence").record
    guarantee = record.guarantee
    assert guarantee.formula == "Pr[M(D)=y] <= exp(Σ ε·d(s_i,s'_i))·Pr[M(D')=y]"
    assert "any two texts with the same number of sentences" in guarantee.statement.lower()
    assert guarantee.not_covered == "Not covered: texts with another number of sentences."
    assert "number of sentences" in guarantee.because[0]
    assert record.sentences.longest == WORDS_OF_A_SENTENCE


def test_the_record_names_the_bank_and_its_diameter(bank):
    record = privatize(TEXTS, bank, model="en+sentiment=3", sentences=2).record
    assert record.metric == "Euclidean distance of sentence vectors"
    diameter = 2 * np.sqrt(10)
    assert record.sentences.model_dump() == {
        "unit": "text",
        "per_text": 2,
        "longest": None,
        "bank": record.made_with["bank/bank.json"],
        "bank_sentences": len(SENTENCES),
        "diameter": pytest.approx(diameter),
        "local_epsilon": pytest.approx(10 * diameter),
    }


def test_an_experiment_claims_nothing_but_what_a_release_would(bank):
    stated = privatize(TEXTS, bank, seed=1).record.guarantee
    assert stated.formula == "none" and "seed" in stated.statement
    assert stated.in_release.formula == privatize(TEXTS, bank).record.guarantee.formula


def test_the_bound_holds_for_what_is_drawn(bank):
    """Between any two texts: the loss of the whole output by the exact law."""
    done = privatize(TEXTS, bank, sentences=3)
    assert done.measurement.bound(np.full(3, 0.5)).nats == pytest.approx(15.0)
    opened = open_bank(bank, Model.load(name="en"))
    draws = SentenceDraws(opened.vectors, opened.space.radius)
    units, _, _ = cut(encode(TEXTS, Model.load(name="en").lexicon("S3")), 3)
    queries = opened.space.embed(units)
    log_p = draws.log_pmf_of(queries, np.full(len(TEXTS), 10.0))
    loss = np.abs(log_p[:, None] - log_p[None]).max(axis=2)
    apart = np.linalg.norm(queries[:, None].astype(float) - queries[None], axis=2)
    for first in range(len(TEXTS)):
        for second in range(len(TEXTS)):
            bound = done.measurement.bound(np.full(3, apart[first, second]))
            assert 3 * loss[first, second] <= bound.nats + 1e-9
    with pytest.raises(NoBoundError, match="seed"):
        privatize(TEXTS, bank, seed=1).measurement.bound(np.full(3, 0.5))


def test_a_text_draws_by_its_vector(bank):
    """At a large epsilon a sentence of the bank comes out as itself, alone and in a text of it."""
    sentence = "The meal was terrible today."
    done = privatize([sentence], bank, epsilon=2000.0, sentences=3, seed=1)
    assert written(done.values) == [[sentence] * 3]
    both = privatize(
        [f"{sentence} The song was lovely here."], bank, epsilon=2000.0, unit="sentence", seed=1
    )
    assert written(both.values) == [[sentence, "The song was lovely here."]]


def test_releases_draw_other_noise_each_time_and_experiments_the_same(bank):
    first, second = (privatize(TEXTS * 5, bank).values for _ in range(2))
    assert first != second
    seeded = [privatize(TEXTS * 5, bank, seed=seed).values for seed in (1, 1, 2)]
    assert seeded[0] == seeded[1] != seeded[2]


@pytest.mark.parametrize("mechanism", ["tem", pytest.param("vickrey", marks=pytest.mark.nightly)])
def test_neither_batches_nor_workers_change_an_experiment(mechanism, bank, here, monkeypatch):
    texts = [f"{sentence} {TEXTS[n % 4]}" for n, sentence in enumerate(SENTENCES[:300])]
    pd.DataFrame({"text": texts}).to_csv(here / "in.csv", index=False)
    made = []
    for workers, part in ((1, 2**16), (2, 2**16), (1, 500)):
        monkeypatch.setattr("lexveil.release.engine.batch.PART", part)
        out = here / f"{len(made)}.csv"
        how = ("--bank", bank, "--seed", 3, "--workers", workers, "--mechanism", mechanism)
        command("in.csv", "-o", out, *how)
        made.append(out.read_bytes())
    assert made[0] == made[1] == made[2]
    in_memory = privatize(texts, bank, seed=3, mechanism=mechanism).values
    assert in_memory == pd.read_csv(here / "0.csv")["text"].tolist()


def test_a_sentence_without_end_is_cut_at_a_public_length():
    words = ["word"] * (2 * WORDS_OF_A_SENTENCE + 5)
    lexicon = Model.load(name="en").lexicon("S1")
    source = encode([" ".join(words), "One. Two."], lexicon)
    units, text_of, draws = cut(source, None)
    assert np.diff(units.starts).tolist() == [WORDS_OF_A_SENTENCE, WORDS_OF_A_SENTENCE, 5, 2, 2]
    assert text_of.tolist() == [0, 0, 0, 1, 1] and draws.tolist() == [0, 1, 2, 3, 4]


def test_columns_of_a_row_have_sentences_each(bank, here):
    pd.DataFrame({"title": ["Bad", "Good"], "body": TEXTS[:2]}).to_csv(here / "in.csv", index=False)
    columns = ("--text-column", "title", "--text-column", "body")
    command("in.csv", "-o", "out.csv", "--bank", bank, "--sentences", 2, *columns)
    table = pd.read_csv(here / "out.csv")
    assert [len(each) for name in table for each in written(table[name])] == [2] * 4
    record = json.loads((here / "out.csv.record.json").read_text())
    assert record["spent"]["most"] == 40.0 == record["document_budget"]["input"]
    assert record["guarantee"]["formula"] == "Pr[M(D)=y] <= exp(2·ε·Σ d(D_c,D'_c))·Pr[M(D')=y]"
    assert "of 4·ε·D = 80 nats" in record["guarantee"]["statement"]
    lines = [json.dumps({"messages": [{"content": text} for text in TEXTS]})]
    (here / "in.jsonl").write_text("\n".join(lines) + "\n")
    path = ("--text-column", "messages[].content")
    command("in.jsonl", "-o", "out.jsonl", "--bank", bank, *path, code=2)
    assert not (here / "out.jsonl").exists()


def command(*arguments, epsilon=10, code=0):
    from asking import command as run

    options = ("--strategy", "sentence", "--epsilon", epsilon, "--model", "en")
    assert run("privatize", *arguments, *options) == code


@pytest.fixture
def out(bank, here):
    """A file that was released, two texts of it."""
    pd.DataFrame({"text": TEXTS[:2]}).to_json(here / "in.jsonl", orient="records", lines=True)
    command("in.jsonl", "-o", "out.jsonl", "--bank", bank)
    return here / "out.jsonl"


def test_a_release_says_how_many_sentences_it_wrote(capsys, out):
    assert out.exists()
    said = capsys.readouterr().out
    assert "2 texts, 8 sentences written (4 for each text" in said
    assert "mechanism tem, strategy S5, mode release" in said


def test_a_released_file_has_sentences_of_the_bank(out):
    rows = pd.read_json(out, lines=True)
    assert [len(each) for each in written(rows["text"].tolist())] == [PER_TEXT] * 2


def test_the_statement_of_a_release_tells_of_sentences_and_of_no_words(out):
    page = out.with_name("out.jsonl.statement.txt").read_text()
    assert "were replaced by sentences of a public bank by Lexveil" in page
    assert "2 texts were replaced by 8 sentences, 4 for each text." in page
    assert not [word for word in ("word by word", "stop words") if word in page]


def test_log_and_report_of_a_release_count_its_sentences(out):
    log = pq.read_table(out.with_name("out.jsonl.tokens.parquet"))
    assert log.column("class").to_pylist() == ["sentence"] * 8
    operator = json.loads(out.with_name("out.jsonl.operator.json").read_text())
    assert operator["counts"]["by_class"]["sentence"]["perturbed"] == 8


def published_of(mechanism, texts, bank, folder, patch):
    """All that a release publishes where the mechanism answers alike, whatever the texts are."""
    same = SameAnswers(patch)
    patch.setattr(
        NOISY[mechanism], "replace_queries", lambda _, __, of, *___: same._answers(len(of))
    )
    folder.mkdir()
    patch.setenv("LEXVEIL_HOME", str(folder / "home"))
    patch.chdir(folder)
    pd.DataFrame({"text": texts}).to_csv("in.csv", index=False)
    command("in.csv", "-o", "out.csv", "--bank", bank, "--mechanism", mechanism)
    Path("in.csv").unlink()
    return published(folder)


FACES = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "txt": "txt", "parquet": "parquet"}


@pytest.mark.parametrize("mechanism", NOISY)
def test_what_noise_publishes_is_a_function_of_the_output(bank, here, mechanism, monkeypatch):
    made = [
        published_of(mechanism, texts, bank, here / str(number), monkeypatch)
        for number, texts in enumerate((TEXTS, TEXTS_OF_OTHERS))
    ]
    assert made[0] == made[1]


@pytest.mark.parametrize("form", FACES)
@pytest.mark.parametrize("unit", ["text", "sentence"])
def test_what_is_published_is_a_function_of_the_output(bank, here, form, unit, monkeypatch):
    """The two sources have only the number of rows in common, and the number of sentences if the
    unit is the sentence. The mechanism draws the same for both."""
    same = SameAnswers(monkeypatch)
    monkeypatch.setattr(SentenceDraws, "noise", lambda _, e, __: np.zeros((len(e), 4), np.uint64))
    monkeypatch.setattr(
        SentenceDraws, "replace_queries", lambda _, __, of, *___: same._answers(len(of))
    )
    second = ["It is so. They ran off. It rains", "The committee met", "Hello there", ""]
    if unit == "text":
        second = TEXTS_OF_OTHERS
    made = []
    for number, texts in enumerate((TEXTS, second)):
        folder = here / str(number)
        folder.mkdir()
        monkeypatch.setenv("LEXVEIL_HOME", str(folder / "home"))
        monkeypatch.chdir(folder)
        same.restart()
        kept = texts[:3] if form == "txt" else texts
        frame = pd.DataFrame({"text": kept})
        if form == "txt":
            (folder / "in.txt").write_text("".join(f"{text}\n" for text in kept))
        elif form == "jsonl":
            frame.to_json(folder / "in.jsonl", orient="records", lines=True)
        elif form == "parquet":
            frame.to_parquet(folder / "in.parquet")
        else:
            frame.to_csv(folder / f"in.{form}", index=False, sep="\t" if form == "tsv" else ",")
        command(f"in.{form}", "-o", f"out.{form}", "--bank", bank, "--unit", unit)
        (folder / f"in.{form}").unlink()
        made.append(published(folder))
    assert made[0].keys() == made[1].keys()
    assert f"out.{form}" in made[0]
    differ = {
        name: (made[0][name], made[1][name]) for name in made[0] if made[0][name] != made[1][name]
    }
    assert not differ


REFUSED = [
    ({"epsilon": None}, "the bank has no levels of protection"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": 1e12}, "epsilon"),
    ({"sentences": 0}, "sentences"),
    ({"sentences": 1001}, "sentences"),
    ({"unit": "word"}, "unit"),
    ({"unit": "sentence", "sentences": 3}, "one sentence for each"),
    ({"mechanism": "tem_context"}, "replaces only words, not sentences"),
    ({"mechanism": "diffractor_tem"}, "replaces only words, not sentences"),
    ({"mechanism": "diffractor_geometric"}, "choose one of tem, madlib, mahalanobis, vickrey"),
    ({"mechanism": "madlib", "epsilon": None}, "levels of protection of sentences are measured"),
    ({"protection": "strong"}, "give one of protection (a level) and epsilon"),
    ({"epsilon": None, "document_budget": 5.0}, "document_budget"),
    ({"epsilon": None, "recovery": 0.1}, "recovery"),
    ({"max_token_epsilon": 5.0}, "max_token_epsilon"),
    ({"consistent": True}, "consistent"),
    ({"keep_layout": True}, "keep_layout"),
    ({"detector": "presidio"}, "detector"),
    ({"protect": "list.txt"}, "protect"),
    ({"shares": {"numbers": 0.5}}, "shares"),
    ({"stopwords": "keep"}, "stopwords"),
    ({"mode": "release", "seed": 1}, "a seed makes an experiment"),
    (
        {"strategy": "S1", "protection": "strong", "epsilon": None},
        "bank is an option for sentences",
    ),
]


@pytest.mark.parametrize(("how", "said"), REFUSED)
def test_what_sentences_do_not_have_is_refused(bank, how, said):
    asked = {"bank": str(bank)} | HOW | how
    with pytest.raises(RequestError, match=re.escape(said)):
        lexveil.privatize(TEXTS, model="en", **asked)
    assert not (paths.user_data() / "ledger").exists()


def test_banks_that_cannot_be_used_are_refused_before_anything_is_charged(bank, here, capsys):
    """The banks are a missing one, one that is not said to be public, an edited one, and one of
    another model."""
    (here / "in.txt").write_text("A text.\n")
    private = here / "private"
    build([write_texts(here / "public.jsonl")], private, BankOptions(model="en"))
    edited = here / "edited"
    edited.mkdir()
    for file in bank.iterdir():
        (edited / file.name).write_bytes(file.read_bytes())
    (edited / "sentences.parquet").write_bytes(b"another")
    other = here / "other"
    other.mkdir()
    for file in bank.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    card = json.loads((bank / "bank.json").read_text())
    (other / "bank.json").write_text(json.dumps(card | {"model_sha256": "0" * 64}))
    cases = {
        here / "none": "the folder is no bank of sentences",
        private: "is not declared public",
        edited: "sentences.parquet: the hash of the file differs",
        other: "has other vectors",
    }
    for folder, said in cases.items():
        command("in.txt", "-o", "out.txt", "--bank", folder, code=2)
        assert said in capsys.readouterr().err
    assert not list(here.glob("out*")) and not (paths.user_data() / "ledger").exists()
    command("in.txt", "-o", "out.txt", "--bank", private, "--seed", 1)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """A bank whose levels of protection are measured on few texts."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (bank_levels, public_sentences):
            patch.setattr(module, "CANDIDATES", 80)
        return build_bank(tmp_path_factory.mktemp("calibrated"))


@pytest.fixture
def few_candidates(monkeypatch):
    """Work out levels on as few texts as those of the calibrated bank."""
    for module in (bank_levels, public_sentences):
        monkeypatch.setattr(module, "CANDIDATES", 80)


def at_level(bank, **how):
    """The record of a release at a level of protection."""
    return privatize(TEXTS, bank, **{"epsilon": None} | how).record


def test_a_bank_of_another_version_is_refused_with_the_way_out(bank, tmp_path):
    """An old card lacks fields of today, too."""
    old = tmp_path / "old"
    old.mkdir()
    card = json.loads((bank / "bank.json").read_text()) | {"format": 1}
    del card["levels"]
    (old / "bank.json").write_text(json.dumps(card))
    with pytest.raises(RequestError, match=r"reads format 2; build the bank again"):
        read_card(old)


def test_a_bank_keeps_where_sentences_of_its_public_texts_end(calibrated):
    """Every text begins a sentence, and some have several."""
    public = open_bank(calibrated, Model.load(name="en")).public
    begins = {*public.sentences.starts.tolist()}
    assert {*public.texts.starts.tolist()} <= begins
    assert len(public) == 80 < len(public.sentences)


def test_a_bank_has_levels_that_hold_what_they_promise(calibrated):
    levels = {level.level: level for level in read_card(calibrated).levels}
    assert [*levels] == ["strong", "balanced", "light"]
    assert levels["strong"].linkage <= 0.05
    assert levels["balanced"].linkage <= 0.2
    epsilons = [level.epsilon for level in levels.values()]
    assert epsilons == sorted(epsilons)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize(
    ("how", "level"),
    [
        pytest.param({}, "balanced", id="nothing said"),
        pytest.param({"protection": "strong"}, "strong", id="strong"),
    ],
)
def test_a_level_is_the_epsilon_of_the_card(calibrated, how, level):
    record = at_level(calibrated, **how)
    epsilons = {level.level: level.epsilon for level in read_card(calibrated).levels}
    assert record.base_epsilon == epsilons[level]
    assert record.linkage.at[0].found == record.protection.linkage


@pytest.mark.usefixtures("few_candidates")
def test_a_level_for_more_sentences_is_worked_out_once_and_kept(calibrated, monkeypatch):
    usual = at_level(calibrated, protection="strong").base_epsilon
    more = at_level(calibrated, protection="strong", sentences=8).base_epsilon
    assert more < usual
    monkeypatch.setattr(bank_levels, "found_level", None)
    assert at_level(calibrated, protection="strong", sentences=8).base_epsilon == more


@pytest.mark.usefixtures("few_candidates")
def test_a_level_of_sentence_by_sentence_is_worked_out(calibrated):
    record = at_level(calibrated, protection="balanced", unit="sentence")
    assert record.protection.linkage <= 0.2
    assert record.base_epsilon > 0


@pytest.mark.usefixtures("few_candidates")
def test_a_level_with_a_purpose_is_worked_out(calibrated):
    usual = at_level(calibrated, protection="strong").base_epsilon
    purpose = at_level(calibrated, protection="strong", model="en+sentiment=3").base_epsilon
    assert purpose != usual


def test_a_script_without_spaces_is_refused_or_emptied(bank):
    text = "これは日本語の文章です。単語の間に空白がありません。"
    with pytest.raises(RequestError, match="Japanese script"):
        privatize([text], bank)
    assert privatize(["Some text."], bank).operator.ledger.subjects_charged_before == 0
    done = privatize([text, "Some text."], bank, on_unsupported="withhold")
    assert [len(each) for each in written(done.values)] == [PER_TEXT] * 2
    assert done.record.on_unsupported == "withhold"


def _look(bank, here, *verb, **how):
    from asking import command as run

    (here / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    options = [word for name, value in how.items() for word in (f"--{name}", value)]
    common = ("--strategy", "S5", "--bank", bank, "--epsilon", 10, "--model", "en", "--json")
    assert run(*verb, *common, *options) == 0


@pytest.mark.parametrize(
    ("unit", "n_drawn", "n_unique"),
    [pytest.param("text", 16, 0, id="text"), pytest.param("sentence", 5, 1, id="sentence")],
)
def test_inspect_says_what_sentences_would_be_drawn(
    bank,
    here,
    capsys,
    unit,
    n_drawn,
    n_unique,
):
    """With the text as unit all texts have the same number of sentences, so none is unique. With
    the sentence as unit one text has a number of its own."""
    _look(bank, here, "inspect", "in.jsonl", unit=unit)
    found = json.loads(capsys.readouterr().out)
    assert found["by_class"]["sentence"]["perturbed"] == n_drawn == found["tried"]["tokens"]
    assert found["budget"]["epsilon_per_token"]["least"] == 10.0
    assert found["tried"]["unique_structures"] == n_unique
    assert found["guarantee"]["formula"] != "none"


def inspected(file, bank, **how):
    return lexveil.inspect(file, bank=str(bank), quiet=True, **HOW | {"model": "en"} | how)


def test_inspect_of_one_text_says_that_nothing_of_its_structure_is_disclosed(bank, here):
    (here / "one.txt").write_text(f"{TEXTS[0]}\n")
    found = inspected("one.txt", bank)
    assert found.tried.unique_structures == 0
    assert "none is told from the others by its shape" in str(found)


@pytest.mark.parametrize(("unit", "shown"), [("text", None), ("sentence", 100)])
def test_the_cap_of_a_new_ledger_is_that_of_ten_texts_of_sentences(bank, here, unit, shown):
    """With the text as unit every text spends as much; else a text of ten sentences is ordinary."""
    (here / "in.txt").write_text("\n".join(TEXTS[:2]))
    found = inspected("in.txt", bank, unit=unit)
    assert found.budget.default_cap == 10 * 10.0 * (PER_TEXT if unit == "text" else 10)
    assert found.spending.longest_row == shown
    assert ("a row of more than 100 sentences is withheld" in str(found)) == (shown is not None)
    assert "perturbed tokens" not in str(found)


def test_inspect_says_what_a_purpose_hides_less(bank, here):
    (here / "in.txt").write_text("\n".join(TEXTS[:2]))
    plain, kept = (str(inspected("in.txt", bank, model=name)) for name in ("en", "en+sentiment=3"))
    assert "Less hidden" not in plain
    assert kept.count("Less hidden, by the purpose sentiment=3: where a text stands on it") == 1


@pytest.mark.parametrize("unit", ["text", "sentence"])
def test_a_preview_shows_what_an_experiment_writes(bank, here, capsys, unit):
    _look(bank, here, "privatize", "in.jsonl", preview=4, seed=3, unit=unit)
    found = json.loads(capsys.readouterr().out)
    texts = [row["texts"][0] for row in found["rows"]]
    outputs = [text["output"] for text in texts]
    assert outputs == list(privatize(TEXTS, bank, unit=unit, seed=3).values)
    sentences = [
        [text["output"][slice(*token["output"])] for token in text["tokens"]] for text in texts
    ]
    assert sentences == written(outputs)
    if unit == "sentence":
        cut_texts = [
            text["source"][slice(*token["source"])] for text in texts for token in text["tokens"]
        ]
        assert cut_texts[:3] == ["The food was cold.", "Nobody came!", "We left early."]


# Faults: each makes something of the source, or of the batch, a part of what is public.


def _lengths_of_the_batch(patch):
    scale_by_the_batch(patch, 10)


def _mean_of_the_batch(patch):
    made = SentenceSpace.embed
    patch.setattr(
        SentenceSpace,
        "embed",
        lambda self, units: made(self, units) - made(self, units).mean(axis=0),
    )


@pytest.mark.parametrize("fault", [_lengths_of_the_batch, _mean_of_the_batch])
def test_vectors_that_depend_on_other_texts_are_seen(bank, fault, monkeypatch):
    """A text has the same output, whatever stands beside it."""

    def is_alone_as_beside():
        alone = privatize(SENTENCES[:20], bank, seed=1, epsilon=20.0).values
        return bool(privatize(SENTENCES[:60], bank, seed=1, epsilon=20.0).values[:20] == alone)

    assert is_alone_as_beside()
    fault(monkeypatch)
    assert not is_alone_as_beside()


def test_a_charge_once_for_several_sentences_is_seen(bank, monkeypatch):
    """The drawn sentences are compared with those that were planned, and with the budget."""
    plain = engine.allocate
    monkeypatch.setattr(
        engine, "allocate", lambda strategy, budget, counts: plain(strategy, budget, counts) * 4
    )
    with pytest.raises(NoBoundError, match="differs from the plan"):
        privatize(TEXTS, bank)


@pytest.mark.parametrize("strategy", ["S5", "S9"])
def test_calibration_is_of_words(strategy, capsys):
    from asking import command as run

    asked = ("calibrate", "--recovery", 0.1, "--strategy", strategy, "--model", "en")
    assert run(*asked) == 2
    assert "the strategies are S1, S2, S3, S4" in capsys.readouterr().err


def test_an_inspection_speaks_of_sentences(bank, here):
    Path("in.txt").write_text("The food was cold.\nWe left early.\n")
    found = lexveil.inspect("in.txt", model="en", bank=str(bank), **HOW)
    assert "2 texts, 8 sentences to be written in their place" in str(found)
    assert "token" not in str(found) and "vocabulary" not in str(found)


def test_a_preview_counts_sentences(bank, here):
    Path("in.txt").write_text("The food was cold.\n")
    told = io.StringIO()
    found = preview(Path("in.txt"), 1, model="en", bank=str(bank), seed=1, **HOW)
    show_preview(found, Console(file=told, width=200))
    assert "sentences: " in told.getvalue() and "tokens: " not in told.getvalue()
