"""Findings of detectors from a request to the record: fates, outputs, counts, statement, and
refusals.
"""

import json
import string

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import privatize_file

import lexveil
from lexveil import LexveilError, Model, RequestError
from lexveil.core.accounting.budgets import DocumentBudget
from lexveil.core.accounting.measurements import NoBoundError
from lexveil.core.detectors.detection import Detection
from lexveil.core.detectors.given import GivenSpan
from lexveil.core.text.spans import Span
from lexveil.io.request import Request
from lexveil.release.engine.engine import WordEngine
from lexveil.release.engine.plan import form_of, redrawn
from lexveil.release.settings import settings_of
from tests.accounting.toy_measurements import between, structures_of

HOW = {
    "mechanism": "tem",
    "strategy": "S3",
    "document_budget": 30.0,
    "max_token_epsilon": 5.0,
}
TEXT = "The police said that Zora Quix and Bo Ylem met Zora Quix at 17-B Elm."
ZORA = (21, 30)
BO = (35, 42)
AGAIN = (47, 56)
PLACE = (60, 64)


def at(*spans):
    return [{"start": start, "end": end, "type": kind} for (start, end), kind in spans]


SPANS = at((ZORA, "PERSON"), (BO, "PERSON"), (AGAIN, "PERSON"), (PLACE, "NUMBER"))


@pytest.fixture
def names(tmp_path):
    file = tmp_path / "names.txt"
    file.write_text("[PERSON]\nMary Poe\nJohn Doe\n", encoding="utf-8")
    return file


def rewritten(types, **more):
    return lexveil.privatize([TEXT], spans=[SPANS], types=types, **{**HOW, "seed": 3} | more)


def found_rows(done):
    log = done.token_log.to_pylist()
    assert all((row["type"] is not None) == (row["class"] == "found") for row in log)
    return [(row["type"], row["action"], row["epsilon"]) for row in log if row["type"]]


def test_the_default_is_a_placeholder_for_a_whole_name(built):
    done = rewritten({})
    assert done.values[0].count("[PERSON]") == 3 and done.values[0].count("[NUMBER]") == 1
    assert found_rows(done) == [("PERSON", "placeholder", 0.0)] * 3 + [
        ("NUMBER", "placeholder", 0.0)
    ]
    assert done.record.counts.found == {"NUMBER": {"placeholder": 1}, "PERSON": {"placeholder": 3}}
    assert done.operator.counts.found == done.record.counts.found
    counts = done.record.counts  # every token is counted once
    assert (
        counts.n_tokens
        == counts.n_perturbed + counts.n_kept + counts.n_dropped + counts.n_sampled + 4
    )
    of_classes = sum(
        sum(actions.to_dict().values())
        for _, actions in done.operator.counts.by_class
        if actions is not None  # of sentences
    )
    assert of_classes + 4 == counts.n_tokens == len(done.token_log)
    assert not {"zora", "quix", "ylem"} & set(json.dumps(done.record.to_dict()).lower().split())


def test_pseudonyms_are_equal_where_names_are_and_different_where_they_are_not(built, names):
    done = rewritten({"PERSON": "pseudonym"}, pseudonyms=names)
    places = sorted((done.values[0].find(name), name) for name in ("Mary Poe", "John Doe"))
    first, second = (name for _, name in places)
    assert done.values[0].count(first) == 2 and done.values[0].count(second) == 1
    assert done.values[0].index(second) < done.values[0].rindex(first)
    reason = next(
        reason for reason in done.record.guarantee.in_release.because if "random name" in reason
    )
    assert "it is not hidden which tokens are equal" in reason


def test_pseudonyms_are_uniform_and_depend_on_equality_alone(built, names):
    """Two names, one document each: 400 fair draws lie within 4 standard deviations of half but for
    1 in 15,000."""
    texts = ["Zora"] * 400
    spans = [at(((0, 4), "PERSON"))] * 400
    how = HOW | {"seed": 5, "types": {"PERSON": "pseudonym"}, "pseudonyms": names}
    values = lexveil.privatize(texts, spans=spans, **how).values
    assert abs(values.count("Mary Poe") - 200) < 40 and set(values) == {"Mary Poe", "John Doe"}
    assert lexveil.privatize(["Ylem"] * 400, spans=spans, **how).values == values


