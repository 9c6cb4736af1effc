"""Presidio's pattern recognizers, without a network, and names that a pipeline of spaCy finds, by a
list of its own."""

import importlib.util
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from asking import no_network, privatize_file

import lexveil
from lexveil.base.errors import RequestError
from lexveil.core.detectors.presidio import Presidio
from lexveil.faces.cli.main import main
from tests.tasks.changing import configure

# Not imported, which takes a third of the time in which all tests are listed.
if importlib.util.find_spec("presidio_analyzer") is None:
    pytest.skip("presidio_analyzer is not installed", allow_module_level=True)

TEXT = "The parcel is for Zora Quix . The station is closed on Monday ."
PATTERNS = "Mail ann@example.com or call 212-555-0123; card 4111 1111 1111 1111. Version 3.14."
HOW = {"mechanism": "tem", "strategy": "S3", "document_budget": 30.0, "max_token_epsilon": 5.0}


@pytest.fixture
def ruled(tmp_path):
    """The folder of a pipeline that knows two names."""
    import spacy

    nlp = spacy.blank("en")
    names = [{"label": "PERSON", "pattern": name} for name in ("Zora Quix", "Bo Ylem")]
    nlp.add_pipe("entity_ruler").add_patterns(names)
    nlp.to_disk(tmp_path / "toy_names")
    return tmp_path / "toy_names"


def found(detector):
    (spans,) = detector.find([PATTERNS])
    return {(PATTERNS[span.start : span.end], span.type) for span in spans}


def test_patterns_need_no_model_and_no_network(monkeypatch):
    no_network(monkeypatch)
    spans = found(Presidio())
    assert {("ann@example.com", "EMAIL_ADDRESS"), ("212-555-0123", "PHONE_NUMBER")} <= spans
    assert ("4111 1111 1111 1111", "CREDIT_CARD") in spans
    assert not any("3.14" in text for text, _ in spans)


def test_only_what_is_asked_for_is_found():
    assert found(Presidio(entities=("EMAIL_ADDRESS",))) == {("ann@example.com", "EMAIL_ADDRESS")}


def detect_names(project, model, **presidio):
    """Configure a project to detect names by a spaCy model, and write its in.jsonl."""
    settings = {"spacy_model": str(model), **presidio}
    configure(project, detection={"detector": "presidio", "presidio": settings})
    rows = [TEXT, None, "We met Bo Ylem at the station ."]
    (project / "in.jsonl").write_text(
        "".join(json.dumps({"text": row}) + "\n" for row in rows), encoding="utf-8"
    )


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_name_comes_out_as_its_type(built, ruled, capfd, workers):
    shutil.copytree(ruled, built / "toy_names")
    detect_names(built, "./toy_names")  # from where one is
    done = privatize_file("in.jsonl", "out.jsonl", workers=workers, **HOW)
    texts = [
        json.loads(line)["text"]
        for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [text and text.count("[PERSON]") for text in texts] == [
        1,
        None,
        1,
    ] and "Quix" not in texts[0]
    assert done.record.counts.found["PERSON"] == {"placeholder": 2}
    assert done.record.detection.sources[0].endswith("(patterns and toy_names)")
    log = pq.read_table("out.jsonl.tokens.parquet").to_pylist()
    # Two words are one token, which no epsilon is spent on.
    assert [(row["action"], row["epsilon"]) for row in log if row["type"] == "PERSON"] == [
        ("placeholder", 0.0)
    ] * 2
    assert "quix" not in "".join(capfd.readouterr()).lower()
    # Without the model the same words are no find.
    detect_names(built, ruled, entities=["EMAIL_ADDRESS"])
    assert "[PERSON]" not in lexveil.privatize([TEXT], seed=1, **HOW).values[0]


def test_a_model_that_is_not_there_is_refused_before_anything_is_read_or_charged(built, capsys):
    detect_names(built, "/nowhere/en_core_web_lg")
    assert (
        main("privatize in.jsonl -o out.jsonl --mechanism tem --strategy S3 --epsilon 5".split())
        == 2
    )
    said = capsys.readouterr().err
    assert (
        "spacy_model: en_core_web_lg is neither an installed model of spaCy nor a folder of one"
        in said
    )
    assert "does not download models" in said and "/nowhere" not in said
    assert not (built / "out.jsonl").exists() and not (built / ".lexveil/ledger").exists()


def test_a_request_names_its_own_model(outside, ruled, capsys):
    """A model needs a detector that uses it. For a missing model the message gives advice, and
    nothing is written.
    """
    asked = HOW | {"model": "toy", "seed": 1}
    done = lexveil.privatize([TEXT], detector="presidio", spacy_model=ruled, **asked)
    assert done.values[0].count("[PERSON]") == 1
    with pytest.raises(
        RequestError,
        match=r"^spacy_model has no effect without the detector presidio; add detector presidio$",
    ):
        lexveil.privatize([TEXT], spacy_model=ruled, **asked)
    (outside / "in.jsonl").write_text(json.dumps({"text": TEXT}) + "\n", encoding="utf-8")
    command = [
        "privatize",
        "in.jsonl",
        "-o",
        "out.jsonl",
        "--model",
        "toy",
        "--detector",
        "presidio",
    ]
    assert main([*command, "--spacy-model", "en_core_web_none"]) == 2
    assert "--spacy-model: en_core_web_none is neither an installed model" in (
        said := capsys.readouterr().err
    )
    assert "`python -m spacy download NAME`" in said and [
        file.name for file in outside.iterdir()
    ] == ["in.jsonl"]


def test_what_presidio_cannot_look_for_is_refused(ruled, tmp_path):
    """If the request passed, users would believe that names were searched for."""
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "cutter")
    damaged = ruled / "vocab/lookups.bin"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    for how, said in (
        ({"entities": ("SHOE_SIZE",)}, "has no entity SHOE_SIZE"),
        ({"spacy_model": str(ruled)}, "toy_names is not a model that spaCy can load"),
        ({"spacy_model": str(tmp_path / "cutter")}, "cutter has no component that finds names"),
    ):
        with pytest.raises(RequestError, match=said):
            Presidio(**how).check()
