"""The stage that scores one run: a clean baseline and runs made by hand, of which it is known what
can be learnt."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil import MissingArtifactError, RequestError
from lexveil.base import paths
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.language_models.kneser_ney import train
from lexveil.io.artifacts.embeddings import write_embedding
from lexveil.io.artifacts.language_models import write_language_model
from tests.conftest import ROOT, run_stage

pytestmark = pytest.mark.slow

SECRET = "zyxomatic"
AUTHORS = ("quill", "bramble", "thorn")
NAMES = ("dataset", "doc_id", "split", "text", "text_b", "label", "attribute", "context")


def documents(told=True, author_told=True):
    """36 letters with label and author, 20 pairs with a label told by the second text, 4 notes
    without either."""
    rows = []
    for i in range(20):
        label = "01"[i % 2]
        second = (
            f"the answer is {'no' if label == '0' else 'yes'}" if told else "the answer is open"
        )
        split = "train" if i < 14 else "dev"
        rows.append(("duets", f"d{i:02}", split, f"a question , {SECRET}", second, label, None))
    for i in range(36):
        label = "01"[i // 3 % 2]
        author = AUTHORS[i % 3]
        text = f"it was {('poor', 'fine')[i // 3 % 2] if told else 'there'} {SECRET} . "
        text += f"yours , {author}" if author_told else "yours"
        rows.append(
            ("letters", f"l{i:02}", "train" if i < 24 else "validation", text, None, label, author)
        )
    rows += [("notes", f"n{i}", "all", SECRET, None, None, None) for i in range(4)]
    return [dict(zip(NAMES, (*row, None), strict=True)) for row in rows]


def put_run(
    rows,
    mechanism="none",
    strategy="none",
    epsilon="0.0",
):
    file = Path("artifacts/private", mechanism, strategy, epsilon, "documents.parquet")
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in NAMES])), file
    )


WORDS = ["it", "was", "fine", "poor", "there", "."]


def put_models():
    """Orthogonal vectors, except that fine and poor are opposite; a language model of one
    sentence."""
    vectors = np.eye(len(WORDS), dtype=np.float32)
    vectors[3] = -vectors[2]
    write_embedding(
        WordSpace(WORDS, vectors, np.ones(len(WORDS), dtype=np.int64)), paths.embedding("word")
    )
    model = train(np.array([0, 1, 2, 5]), np.array([0, 4]), len(WORDS))
    write_language_model(model, WORDS, {}, paths.LANGUAGE_MODEL)


def stand_in(folder, patch):
    """Make a folder a project of the clean texts, and the current folder."""
    patch.chdir(folder)
    # Recovery reads a whole project: tests/privatization/test_run_recovery.py.
    patch.setattr("tasks.evaluate.measure_recovery", lambda *_: {"all": {}})
    Path("params.yaml").write_text(
        (ROOT / "params.yaml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    put_run(documents())
    put_models()


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch)


def made(mechanism="none", strategy="none", epsilon="0.0"):
    run_stage("train_attackers")
    run_stage("evaluate", mechanism, strategy, epsilon)
    return json.loads(
        Path("artifacts/evaluation", mechanism, strategy, f"{epsilon}.json").read_text(
            encoding="utf-8"
        )
    )


def macro(entry):
    return {setting: one["macro_f1"]["mean"] for setting, one in entry["scores"].items()}


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """The scores of clean texts that tell everything."""
    with pytest.MonkeyPatch.context() as patch:
        stand_in(tmp_path_factory.mktemp("clean"), patch)
        return made()


def test_scores_name_the_run_and_how_they_are_made(clean):
    expected = {"mechanism": "none", "strategy": "none", "epsilon": 0.0}
    expected |= {"classifier": "linear", "shuffles": 3}
    assert {name: clean[name] for name in expected} == expected


def test_clean_texts_tell_label_and_author(clean):
    letters = clean["datasets"]["letters"]
    assert macro(letters["utility"]) == {"private": 1.0, "clean": 1.0}
    assert macro(letters["attack"]) == {"static": 1.0, "adaptive": 1.0}


def test_clean_pairs_tell_the_label_by_the_second_text(clean):
    utility = clean["datasets"]["duets"]["utility"]
    assert macro(utility) == {"private": 1.0, "clean": 1.0}
    assert utility["held_out"] == "dev"


def test_membership_is_guessed_of_as_many_documents_of_both_kinds(clean):
    membership = clean["datasets"]["letters"]["membership"]
    assert (membership["n_in"], membership["n_out"]) == (9, 9)
    assert len(membership["auc"]["each"]) == 3


def test_what_cannot_be_scored_says_why(clean):
    duets = clean["datasets"]["duets"]
    notes = clean["datasets"]["notes"]
    no_value = "no document has a value in column"
    assert duets["attack"] == {"left_out": f"{no_value} attribute"}
    assert "20 documents" in duets["membership"]["left_out"]
    assert {name: notes[name]["left_out"] for name in ("utility", "attack", "membership")} == {
        "utility": f"{no_value} label",
        "attack": f"{no_value} attribute",
        "membership": f"{no_value} label",
    }


def test_scores_have_the_numbers_that_they_rest_on(clean):
    attack = clean["datasets"]["letters"]["attack"]
    expected = {"n_train": 24, "n_test": 12, "n_classes": 3, "n_left_out": 0}
    expected |= {"held_out": "validation"}
    assert {name: attack[name] for name in expected} == expected
    assert attack["majority"]["accuracy"] == pytest.approx(1 / 3)


def test_a_rewriting_that_hides_the_author_and_keeps_the_label_and_one_that_does_the_opposite():
    put_run(documents(author_told=False), "madlib", "S1", "10.0")
    put_run(documents(told=False), "madlib", "S1", "1.0")
    hidden = made("madlib", "S1", "10.0")["datasets"]["letters"]
    assert macro(hidden["utility"]) == {"private": 1.0, "clean": 1.0}
    assert max(macro(hidden["attack"]).values()) < 0.4
    spoilt = made("madlib", "S1", "1.0")["datasets"]
    assert macro(spoilt["letters"]["attack"]) == {"static": 1.0, "adaptive": 1.0}
    assert max(macro(spoilt["letters"]["utility"]).values()) < 0.6
    assert max(macro(spoilt["duets"]["utility"]).values()) < 0.6


def test_attack_models_are_trained_once_for_all_runs_and_are_the_same_again():
    run_stage("train_attackers")
    files = {file: file.read_bytes() for file in sorted(paths.ATTACKERS.rglob("*.npy"))}
    assert {file.parent.name for file in files} == {"letters"} and len(files) == 6
    assert not any(SECRET.encode() in content for content in files.values())
    put_run(documents(told=False), "tem", "S2", "1.0")
    run_stage("train_attackers")
    assert {file: file.read_bytes() for file in sorted(paths.ATTACKERS.rglob("*.npy"))} == files
    for file in files:  # other weights, other results: what is stored is what attacks
        array = np.load(file)
        np.save(file, -array if file.stem in ("weights_3", "biases_3") else array)
    run_stage("evaluate", "none", "none", "0.0")
    record = json.loads(Path("artifacts/evaluation/none/none/0.0.json").read_text(encoding="utf-8"))
    turned = record["datasets"]["letters"]["membership"]["auc"]["each"]
    assert made()["datasets"]["letters"]["membership"]["auc"]["each"] == pytest.approx(
        [1 - one for one in turned]
    )
    (paths.ATTACKERS / "letters").rename(paths.ATTACKERS / "others")
    with pytest.raises(MissingArtifactError, match=r"stage train_attackers\)"):
        run_stage("evaluate", "none", "none", "0.0")


def test_same_bytes_again_and_no_class_or_text_in_them():
    file = Path("artifacts/evaluation/none/none/0.0.json")
    made_once = made()
    first = file.read_bytes()
    assert made() == made_once and file.read_bytes() == first
    assert not any(word.encode() in first for word in (SECRET, *AUTHORS, "l00"))


SOUND = documents()


@pytest.mark.parametrize(
    "other", [SOUND[:-1], SOUND[::-1], [SOUND[0] | {"label": "1"}, *SOUND[1:]]]
)
def test_runs_of_other_documents_are_refused(other):
    put_run(other, "madlib", "S1", "1.0")
    with pytest.raises(RequestError, match="have different documents") as caught:
        made("madlib", "S1", "1.0")
    assert SECRET not in str(caught.value)
    assert not Path("artifacts/evaluation").exists()