def test_digits_keep_the_form_and_nothing_else():
    text = "+49 (0)30 12-3é"
    form = form_of(text)
    assert form == "+99 (9)99 99-9a"
    drawn = [redrawn(form, np.random.default_rng(seed)) for seed in range(200)]
    assert all(form_of(one) == form for one in drawn)
    assert {one[1] for one in drawn} == set(string.digits)
    assert form_of("Ann\n Lee😀") == "Aaa Aaaa"  # what is no number is not copied either


def test_written_digits_are_uniform_whatever_stood_there(built):
    """The digit of the source among them: of 4,000 fair draws each is within 5 standard deviations
    of 400."""
    how = HOW | {"seed": 5, "types": {"N": "digits"}}
    values = lexveil.privatize(["7"] * 4000, spans=[at(((0, 1), "N"))] * 4000, **how).values
    counts = [values.count(digit) for digit in string.digits]
    assert sum(counts) == 4000 and all(abs(count - 400) < 95 for count in counts)


def structure_of(text, spans, **more):
    model = Model.load()
    engine = WordEngine(
        settings_of(Request(**HOW, spans_column="spans", **more), model.project), model
    )
    rows = [[GivenSpan(0, Span(one["start"], one["end"], one["type"])) for one in spans]]
    (structure,) = structures_of(engine, [[text]], DocumentBudget(30.0, 5.0), rows)
    return structure, engine


@pytest.mark.parametrize(
    ("other", "spans", "types", "difference"),
    [
        ("police met Ann", at(((11, 14), "PLACE")), {}, "what was found"),
        ("police met Ann", [], {}, "the fate of a token"),
        ("police met A-1", at(((11, 14), "PERSON")), {"PERSON": "digits"}, "the form of a number"),
        # how many words a name has is hidden
        ("police met Zoe Quix", at(((11, 19), "PERSON")), {}, ""),
    ],
)
def test_neighbours_share_what_was_found(built, other, spans, types, difference):
    first, engine = structure_of("police met Ann", at(((11, 14), "PERSON")), types=types)
    second, _ = structure_of(other, spans, types=types)
    measurement = engine.measurement(DocumentBudget(30.0, 5.0))
    distances = np.zeros(int((first.epsilon > 0).sum()))
    if not difference:
        assert between(measurement, first, second, distances).nats < 1e-6
        return
    with pytest.raises(NoBoundError, match=difference):
        between(measurement, first, second, distances)


@pytest.mark.parametrize("strategy", ["S1", "S2"])
def test_no_epsilon_tells_how_many_words_a_name_has(built, monkeypatch, strategy):
    """A budget that is divided by words counts what was found as one of eight."""
    monkeypatch.setitem(HOW, "strategy", strategy)
    said = "the police said that they had met "
    one, _ = structure_of(f"{said}Ann", at(((34, 37), "PERSON")))
    two, _ = structure_of(f"{said}Zoe Quix", at(((34, 42), "PERSON")))
    assert one.differences(two) == []
    assert one.epsilon.max() == pytest.approx(30.0 / 8, rel=1e-9)


def test_the_statement_rests_on_no_detector(built):
    how = HOW | {"strategy": "S1"}
    plain = lexveil.privatize([TEXT], seed=1, **how).record.guarantee.in_release
    stated = lexveil.privatize([TEXT], spans=[SPANS], seed=1, **how).record.guarantee.in_release
    assert any("always have the same structure" in reason for reason in plain.because)
    assert not any("always have the same structure" in reason for reason in stated.because)
    assert "with the same types found at the same places" in stated.statement
    assert any("no claim relies on the findings" in reason for reason in stated.because)
    assert "One changed word can change the findings" in stated.not_covered


