"""Recovery of a run: what it counts, that positions match, and what a list of words adds."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil import ParameterError, RequestError
from lexveil.base import paths
from lexveil.base.levels import BaseEpsilon
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.tables import write_json
from lexveil.io.config import load_params
from lexveil.lab.evaluation.recovery.runs import measure_recovery
from tests.conftest import made_of, run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow

RUN = ("tem", "S1", BaseEpsilon(1.0))


@pytest.fixture(scope="module")
def _made(_built, tmp_path_factory):
    """The built project with one run of TEM and the language model."""

    def make():
        change_params(evaluation={"max_texts": None}, grid={"mechanisms": ["tem"]})
        run_stage("train_language_model")
        for one in (("none", "none", "0.0"), ("tem", "S1", "1.0")):
            run_stage("privatize", *one)
        paths.recovery(*RUN).parent.mkdir(parents=True, exist_ok=True)
        # as the stage evaluate does
        write_json(measure_recovery(*RUN, load_params()), paths.recovery(*RUN))

    return made_of(_built, tmp_path_factory, make)


@pytest.fixture
def made(_made, monkeypatch):
    monkeypatch.chdir(_made)
    return _made


def record():
    return json.loads(paths.recovery(*RUN).read_text(encoding="utf-8"))


def sensitive(file):
    params = load_params()
    named = f"{file}@{sha256(file)[:12] if file.is_file() else '0' * 12}"
    params = params.model_copy(
        update={"evaluation": params.evaluation.model_copy(update={"sensitive": named})}
    )
    return measure_recovery(*RUN, params)


def test_every_replaced_word_counts_once(made):
    """All texts are read, so that the share unchanged is the one that the run itself counted, token
    by token."""
    metrics = json.loads((paths.private(*RUN) / "metrics.json").read_text(encoding="utf-8"))
    every = record()["all"]["all"]
    assert every["n"] == metrics["n_perturbed"] > 1000
    assert every["unchanged"]["share"] == pytest.approx(metrics["share_unchanged"], abs=1e-8)
    sets = record()["datasets"].values()
    assert sum(one["all"]["n"] for one in sets) == every["n"]
    for one in (record()["all"], *sets):
        assert (
            sum(one[band]["n"] for band in ("function", "frequent", "middle", "rare"))
            == one["all"]["n"]
        )
    assert record()["all"]["function"]["n"] == 0  # S1 keeps stop words


def test_words_of_a_list_are_a_band_of_their_own(made, tmp_path):
    (tmp_path / "listed.txt").write_text("Movie\n\nfilm \nnever-in-any-text\n", encoding="utf-8")
    found = sensitive(tmp_path / "listed.txt")
    assert 0 < found["all"]["listed"]["n"] < found["all"]["all"]["n"]
    assert {band: entry for band, entry in found["all"].items() if band != "listed"} == record()[
        "all"
    ]
    assert "movie" not in json.dumps(found).lower()


@pytest.mark.parametrize(
    ("text", "why"), [(None, "does not exist"), (b"\n \n", "no word"), (b"\xff\xfe", "UTF-8")]
)
def test_a_list_that_is_none_is_named(made, tmp_path, text, why):
    file = tmp_path / "listed.txt"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(ParameterError, match=f"evaluation.sensitive: .*{why}"):
        sensitive(file)


def test_a_log_of_other_texts_is_refused(made, tmp_path, monkeypatch):
    log = pq.read_table(paths.private(*RUN) / "tokens.parquet")
    position = pa.array(log.column("position").to_numpy()[::-1])
    file = tmp_path / "tem/S1/1.0/tokens.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(
        log.set_column(log.schema.get_field_index("position"), "position", position), file
    )
    private = paths.private
    monkeypatch.setattr(
        paths, "private", lambda *run: tmp_path / "tem/S1/1.0" if run == RUN else private(*run)
    )
    with pytest.raises(
        RequestError, match=r"the tokens of data set .* differ from the tokens of its clean texts"
    ):
        measure_recovery(*RUN, load_params())


def test_linkage_is_measured_among_the_texts_of_each_data_set(made):
    """No text is found less often than by chance, and the exact channel knows the structure too."""
    linkage = record()["linkage"]
    assert list(linkage) == list(record()["datasets"])
    for by_size in linkage.values():
        for size, shares in by_size.items():
            assert shares["likelihood"] >= shares["structure"] - 0.1
            assert shares["structure"] > 1 / int(size)
