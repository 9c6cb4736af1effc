"""`lexveil ledger`: what it prints, its exit codes, and that it prints no key."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest
from few_words import asked, spend

from lexveil.cli import main
from lexveil.config import parse_params
from lexveil.ledger.ledger import Ledger

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with a cap of 3, in which ana has spent 2.5 and ben 1, and zoe's release was undone."""
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    written = (ROOT / "params.yaml").read_text(encoding="utf-8")
    assert "  cap: null " in written
    (tmp_path / "params.yaml").write_text(written.replace("  cap: null ", "  cap: 2.5 "))
    monkeypatch.chdir(tmp_path)
    with Ledger.open(".lexveil/ledger", anchor=".ledger-anchor.json") as ledger:
        with ledger.begin({"mechanism": "madlib"}) as release:
            release.request(["ana", "ben"], np.array([1.0, 1.0]))
            release.reserve(1.0, 2.5)
            release.spend()
            release.commit()
        spend(ledger, "ana", budget=1.5, cap=2.5)
        with ledger.begin({}) as release:
            asked(release, "zoe")
    with mock.patch.dict(os.environ):
        yield tmp_path


def call(*arguments: str) -> int:
    try:
        return main.main(["ledger", *arguments])
    except SystemExit as end:
        return int(end.code or 0)


def test_show(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("show", "--top", "1") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "cap 2.5 per subject" in out
    assert "2 subjects have spent 3.5 epsilon, 1 of them at the cap or above" in out
    assert "between 1 and 2.5" in out
    assert "1 aborted, 2 committed" in out
    assert "ana" not in out


def test_show_as_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("show", "--json", "--top", "5") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["subjects"], said["exhausted"], said["spent"], said["cap"]) == (2, 1, 3.5, 2.5)
    assert [one["epsilon"] for one in said["top"]] == [2.5, 1.0]
    assert [one["state"] for one in said["releases"]] == ["aborted", "committed", "committed"]
    assert said["releases"][2]["about"] == {"mechanism": "madlib"}
    assert said["releases"][2]["reserved"]["documents"] == 2


def test_one_subject(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("show", "--subject", "ben") == 0
    out = capsys.readouterr().out
    assert "1 epsilon spent, 1.5 of 2.5 are left" in out and "ben" not in out
    assert call("show", "--subject", " ben\u200b ") == 0  # however it is written
    assert capsys.readouterr().out == out
    assert call("show", "--subject", "nobody", "--json") == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == 0


def test_verify(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("verify") == 0
    assert "everything holds" in capsys.readouterr().out
    with Ledger.open(".lexveil/ledger", anchor=".ledger-anchor.json") as ledger:
        ledger.database.con.execute("update entries set time = '' where seq = 2")
    assert call("verify", "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["holds"] and said["problems"][0]["where"] == "entry 2"
    assert call("verify") == 1
    assert "the ledger does not hold" in capsys.readouterr().out


def test_verify_a_record(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Ledger.open(".lexveil/ledger", anchor=".ledger-anchor.json") as ledger:
        ((name,), *_) = ledger.database.rows("select release from entries where kind = 'reserved'")
    for file, release in (("good.json", name), ("bad.json", "another")):
        (here / file).write_text(json.dumps({"release": {"id": release}}))
    assert call("verify", "--record", "good.json") == 0
    assert call("verify", "--record", "good.json", "bad.json") == 1
    assert "bad.json: its release is not in the chain" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "-"])
def test_export(here: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert call("export", name) == 0
    out, err = capsys.readouterr()
    assert err == "2 subjects written\n"
    if name == "out.parquet":
        table = pq.read_table(name).to_pydict()
        lines = [
            "subject,spent_nano,epsilon,n_releases",
            *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
        ]
    else:
        lines = (out if name == "-" else Path(name).read_text()).splitlines()
    assert lines[0] == "subject,spent_nano,epsilon,n_releases"
    assert sorted(line.split(",", 1)[1] for line in lines[1:]) == ["1000000000,1.0,1", "2500000000,2.5,2"]
    assert "ana" not in "".join(lines)


def test_export_of_plain_keys(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    params = Path("params.yaml")
    params.write_text(
        params.read_text().replace("folder: .lexveil/ledger", "folder: plain").replace(".ledger-anchor", "plain")
    )
    with Ledger.open("plain", "plain", anchor="plain.json") as ledger:
        spend(ledger, "ana")
    for name in ("-", "plain.parquet"):
        assert call("export", name) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(",1000000000,1.0,1,ana")
    assert pq.read_table("plain.parquet")["key"].to_pylist() == ["ana"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "ACTION"),
        (("show", "--top", "0"), "--top"),
        (("show", "--top", "1", "--subject", "x"), "not allowed with"),
        (("export",), "OUT"),
        (("export", "out.xlsx"), "must end in .csv or .parquet"),
        (("export", "params.csv"), "exists already"),
        (("export", "absent/out.csv/x.csv"), "cannot be written"),
        (("verify", "--record", "absent.json"), "cannot be read"),
        (("verify", "--record", "params.yaml"), "is not the record of a release"),
    ],
)
def test_wrong_requests(here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str) -> None:
    (here / "params.csv").write_text("")
    (here / "absent").mkdir()
    (here / "absent" / "out.csv").write_text("")
    assert call(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err


@pytest.mark.parametrize("arguments", [("show",), ("verify",), ("export", "-")])
def test_without_a_ledger(here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    params = Path("params.yaml")
    params.write_text(params.read_text().replace("folder: .lexveil/ledger", "folder: elsewhere"))
    assert call(*arguments) == 2
    assert "has no ledger" in capsys.readouterr().err
    assert not Path("elsewhere").exists()


def test_what_was_put_right_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Ledger.open(".lexveil/ledger", anchor=".ledger-anchor.json") as ledger:
        release = ledger.begin({})
        asked(release, "zoe")
        release._lock.held.release(force=True)  # as its process's end does
        assert call("show") == 0
    out, err = capsys.readouterr()
    assert f"release {release.id} was reserved when its process ended; it was aborted" in err
    assert "2 aborted, 2 committed" in out


def test_nothing_of_the_release_makes_a_stage_stale() -> None:
    """No stage declares a key of it; where the section is absent, nothing is limited."""
    import yaml

    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    assert not [
        name
        for name, stage in stages.items()
        if any(str(key).startswith(("ledger", "release", "inbox")) for key in stage.get("params", []))
    ]
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    del raw["ledger"]
    assert parse_params(raw).ledger.cap is None


def test_a_subject_that_the_ledger_does_not_know_is_said_to_be_none(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("show", "--subject", "nobody") == 0
    assert "0 epsilon spent, 2.5 of 2.5 are left (the ledger has nothing of this subject)" in capsys.readouterr().out


def test_what_rounding_left_is_nothing_left(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cap of 2.5000001: whoever spent 2.5 has nothing that a document could be paid from."""
    (here / "params.yaml").write_text((here / "params.yaml").read_text().replace("cap: 2.5", "cap: 2.5000001"))
    assert call("show") == 0
    assert "1 of them at the cap or above" in capsys.readouterr().out
    assert call("show", "--subject", "ana") == 0
    assert "2.5 epsilon spent, 0 of 2.5 are left" in capsys.readouterr().out
