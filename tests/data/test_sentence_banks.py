"""Banks of sentences: which are chosen, what a bank says of itself, and what is refused."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest
from asking import command

from lexveil.base.errors import RequestError
from lexveil.io.artifacts.bank_neighbours import neighbours
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import FEWEST, open_bank, read_card, units_of_texts
from lexveil.io.execution import duckdb_session
from lexveil.lab.data import public_sentences
from lexveil.lab.data.public_sentences import PublicTexts, TextSample
from lexveil.lab.data.sentence_banks import BankOptions, build
from lexveil.lab.data.sentence_choice import Choice
from tests.privatization.sentence_banks import SENTENCES, build_bank, documents, write_texts


def chosen(*rows, size=100, seed=1):
    """The sentences that the query takes."""
    names = ("text", "weight", "n_words", "n_known", "is_screened")
    candidates = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    with duckdb_session.session() as con:
        con.register("candidates", candidates)
        limits = Choice().limits()
        found = duckdb_session.run(con, "sentences/bank", **limits, seed=seed, size=size)
        return [text for text, *_ in found.fetchall()]


def row(text, known=None, screened=False, weight=1.0):
    n = len(text.split())
    return text, weight, n, n if known is None else known, screened


def test_takes_distinct_sentences_within_the_limits():
    long = " ".join(["word"] * 26) + "."
    found = chosen(
        row("The film was good."),
        row("the film was good."),
        row("The film was good."),
        row("Too short."),
        row(long),
        row("One of its words is not known here.", known=7),
        row("A screened word stands in it.", screened=True),
        row("a line without an end"),
        row(long[5:]),
    )
    assert sorted(found) == ["The film was good.", long[5:]]


@pytest.mark.parametrize(
    "text",
    [
        "Write to me at ann@example.org soon.",
        "See http://example.org/page for it.",
        "Our page is example.com as ever.",
        "Call me on 555 0199 tomorrow please.",
        "Call 01 23 45 now please.",
        "I live at 12 Elm Street now.",
        "It cost me 1200 in all.",
        "Ask @somebody about it.",
    ],
)
def test_takes_no_address_and_no_number_to_call(text):
    assert chosen(row("It was good enough."), row(text)) == ["It was good enough."]


def test_the_choice_goes_by_hash():
    """A smaller choice is the beginning of a larger one; neither order nor repetition changes a
    choice, and a seed does.
    """
    rows = [row(sentence) for sentence in SENTENCES[:200]]
    some = chosen(*rows, size=50)
    assert len(some) == 50 and chosen(*rows, size=80)[:50] == some
    assert chosen(*rows[::-1], *rows, size=50) == some
    assert chosen(*rows, size=50, seed=2) != some


def test_a_source_of_a_larger_weight_gives_more():
    """100 of 400 sentences are drawn, of which every other weighs four times as much: about 77 of
    those that are drawn are heavy.
    """
    rows = [row(text, weight=1.0 + 3 * (n % 2)) for n, text in enumerate(SENTENCES[:400])]
    heavy = {text for text, weight, *_ in rows if weight > 1}
    assert 65 <= len(heavy & {*chosen(*rows)}) <= 92


def test_pieces_of_the_texts_of_the_smallest_hashes(monkeypatch):
    """Each text gives its first 40 words first, or all of a shorter one; longer texts give whole
    pieces alone. Neither order nor repetition changes them.
    """
    monkeypatch.setattr(public_sentences, "CANDIDATES", 30)
    lexicon = Model.load(name="en").lexicon("S3")
    long = "good " * 130
    texts = [f"{sentence} {long if n % 2 else ''}" for n, sentence in enumerate(SENTENCES[:20])]
    samples = [TextSample(), TextSample()]
    for sample, order in zip(samples, (texts, texts[::-1] * 2), strict=True):
        for start in range(0, len(order), 7):
            part = order[start : start + 7]
            assert [*sample.passing([PublicTexts(part, [1.0] * len(part))])]
    units, again = (sample.pieces(lexicon).texts for sample in samples)
    assert np.array_equal(units.rows, again.rows) and np.array_equal(units.starts, again.starts)
    sizes = np.diff(units.starts).tolist()
    assert len(units) == 30 and sum(size < 40 for size in sizes) == 10
    assert units.rows.tolist() == TextSample.of(texts).pieces(lexicon).texts.rows.tolist()


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    return build_bank(tmp_path_factory.mktemp("banks"))


def test_a_bank_says_what_it_is_of(bank):
    card = read_card(bank)
    model = Model.load(name="en")
    assert (card.sentences, card.public, card.model) == (len(SENTENCES), True, "en")
    assert card.model_sha256 == model.sha256
    assert [source.name for source in card.sources] == ["public.jsonl"]
    opened = open_bank(bank, model)
    assert sorted(opened.texts) == sorted(SENTENCES)
    units = units_of_texts([*opened.texts], model)
    assert np.array_equal(opened.vectors, opened.space.embed(units))
    assert opened.n_words.tolist() == [len(text.split()) for text in opened.texts]


def test_the_same_texts_give_the_same_bank(bank, tmp_path):
    """Packed, in another order and twice, all but the hash of the source is the same."""
    with gzip.open(tmp_path / "again.jsonl.gz", "wt") as file:
        for text in documents()[::-1] * 2:
            file.write(json.dumps({"body": text}) + "\n")
    options = BankOptions(model="en", is_public=True, text_column="body")
    card = build([tmp_path / "again.jsonl.gz"], tmp_path / "bank", options)
    assert card.files == read_card(bank).files


def test_purposes_are_coordinates_of_an_opened_bank(bank):
    plain, kept = (open_bank(bank, Model.load(name=name)) for name in ("en", "en+sentiment=3"))
    assert kept.vectors.shape[1] == plain.vectors.shape[1] + 1
    assert np.array_equal(kept.vectors[:, :-1], plain.vectors)
    score = dict(zip(kept.texts, kept.vectors[:, -1].tolist(), strict=True))
    good, bad = (score[f"The film was {word} today."] for word in ("wonderful", "terrible"))
    assert good > 0 > bad
    with pytest.raises(RequestError, match="at most 5"):
        open_bank(bank, Model.load(name="en+sentiment=6"))


def test_the_nearest_sentence_is_itself(bank):
    first, *others = neighbours(bank, "The film was terrible today.", 5, Model.load(name="en"))
    assert (first.distance, first.sentence) == (0.0, "The film was terrible today.")
    assert [one.distance for one in others] == sorted(one.distance for one in others)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda bank: (bank / "bank.json").unlink(), "is no bank"),
        (lambda bank: (bank / "bank.json").write_text("{}"), "cannot be read"),
        (lambda bank: (bank / "rows.npy").unlink(), "rows.npy: the hash of the file differs"),
        (
            lambda bank: (bank / "vectors.npy").write_bytes(
                (bank / "vectors.npy").read_bytes()[:-1]
            ),
            "vectors.npy: the hash of the file differs",
        ),
        (lambda bank: edit(bank, format=3), "format 3"),
        (lambda bank: edit(bank, sentences=FEWEST - 1), "needs at least 1,000"),
        (lambda bank: edit(bank, sentences=FEWEST), "bank.json: the hash of the file differs"),
        (lambda bank: edit(bank, files={}), "bank.json: the hash of the file differs"),
        (
            lambda bank: edit(bank, model="glove", model_sha256="0" * 64),
            "the bank was built with model glove",
        ),
    ],
)
def test_a_damaged_bank_is_refused(bank, tmp_path, damage, said):
    copy = tmp_path / "bank"
    copy.mkdir()
    for file in bank.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    damage(copy)
    with pytest.raises(RequestError, match=said):
        open_bank(copy, Model.load(name="en"))


def edit(bank, **fields):
    card = json.loads((bank / "bank.json").read_text())
    (bank / "bank.json").write_text(json.dumps(card | fields))


def test_build_says_that_a_bank_is_not_said_to_be_public_and_replaces_none(tmp_path, cli):
    texts = write_texts(tmp_path / "public.csv")
    ask = ("sentences", "build", texts, "-o", tmp_path / "bank", "--model", "en")
    assert "not declared public" in cli(*ask).out
    assert "exists already" in cli(*ask, code=2).err


def test_build_of_too_few_sentences_makes_nothing(tmp_path, cli):
    few = write_texts(tmp_path / "few.csv", SENTENCES[:50])
    ask = ("sentences", "build", few, "-o", tmp_path / "bank", "--model", "en")
    said = cli(*ask, code=2, told="reading .*\n").err
    assert "only 50 sentences of the sources are suitable" in said
    assert not (tmp_path / "bank").exists()


def test_build_of_an_absent_file_is_refused(tmp_path):
    assert command("sentences", "build", tmp_path / "none", "-o", tmp_path / "bank") == 2


def test_show_tells_of_a_bank_in_json(bank, cli):
    assert json.loads(cli("sentences", "show", bank, "--json").out)["public"] is True


def test_show_lists_the_sentences_nearest_to_a_text(bank, cli):
    said = cli("sentences", "show", bank, "The film was good today.", "--model", "en").out
    assert said.startswith("0.000  The film was good today.")


def test_show_of_a_text_without_a_known_word_is_refused(bank, cli):
    said = cli("sentences", "show", bank, "zzxq qqzx", "--model", "en", code=2).err
    assert "knows no word" in said


def test_sentences_of_the_fixture_are_distinct():
    assert len({*SENTENCES}) == len(SENTENCES) >= FEWEST
    assert all(sentence.endswith(".") for sentence in SENTENCES)
