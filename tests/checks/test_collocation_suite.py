"""The collocation suite through its SQL: N = 1000 tokens, counts by hand, one defect at a time."""

import json
from math import inf, log2, nan

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.base.runtime.tables import write_json
from lexveil.io.config import CollocationParams, parse_params
from lexveil.lab.checks.collocation_suite import collocation_suite
from tasks import check_collocations
from tests.checks.conftest import rules_of

N = 1000
WORDS = {
    ",": (60, "punctuation"),
    "the": (50, "connector"),
    "new": (40, "word"),
    "york": (20, "word"),
    "zanzibar": (10, "word"),
}
IDS = {word: number for number, word in enumerate(WORDS)}
BIGRAMS = {("new", "york"): 15, ("york", "zanzibar"): 8}
TRIGRAMS = {("new", "york", "zanzibar"): 6}

STRING = pa.string()
COUNT = pa.int64()
WORD_SCHEMA = pa.schema(
    [("word_id", pa.int32()), ("word", STRING), ("count", COUNT), ("kind", STRING)]
)
ORDINALS = ("first", "second", "third")


def pmi(words, count):
    product = 1
    for word in words:
        product *= WORDS.get(word, (1, ""))[0]
    return log2(N ** (len(words) - 1) * count / product)


def kept(ngrams, length):
    columns = [f"{ordinal}_word" for ordinal in ORDINALS[:length]]
    rows = [(*words, count, pmi(words, count)) for words, count in ngrams.items()]
    return pd.DataFrame(rows, columns=[*columns, "count", "pmi_bits"], dtype=object)


def counted(ngrams, length):
    columns = [f"{ordinal}_id" for ordinal in ORDINALS[:length]]
    rows = [
        (*(IDS[word] for word in words), count)
        for words, count in ngrams.items()
        if set(words) <= set(IDS)
    ]
    return pd.DataFrame(rows, columns=[*columns, "count"])


@pytest.fixture
def check(write, tmp_path, docs, out, machine, monkeypatch):
    """Write consistent tables for these n-grams, spoil the collocations, run the stage."""
    monkeypatch.chdir(tmp_path)

    def _check(bigrams=BIGRAMS, trigrams=TRIGRAMS, spoil=None, min_pmi=2.0, base=None, added=None):
        tables = kept(bigrams, 2), kept(trigrams, 3)
        if spoil is not None:
            spoil(*tables)
        words = pd.DataFrame(
            [(IDS[word], word, *known) for word, known in WORDS.items()], columns=WORD_SCHEMA.names
        )
        write("artifacts/ngrams/words.parquet", words, WORD_SCHEMA)
        for length, ngrams, table in zip((2, 3), (bigrams, trigrams), tables, strict=True):
            name = ("bigrams", "trigrams")[length - 2]
            ids = pa.schema(
                [
                    *((f"{ordinal}_id", pa.int32()) for ordinal in ORDINALS[:length]),
                    ("count", COUNT),
                ]
            )
            write(f"artifacts/ngrams/{name}.parquet", counted(ngrams, length), ids)
            names = [(f"{ordinal}_word", STRING) for ordinal in ORDINALS[:length]]
            schema = pa.schema([*names, ("count", COUNT), ("pmi_bits", pa.float64())])
            write(f"artifacts/collocations/{name}.parquet", table, schema)
            if added is not None:
                pq.write_table(
                    added[name], tmp_path / "artifacts/collocations" / f"base_{name}.parquet"
                )
        write_json({"n_tokens": N}, tmp_path / "artifacts/metrics/ngrams.json")
        limits = CollocationParams(min_count=2, min_pmi=min_pmi)
        params = parse_params({"seed": 1}).model_copy(update={"collocations": limits})
        return check_collocations.run(params, machine, out, docs, base)

    return _check


def test_sound_tables_pass(check, out):
    assert check() == {"n_bigrams": 2, "n_trigrams": 1}
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["summary"] == {"n_bigrams": 2, "n_trigrams": 1}
    assert "zanzibar" not in out.read_text(encoding="utf-8")