def test_output_is_a_function_of_structure_and_noise(built):
    """One seed always gives the same text, whatever the found tokens are."""
    types = {"PERSON": "sample", "NUMBER": "digits"}
    outputs = set()
    for name, number in (("Zora Quix", "17-B"), ("police", "99-Z"), ("New South Wales", "00-A")):
        text = f"The police met {name} at {number} ."
        end = 15 + len(name)
        spans = at(((15, end), "PERSON"), ((end + 4, end + 8), "NUMBER"))
        outputs.add(lexveil.privatize([text], spans=[spans], types=types, seed=2, **HOW).values[0])
    assert len(outputs) == 1


def test_the_users_list_and_what_it_may_not_claim(built, tmp_path):
    (tmp_path / "protect.txt").write_text("[PERSON]\nzora quix\nBo\nPolice\n", encoding="utf-8")
    (tmp_path / "allow.txt").write_text("police force\n", encoding="utf-8")
    lists = {"protect": tmp_path / "protect.txt", "allow": tmp_path / "allow.txt"}
    done = lexveil.privatize([TEXT, "The police force. Police!"], seed=1, **HOW, **lists)
    assert done.values[0].count("[PERSON]") == 4
    assert done.values[1].count("[PERSON]") == 1
    assert done.record.detection.sources == ["a list of the operator"]
    assert "zora" not in json.dumps(done.record.to_dict())


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "not null"])
def test_a_column_of_spans_is_read_and_comes_out_empty(built, tmp_path, form, capsys):
    """If the column were published, it would reveal the lengths of words. The test includes a
    column that cannot be null, as DuckDB writes it."""
    file = tmp_path / f"in.{form.replace('not null', 'parquet')}"
    rows = [{"text": TEXT, "found": SPANS}, {"text": "Police said no.", "found": []}]
    if form in ("csv", "not null"):
        rows = [row | {"found": json.dumps(row["found"])} for row in rows]
    table = pa.Table.from_pylist(rows)
    if form == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif form == "csv":
        table.to_pandas().to_csv(file, index=False)
    else:
        schema = pa.schema([field.with_nullable(form == "parquet") for field in table.schema])
        pq.write_table(table.cast(schema), file)
    out = file.with_stem("out")
    types = {"Persn": "drop", "NUMBER": "placeholder", "PLACE": "perturb"}
    done = privatize_file(file, out, spans_column="found", seed=1, types=types, **HOW)
    said = capsys.readouterr().err
    assert (
        said.count("no match has the type")
        == said.count("no match has the type PERSN, which --type")
        == 1
    )
    rows = duckdb.sql(f"from '{out}'").fetchall()
    assert [found or None for _, found in rows] == [None, None]
    assert rows[0][0].count("[PERSON]") == 3 and "[" not in rows[1][0]
    assert pq.read_table(f"{out}.tokens.parquet")["type"].to_pylist().count("PERSON") == 3
    assert done.record.counts.found == {"NUMBER": {"placeholder": 1}, "PERSON": {"placeholder": 3}}


def test_a_detector_that_changes_its_mind_releases_nothing(built, tmp_path, monkeypatch):
    (tmp_path / "protect.txt").write_text("police\n", encoding="utf-8")
    seen = []
    claim = Detection.claim

    def fickle(self, texts, spans=()):
        seen.append(1)
        return claim(self if len(seen) == 1 else Detection(), texts, spans)

    monkeypatch.setattr(Detection, "claim", fickle)
    (tmp_path / "in.jsonl").write_text('{"text": "police"}\n', encoding="utf-8")
    how = HOW | {"protect": str(tmp_path / "protect.txt")}
    with pytest.raises(LexveilError, match="found other tokens"):
        privatize_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl", **how)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"spans": [[]], "types": {"a b": "drop"}}, "a type must be a name"),
        ({"spans": [[]], "types": {"PLACE": "pseudonym"}}, "PLACE needs a list of pseudonyms"),
        ({"spans": []}, "spans: there are 0 values for 1 texts"),
        ({"spans": "found"}, "names a column, but texts is a list"),
    ],
)
def test_what_cannot_be_served_is_refused(built, how, message):
    with pytest.raises(RequestError, match=message):
        lexveil.privatize([TEXT], seed=1, **HOW, **how)
