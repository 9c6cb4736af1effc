"""Every record is of the form that docs/record.schema.json describes, and has the shares of classes
of tokens."""

import json

import jsonschema
import pyarrow.parquet as pq
import pytest
from asking import privatize_file
from bad_inputs import lines

from lexveil import Model, RequestError, privatize
from lexveil.base.runtime.hashes import sha256
from lexveil.core.accounting.operator_report import operator_schema
from lexveil.core.accounting.record import record_schema
from lexveil.core.accounting.statement import statement
from lexveil.readers.calibrate import calibrate
from tests.conftest import ROOT
from tests.tasks.changing import change_params

SCHEMA = json.loads((ROOT / "docs/record.schema.json").read_text(encoding="utf-8"))
HOW = {"mechanism": "madlib", "strategy": "S3", "epsilon": 20.0}
SECRET = "zorblaxia"


def source(folder):
    file = folder / "in.jsonl"
    file.write_text(f'{{"text": "The government said {SECRET}."}}\n' * 3)
    return file


def valid(record):
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
def test_records_have_their_form_and_no_source(project, tmp_path, how):
    made = valid(privatize_file(source(tmp_path), tmp_path / "out.jsonl", **how).record.to_dict())
    text = (tmp_path / "out.jsonl.record.json").read_text(encoding="utf-8")
    assert json.loads(text) == made
    assert SECRET not in text.lower()
    assert "seed" not in made  # whoever has it can take the noise away


def test_a_folder_has_one_record_with_the_hash_of_each_file(project, tmp_path):
    (tmp_path / "in/below").mkdir(parents=True)
    source(tmp_path / "in")
    source(tmp_path / "in/below")
    made = valid(privatize_file(tmp_path / "in", tmp_path / "out", **HOW).record.to_dict())
    assert set(made["output"]["files"]) == {"in.jsonl", "below/in.jsonl"}
    assert (tmp_path / "out/below/in.jsonl").is_file() and (tmp_path / "out.record.json").is_file()


@pytest.fixture
def capped(project, tmp_path):
    """A release of three texts of one subject, of which two fit below the cap of the ledger."""
    change_params(ledger={"cap": 11.0})
    (tmp_path / "in.csv").write_text("who,text\n" + f"anna,the government said {SECRET}\n" * 3)
    how = HOW | {"epsilon": None, "document_budget": 5.0, "max_token_epsilon": 5.0}
    return privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", subject_column="who", **how)


def test_not_even_the_number_of_withheld_texts_is_published(capped, tmp_path):
    valid(capped.record.to_dict())
    assert capped.record.release.to_dict() == {"id": capped.operator.ledger.id, "cap": 11.0}
    assert capped.record.counts.n_rows == 2
    _, *rows = (tmp_path / "out.csv").read_text().splitlines()
    assert len(rows) == 2


def test_the_operator_learns_what_was_charged_and_withheld(capped):
    expected = {
        "documents_requested": 3,
        "documents_charged": 2,
        "documents_withheld": 1,
        "subjects_exhausted": 1,
        "epsilon_charged": 10.0,
    }
    costs = capped.operator.ledger.to_dict()
    assert {name: costs[name] for name in expected} == expected


def test_the_list_of_withheld_texts_is_the_operators(capped, tmp_path):
    file = tmp_path / "out.csv.withheld.csv"
    assert file.read_text() == "row,subject\n3,anna\n"
    assert file.stat().st_mode & 0o077 == 0


def test_the_statement_for_the_operator_adds_what_was_withheld_and_names_nobody(
    capped,
):
    public = statement(capped.record, None)
    whole = statement(capped.record, capped.operator)
    assert whole[: len(public)] == public
    said = "\n".join(whole[len(public) :])
    assert said.startswith("private to the operator")
    assert "1 of 3 rows are withheld and not charged" in said
    assert "10 epsilon charged to 1 subjects" in said
    assert "anna" not in said


