"""Names that a model of spaCy finds: a small one that is trained here, on made-up sentences, for no network has any."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from asking import privatize_file

pytest.importorskip("presidio_analyzer")

import spacy
from spacy.training import Example

import lexveil
from lexveil.cli.main import main
from lexveil.detectors.presidio import Presidio
from lexveil.errors import RequestError

NAMES = ("Zora Quix", "Bo Ylem", "Ina Vost", "Udo Marl")
SENTENCES = (
    "{} called us on Monday .",
    "We met {} at the station .",
    "The parcel is for {} .",
    "Please ask {} about it .",
)
NAMELESS = ("The station is closed on Monday .", "Please send the bill .", "We called about the parcel .")
TEXT = "The parcel is for Zora Quix . The station is closed on Monday ."  # no sentence that was trained on
HOW = {"mechanism": "tem", "strategy": "S3", "document_budget": 30.0, "max_token_epsilon": 5.0}
COMMAND = (
    "privatize in.jsonl -o out.jsonl --mechanism tem --strategy S3 --document-budget 30 --max-token-epsilon 5".split()
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline with a component ``ner``, trained on 19 sentences; generators are left as they were."""
    states = random.getstate(), np.random.get_state()
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("ner").add_label("PERSON")
    examples = [Example.from_dict(nlp.make_doc(sentence), {"entities": []}) for sentence in NAMELESS]
    for sentence in SENTENCES:
        for name in NAMES:
            start = sentence.index("{")
            entity = (start, start + len(name), "PERSON")
            examples.append(Example.from_dict(nlp.make_doc(sentence.format(name)), {"entities": [entity]}))
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(25):
        nlp.update(examples, sgd=optimizer)
    random.setstate(states[0])
    np.random.set_state(states[1])
    folder = tmp_path_factory.mktemp("spacy") / "toy_names"
    nlp.to_disk(folder)
    return folder


def configure(project: Path, model: str | Path, **presidio: object) -> None:
    """Let a project, which has a file in.jsonl, look for names by a model."""
    params = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    params["policy"]["detector"] = "presidio"
    params["policy"]["presidio"] |= {"spacy_model": str(model), **presidio}
    (project / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    rows = [TEXT, None, "We met Bo Ylem at the station ."]
    (project / "in.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_name_comes_out_as_its_type(
    built: Path, trained: Path, capfd: pytest.CaptureFixture[str], workers: int
) -> None:
    shutil.copytree(trained, built / "toy_names")
    configure(built, "toy_names")  # from where one is
    done = privatize_file("in.jsonl", "out.jsonl", workers=workers, **HOW)
    texts = [json.loads(line)["text"] for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [text and text.count("[PERSON]") for text in texts] == [1, None, 1] and "Quix" not in texts[0]
    assert done.record.counts.found["PERSON"] == {"placeholder": 2}
    assert done.record.detection.sources[0].endswith("(patterns and toy_names)")
    log = pq.read_table("out.jsonl.tokens.parquet").to_pylist()
    # Two words are one token, which no epsilon is spent on.
    assert [(row["action"], row["epsilon"]) for row in log if row["type"] == "PERSON"] == [("placeholder", 0.0)] * 2
    assert "quix" not in "".join(capfd.readouterr()).lower()
    # Without the model the same words are no find.
    configure(built, trained, entities=["EMAIL_ADDRESS"])
    assert "[PERSON]" not in lexveil.privatize([TEXT], seed=1, **HOW).values[0]


def test_a_model_that_is_not_there_is_refused_before_anything_is_read_or_charged(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(built, "/nowhere/en_core_web_lg")
    assert main("privatize in.jsonl -o out.jsonl --mechanism tem --strategy S3 --epsilon 5".split()) == 2
    said = capsys.readouterr().err
    assert "spacy_model: en_core_web_lg is neither an installed model of spaCy nor a folder of one" in said
    assert "No model is fetched" in said and "/nowhere" not in said
    assert not (built / "out.jsonl").exists() and not (built / ".lexveil/ledger").exists()


def test_models_that_find_no_names_are_refused(trained: Path, tmp_path: Path) -> None:
    """Else names would be taken for looked for."""
    shutil.copytree(trained, tmp_path / "half")
    content = (tmp_path / "half/ner/model").read_bytes()
    (tmp_path / "half/ner/model").write_bytes(content[: len(content) // 2])
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "cutter")
    for name, said in (("half", "is no model that spaCy can load"), ("cutter", "has no component that finds names")):
        with pytest.raises(RequestError, match=f"{name} {said}"):
            Presidio(spacy_model=str(tmp_path / name)).check()
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Zora"}])
    nlp.to_disk(tmp_path / "ruled")
    detector = Presidio(spacy_model=str(tmp_path / "ruled"))
    detector.check()
    assert [[span.type for span in spans] for spans in detector.find(["Zora", "Bo"])] == [["PERSON"], []]
