"""Shares of the budget by classes of tokens, from a request to the record: what is written, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from asking import privatize_file
from bad_inputs import lines

from lexveil.api import privatize
from lexveil.artifacts.model import Model
from lexveil.errors import RequestError
from lexveil.recovery.calibrate import calibrate
from lexveil.runtime.hashes import sha256

TEXTS = ["The government said that the police have 2 reports of 300 fires .", "Police and government .", "the"]
HOW: dict[str, Any] = {"mechanism": "tem", "strategy": "S3", "document_budget": 30.0, "max_token_epsilon": 5.0}


@pytest.fixture
def named(built: Path, tmp_path: Path) -> str:
    file = tmp_path / "names.txt"
    file.write_text("Police\ngovernment\nfire\n", encoding="utf-8")
    return f"{file}@{sha256(file)[:12]}"


def test_record_log_and_ledger_have_the_shares(named: str, tmp_path: Path) -> None:
    how = HOW | {"shares": {"stopwords": 0.5, "listed": 0.2}, "share_list": named}
    (tmp_path / "in.jsonl").write_bytes(lines(*({"text": text} for text in TEXTS)))
    done = privatize_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl", **how)
    shares = done.record.to_dict()["shares"]
    assert shares == {"stopwords": 0.5, "numbers": 1.0, "listed": 0.2, "list_sha256": sha256(tmp_path / "names.txt")}
    assert any(line.startswith("shares of the budget") for line in done.record.guarantee.because)
    log = pq.read_table(tmp_path / "out.jsonl.tokens.parquet").to_pandas()
    log = log[log["action"] == "perturbed"]
    first = log[log["row"] == 1]
    whole = first[first["share"] == "other"]["epsilon"].max()
    assert {name: set(some["epsilon"] / whole) for name, some in first.groupby("share", observed=True)} == {
        "other": {1.0}, "stopwords": {0.5}, "numbers": {1.0}, "listed": {0.2}
    }  # fmt: skip
    (share_of_the_largest,) = log[log["row"] == 3]["epsilon"]
    assert share_of_the_largest == pytest.approx(2.5, rel=1e-9)
    spent = log.groupby("row")["epsilon"].sum()
    assert done.record.spent is not None and done.record.spent.most == spent.max() <= 30.0
    assert done.operator is not None and done.operator.ledger is not None
    assert done.operator.ledger.epsilon_charged == pytest.approx(spent.sum(), abs=1e-8)
    assert "police" not in json.dumps(done.record.to_dict()).lower()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"shares": {"stopwords": 0.0}}, r"^shares.stopwords is 0.0; it must lie between 0\.01 and 10"),
        ({"shares": {"names": 0.5}}, r"must be one of stopwords, numbers, listed"),
        ({"shares": {"listed": 0.5}}, r"needs their list"),
        ({"shares": {"listed": 0.5}, "share_list": "gone.txt@0123456789ab"}, "^share_list: there is no file"),
        ({"shares": {"stopwords": 0.5}, "document_budget": None, "recovery": 0.2}, "^recovery: expected recovery"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(built: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=said) as refused:
        privatize(TEXTS, **HOW | wrong)
    assert "\n" not in str(refused.value)


def test_what_needs_a_reader_is_refused_beside_shares(project: Path) -> None:
    """A reader who knows the class expects other words than one who does not."""
    params = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    params["release"] |= {"max_recovery": 0.5, "shares": {"stopwords": 0.5}}
    (project / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    with pytest.raises(RequestError, match="calibrate: what a reader gets back is not worked out"):
        calibrate(Model.load(project), 0.2, ("tem",), ("S3",))
    with pytest.raises(RequestError, match=r"release\.max_recovery: expected recovery is not known"):
        privatize(TEXTS, **HOW)