def put(column, value):
    """Set one value of the first bigram."""

    def _put(bigrams, trigrams):
        bigrams.at[0, column] = value

    return _put


def off(difference):
    return lambda bigrams, trigrams: trigrams.__setitem__(
        "pmi_bits", trigrams["pmi_bits"] + difference
    )


def repeat(bigrams, trigrams):
    trigrams.loc[len(trigrams)] = trigrams.loc[0]


def more(bigrams, trigrams):
    """One occurrence more than was counted, with the PMI that belongs to it."""
    bigrams.loc[1] = ["york", "zanzibar", 9, pmi(("york", "zanzibar"), 9)]


DEFECTS = [
    ({"spoil": off(1e-6)}, ("pmi_difference_bits", 1, pytest.approx(1e-6))),
    ({"bigrams": {}, "trigrams": {}}, ("n_wanting", 1, 1)),
    ({"bigrams": BIGRAMS | {("zanzibar", "york"): 1}}, ("n_below_count", 1, 1)),
    ({"min_pmi": 5.0}, ("n_below_pmi", 1, 1)),
    ({"bigrams": BIGRAMS | {("york", "minster"): 3}}, ("n_unknown", 1, 1)),
    ({"bigrams": BIGRAMS | {("the", "york"): 9}}, ("n_barred", 1, 1)),
    ({"spoil": repeat}, ("n_repeated", 1, 2)),
    ({"bigrams": BIGRAMS | {("new", "zanzibar"): 11}}, ("n_overcounted", 1, 1)),
    ({"spoil": more}, ("n_miscounted", 1, 1)),
    ({"spoil": off(nan)}, ("pmi_difference_bits", 1, inf)),
    ({"spoil": put("pmi_bits", None)}, ("n_below_pmi", 1, 1)),
    ({"spoil": put("count", None)}, ("n_below_count", 1, 1)),
    ({"spoil": put("second_word", None)}, ("n_unknown", 1, 1)),
]


@pytest.mark.parametrize(("changes", "first"), DEFECTS)
def test_each_defect_stops(check, fault, changes, first):
    assert fault(lambda: check(**changes)) == first


def of_base(*rows):
    """Bigrams of a base, and no trigram."""
    names = [f"{ordinal}_word" for ordinal in ORDINALS]
    figures = [("count", COUNT), ("pmi_bits", pa.float64())]
    bigrams = pa.schema([*((name, STRING) for name in names[:2]), *figures])
    trigrams = pa.schema([*((name, STRING) for name in names), *figures])
    columns = zip(*rows, strict=True) if rows else ([],) * 4
    return {
        "bigrams": pa.table(list(map(list, columns)), schema=bigrams),
        "trigrams": trigrams.empty_table(),
    }


KNOWN = ("new", "york", 900, 7.0)
NEW = ("red", "tape", 80, 6.5)


def test_what_is_no_defect(check, fault):
    assert fault(lambda: check(spoil=off(1e-10))) is None  # rounding
    assert fault(lambda: check(trigrams={})) is None


def test_a_base_adds_what_the_corpus_lacks(check):
    base = of_base(KNOWN, NEW)
    found = check(base=base, added=of_base(NEW))
    assert found == {
        "n_bigrams": 2,
        "n_trigrams": 1,
        "n_bigrams_of_base": 1,
        "n_trigrams_of_base": 0,
    }
    # the corpus need have none
    assert check(bigrams={}, trigrams={}, base=base, added=base)["n_bigrams"] == 0


@pytest.mark.parametrize("added", [(), (KNOWN, NEW), (("red", "tape", 81, 6.5),), (NEW, NEW)])
def test_what_a_base_adds_is_what_it_has(check, fault, added):
    assert fault(lambda: check(base=of_base(KNOWN, NEW), added=of_base(*added)))[0] == "n_strays"


def test_each_rule_was_seen_to_fail():
    seen = {first for _, (first, _, _) in DEFECTS} | {"n_strays"}  # there are always two lengths
    assert rules_of(collocation_suite(2, 2.0)) - {"ngrams"} == seen