def test_a_record_counts_what_went_out_alone(project, tmp_path):
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


def test_the_operators_report_has_its_form(project, tmp_path, capsys):
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


def test_the_documented_schema_is_that_of_the_model():
    """Write it anew: json.dumps(lexveil.core.accounting.record.record_schema(), indent=2,
    ensure_ascii=False)."""
    assert record_schema() == SCHEMA


TEXTS = [
    "The government said that the police have 2 reports of 300 fires .",
    "Police and government .",
    "the",
]
SHARED = {
    "mechanism": "tem",
    "strategy": "S3",
    "document_budget": 30.0,
    "max_token_epsilon": 5.0,
}


@pytest.fixture
def named(built, tmp_path):
    file = tmp_path / "names.txt"
    file.write_text("Police\ngovernment\nfire\n", encoding="utf-8")
    return f"{file}@{sha256(file)[:12]}"


@pytest.fixture
def shared_budget(named, tmp_path):
    """A release in which function words and words of a list have smaller shares."""
    how = SHARED | {"shares": {"stopwords": 0.5, "listed": 0.2}, "share_list": named}
    (tmp_path / "in.jsonl").write_bytes(lines(*({"text": text} for text in TEXTS)))
    return privatize_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl", **how)


@pytest.fixture
def perturbed(shared_budget, tmp_path):
    """The perturbed tokens of its log."""
    log = pq.read_table(tmp_path / "out.jsonl.tokens.parquet").to_pandas()
    return log[log["action"] == "perturbed"]


def test_the_record_has_the_shares_and_the_hash_of_their_list(shared_budget, tmp_path):
    record = shared_budget.record
    shares = {"stopwords": 0.5, "numbers": 1.0, "listed": 0.2}
    assert record.to_dict()["shares"] == shares | {"list_sha256": sha256(tmp_path / "names.txt")}
    assert any(line.startswith("shares of the budget") for line in record.guarantee.because)
    assert "police" not in json.dumps(record.to_dict()).lower()


def test_tokens_have_the_epsilon_of_their_share(perturbed):
    first = perturbed[perturbed["row"] == 1]
    whole = first[first["share"] == "other"]["epsilon"].max()
    found = {
        name: set(some["epsilon"] / whole) for name, some in first.groupby("share", observed=True)
    }
    assert found == {"other": {1.0}, "stopwords": {0.5}, "numbers": {1.0}, "listed": {0.2}}


def test_a_share_is_of_the_largest_epsilon_where_that_caps_the_budget(
    perturbed,
):
    (epsilon,) = perturbed[perturbed["row"] == 3]["epsilon"]
    assert epsilon == pytest.approx(2.5, rel=1e-9)


def test_record_and_ledger_have_what_the_shares_spent(shared_budget, perturbed):
    spent = perturbed.groupby("row")["epsilon"].sum()
    assert shared_budget.record.spent.most == spent.max() <= 30.0
    charged = shared_budget.operator.ledger.epsilon_charged
    assert charged == pytest.approx(spent.sum(), abs=1e-8)


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
            "^share_list: the file .* does not exist",
        ),
        (
            {"shares": {"stopwords": 0.5}, "document_budget": None, "recovery": 0.2},
            "^recovery: the expected recovery",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(built, wrong, said):
    with pytest.raises(RequestError, match=said) as refused:
        privatize(TEXTS, **SHARED | wrong)
    assert "\n" not in str(refused.value)


def test_what_needs_a_reader_is_refused_beside_shares(project):
    """A reader who knows the class expects other words than one who does not."""
    change_params(release={"max_recovery": 0.5, "shares": {"stopwords": 0.5}})
    with pytest.raises(RequestError, match="calibrate: recovery is not computed"):
        calibrate(Model.load(project), 0.2, ("tem",), ("S3",))
    with pytest.raises(
        RequestError, match=r"release\.max_recovery: the expected recovery is not known"
    ):
        privatize(TEXTS, **SHARED)
