"""STS-B: files of its form, and the regression task."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import pearsonr, spearmanr

from examples.replication import bring, stsb
from lexveil.base import paths
from lexveil.base.levels import BaseEpsilon

HEADING = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"


def row(index, first, second, score):
    kept = f"{index}\tmain-captions\tMSRvid\t2012test\t{index}\tnone\tnone"
    return f"{kept}\t{first}\t{second}\t{score}"


def folder_of(tmp_path, *rows, heading=HEADING):
    folder = tmp_path / "STS-B"
    folder.mkdir()
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text("\n".join([heading, *rows]) + "\n", encoding="utf-8")
    return folder


def test_a_file_of_its_form_becomes_a_set(tmp_path):
    """A quotation mark at the start of a field is a letter, as in the archive."""
    folder = folder_of(
        tmp_path,
        row(0, "A plane is taking off.", "An air plane is taking off.", "5.000"),
        row(1, '"A man" plays', "A man is eating.", "0.5"),
    )
    bring.main(["stsb", str(folder), "--into", str(tmp_path / "sets")])
    table = pq.read_table(tmp_path / "sets" / "stsb.parquet")
    assert table.column("split").to_pylist() == ["train", "train", "dev", "dev"]
    assert table.column("text").to_pylist()[1] == '"A man" plays'
    assert table.column("text_b").to_pylist()[0] == "An air plane is taking off."
    assert table.column("label").to_pylist()[:2] == ["5.000", "0.5"]


@pytest.mark.parametrize(
    ("rows", "heading", "message"),
    [
        ([row(0, "a", "b", "6.0")], HEADING, "train.tsv, line 2: score '6.0' is not a number"),
        ([row(0, "a", "b", "high")], HEADING, "line 2: score 'high' is not a number from 0 to 5"),
        (["0\tmain-captions"], HEADING, "line 2: 2 fields; it needs 10"),
        ([], HEADING.replace("score", "mark"), "has no column score"),
    ],
)
def test_a_file_of_another_form_is_refused(
    tmp_path,
    rows,
    heading,
    message,
    capsys,
):
    folder = folder_of(tmp_path, *rows, heading=heading)
    with pytest.raises(SystemExit) as ended:
        bring.main(["stsb", str(folder), "--into", str(tmp_path / "sets")])
    assert ended.value.code == 2 and not (tmp_path / "sets").exists()
    assert message in " ".join(capsys.readouterr().err.split())


def test_correlations_are_those_of_scipy():
    rng = np.random.default_rng(0)
    truth = np.round(rng.random(50) * 5, 1)  # with ties
    predicted = truth + rng.normal(size=50)
    found = stsb.correlations(truth, predicted)
    assert found.pearson == pytest.approx(pearsonr(truth, predicted)[0])
    assert found.spearman == pytest.approx(spearmanr(truth, predicted)[0])
    assert found.mean == pytest.approx((found.pearson + found.spearman) / 2)


def test_a_constant_prediction_has_no_correlation():
    assert stsb.correlations(np.array([1.0, 2.0, 3.0]), np.zeros(3)).mean == 0


def test_similarities_of_equal_and_of_different_texts():
    """Equal texts have all five at 1; texts without a common word or letter have none, and only
    their lengths alike."""
    equal, different = stsb.similarities(["a cat sat", "dogs ran"], ["a cat sat", "we slept"])
    assert equal == pytest.approx(np.ones(5))
    assert different == pytest.approx([0, 0, 0, 1, 0])


def test_a_run_is_scored_on_its_own_texts(tmp_path, monkeypatch):
    """Trained on pairs that are equal (5) or have no common word (0), scored on two more of each;
    of a set that is not STS-B nothing is read, and of too few pairs there is no score."""
    run = ("tem", "S1", BaseEpsilon(1.0))
    file = tmp_path / paths.private(*run) / "documents.parquet"
    file.parent.mkdir(parents=True)
    pairs = [("a cat sat", "a cat sat", "5.0"), ("dogs ran fast", "we slept", "0.0")]
    rows = [
        {"dataset": "stsb", "split": split, "label": label, "text": first, "text_b": second}
        for split in ("train", "dev")
        for first, second, label in pairs * 2
    ]
    rows.append({**rows[0], "dataset": "mrpc", "label": "no number"})
    pq.write_table(pa.Table.from_pylist(rows), file)
    monkeypatch.chdir(tmp_path)
    found = stsb.of_run(run)
    assert found is not None and found.mean == pytest.approx(1.0)
    pq.write_table(pa.Table.from_pylist(rows[:2]), file)
    assert stsb.of_run(run) is None


def test_regression_learns_which_pairs_are_alike():
    """Scores are five times the share of common words, which is a feature."""
    words = "one two three four five six seven eight".split()
    rng = np.random.default_rng(1)
    first = []
    second = []
    scores = []
    for _ in range(60):
        own = list(rng.permutation(words))
        n_common = int(rng.integers(1, 7))
        other = own[:n_common] + [f"{word}x" for word in own[n_common:]]
        first.append(" ".join(own))
        second.append(" ".join(other))
        scores.append(5 * n_common / (16 - n_common))
    parts = [
        (first[rows], second[rows], np.array(scores)[rows]) for rows in (slice(40), slice(40, 60))
    ]
    assert stsb.regression(*parts).mean > 0.98
