"""Every record is of the form that docs/record.schema.json describes, and has the shares of classes
of tokens."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from asking import privatize_file
from bad_inputs import lines

from lexveil import Model, RequestError, privatize
from lexveil.accounting.operator_report import operator_schema
from lexveil.accounting.record import record_schema
from lexveil.accounting.statement import statement
from lexveil.recovery.calibrate import calibrate
from lexveil.runtime.hashes import sha256
from tests.conftest import ROOT
from tests.tasks.changing import change_params

SCHEMA = json.loads((ROOT / "docs/record.schema.json").read_text(encoding="utf-8"))
HOW: dict[str, Any] = {"mechanism": "madlib", "strategy": "S3", "epsilon": 20.0}
SECRET = "zorblaxia"


def source(folder: Path) -> Path:
    file = folder / "in.jsonl"
    file.write_text(f'{{"text": "The government said {SECRET}."}}\n' * 3)
    return file


def valid(record: dict[str, Any]) -> dict[str, Any]:
    jsonschema.Draft202012Validator(SCHEMA).validate(record)
    return record


@pytest.mark.parametrize(
    "how",
    [
        HOW | {"mode": "experiment", "seed": 3},
        HOW | {"consistent": True, "strategy": "S2"},
        {"mechanism": "none", "strategy": "none", "mode": "experiment"},
        {"mechanism": "vickrey", "strategy": "S1", "document_budget": 5.0},
    ],
)
def test_records_have_their_form_and_no_source(
    project: Path, tmp_path: Path, how: dict[str, Any]
) -> None:
    made = valid(privatize_file(source(tmp_path), tmp_path / "out.jsonl", **how).record.to_dict())
    text = (tmp_path / "out.jsonl.record.json").read_text(encoding="utf-8")
    assert json.loads(text) == made
    assert SECRET not in text.lower()
    assert "seed" not in made  # whoever has it can take the noise away


def test_a_folder_has_one_record_with_the_hash_of_each_file(project: Path, tmp_path: Path) -> None:
    (tmp_path / "in/below").mkdir(parents=True)
    source(tmp_path / "in")
    source(tmp_path / "in/below")
    made = valid(privatize_file(tmp_path / "in", tmp_path / "out", **HOW).record.to_dict())
    assert set(made["output"]["files"]) == {"in.jsonl", "below/in.jsonl"}
    assert (tmp_path / "out/below/in.jsonl").is_file() and (tmp_path / "out.record.json").is_file()


def test_what_is_withheld_and_what_it_cost_is_said(project: Path, tmp_path: Path) -> None:
    change_params(ledger={"cap": 11.0})
    (tmp_path / "in.csv").write_text("who,text\n" + f"anna,the government said {SECRET}\n" * 3)
    how = HOW | {"epsilon": None, "document_budget": 5.0, "max_token_epsilon": 5.0}
    done = privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", subject_column="who", **how)
    valid(done.record.to_dict())
    assert done.record.release.to_dict() == {"id": done.operator.ledger.id, "cap": 11.0}
    assert done.record.counts.n_rows == 2  # not even how many are withheld is published
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3  # with the header
    costs = done.operator.ledger
    assert (costs.documents_requested, costs.documents_charged, costs.documents_withheld) == (
        3,
        2,
        1,
    )
    assert (costs.subjects_exhausted, costs.epsilon_charged) == (1, 10.0)
    assert (tmp_path / "out.csv.withheld.csv").read_text() == "row,subject\n3,anna\n"
    assert (tmp_path / "out.csv.withheld.csv").stat().st_mode & 0o077 == 0
    public, private = (statement(done.record, operator) for operator in (None, done.operator))
    assert private[: len(public)] == public and "private to the operator" in private[len(public)]
    said = "\n".join(private[len(public) :])
    assert (
        "1 of 3 rows are withheld and not charged" in said
        and "10 epsilon charged, of 1 subjects" in said
    )
    assert "anna" not in said


def test_a_record_counts_what_went_out_alone(project: Path, tmp_path: Path) -> None:
    """Rows that are withheld leave no number in it, however many, long or unknown they are."""
    change_params(ledger={"cap": 11.0})
    how = HOW | {
        "epsilon": None,
        "document_budget": 5.0,
        "max_token_epsilon": 5.0,
        "subject_column": "who",
        "stopwords": "perturb",
    }
    how["strategy"] = "S1"  # one word for one, so that the counts of the output are not random
    released = ["The door was open.", "The house was cold, and zorblax said no."]
    withheld = [
        "An old house.",
        "zorblax zanzibar , , !",
        "the fire services said that the police were there " * 9,
    ]
    records = []
    for who, texts in (("anna", released), ("ben", released + withheld)):
        rows = [json.dumps({"who": who, "text": text}) for text in texts]
        (tmp_path / f"{who}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
        done = privatize_file(tmp_path / f"{who}.jsonl", tmp_path / f"out-{who}.jsonl", **how)
        assert done.operator.ledger.documents_withheld == len(texts) - len(released)
        assert done.operator.rows_read == len(texts)
        made = done.record.to_dict()
        made["release"].pop("id")
        del made["output"]  # the noise differs
        records.append(made)
    assert records[0] == records[1]


def test_the_operators_report_has_its_form(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = privatize_file(source(tmp_path), tmp_path / "out.jsonl", **HOW)
    said = capsys.readouterr().err
    again = privatize_file(source(tmp_path), tmp_path / "again.jsonl", **HOW)
    assert (
        "charged before" not in said
        and "1 of 1 texts were charged before" in capsys.readouterr().err
    )
    assert [one.operator.ledger.subjects_charged_before for one in (done, again)] == [0, 1]
    assert again.record.to_dict().keys() == done.record.to_dict().keys()
    written = json.loads((tmp_path / "out.jsonl.operator.json").read_text(encoding="utf-8"))
    assert written == done.operator.to_dict() and "secret as the source" in written["secrecy"]
    documented = json.loads((ROOT / "docs/operator.schema.json").read_text(encoding="utf-8"))
    assert operator_schema() == documented
    jsonschema.Draft202012Validator(documented).validate(written)


def test_the_documented_schema_is_that_of_the_model() -> None:
    """Write it anew: json.dumps(lexveil.accounting.record.record_schema(), indent=2,
    ensure_ascii=False)."""
    assert record_schema() == SCHEMA


TEXTS = [
    "The government said that the police have 2 reports of 300 fires .",
    "Police and government .",
    "the",
]
SHARED: dict[str, Any] = {
    "mechanism": "tem",
    "strategy": "S3",
    "document_budget": 30.0,
    "max_token_epsilon": 5.0,
}


@pytest.fixture
def named(built: Path, tmp_path: Path) -> str:
    file = tmp_path / "names.txt"
    file.write_text("Police\ngovernment\nfire\n", encoding="utf-8")
    return f"{file}@{sha256(file)[:12]}"


def test_record_log_and_ledger_have_the_shares(named: str, tmp_path: Path) -> None:
    how = SHARED | {"shares": {"stopwords": 0.5, "listed": 0.2}, "share_list": named}
    (tmp_path / "in.jsonl").write_bytes(lines(*({"text": text} for text in TEXTS)))
    done = privatize_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl", **how)
    shares = done.record.to_dict()["shares"]
    assert shares == {
        "stopwords": 0.5,
        "numbers": 1.0,
        "listed": 0.2,
        "list_sha256": sha256(tmp_path / "names.txt"),
    }
    assert any(line.startswith("shares of the budget") for line in done.record.guarantee.because)
    log = pq.read_table(tmp_path / "out.jsonl.tokens.parquet").to_pandas()
    log = log[log["action"] == "perturbed"]
    first = log[log["row"] == 1]
    whole = first[first["share"] == "other"]["epsilon"].max()
    assert {
        name: set(some["epsilon"] / whole) for name, some in first.groupby("share", observed=True)
    } == {"other": {1.0}, "stopwords": {0.5}, "numbers": {1.0}, "listed": {0.2}}
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
        (
            {"shares": {"stopwords": 0.0}},
            r"^shares.stopwords is 0.0; it must lie between 0\.01 and 10",
        ),
        ({"shares": {"names": 0.5}}, r"must be one of stopwords, numbers, listed"),
        ({"shares": {"listed": 0.5}}, r"needs their list"),
        (
            {"shares": {"listed": 0.5}, "share_list": "gone.txt@0123456789ab"},
            "^share_list: there is no file",
        ),
        (
            {"shares": {"stopwords": 0.5}, "document_budget": None, "recovery": 0.2},
            "^recovery: expected recovery",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    built: Path, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(RequestError, match=said) as refused:
        privatize(TEXTS, **SHARED | wrong)
    assert "\n" not in str(refused.value)


def test_what_needs_a_reader_is_refused_beside_shares(project: Path) -> None:
    """A reader who knows the class expects other words than one who does not."""
    change_params(release={"max_recovery": 0.5, "shares": {"stopwords": 0.5}})
    with pytest.raises(RequestError, match="calibrate: what a reader gets back is not worked out"):
        calibrate(Model.load(project), 0.2, ("tem",), ("S3",))
    with pytest.raises(
        RequestError, match=r"release\.max_recovery: expected recovery is not known"
    ):
        privatize(TEXTS, **SHARED)
