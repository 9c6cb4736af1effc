"""`lexveil init --upgrade`: values and comments of an old params.yaml move to lexveil.toml."""

import stat
from pathlib import Path

import pytest
import yaml

from lexveil.io.config import load_configuration, load_params
from lexveil.io.execution import project_upgrade

ROOT = Path(__file__).parents[2]
# Sections as they stood in a params.yaml, in which a user has changed values and left notes.
OLD = """\
# What this machine may use.
machine:
  memory_limit: 8GB          # half of this machine; null is nothing
  # the cluster is slow on Mondays
  workers: 3
  stage_minutes: null        # null: never

ledger:
  cap: 'unlimited'
  database: null             # null: a file in the folder

release:
  shares:                    # of the budget
    numbers: 0.5             # telephone numbers
    list: null
  max_recovery: 0.2

inbox:
  sql: "SELECT id, text FROM 'a # b'"   # of the tickets
  text_columns: [text, note]
  protection: strong
"""
DETECTION = """\
  # Detectors of names.
  detector: presidio
  types: {PERSON: pseudonym}   # who
  presidio:
    entities: [PERSON]
"""
MOVED = [
    "machine",
    "ledger",
    "release",
    "inbox",
    "policy.detector",
    "policy.types",
    "policy.presidio",
]


@pytest.fixture
def old(tmp_path):
    """A project with a params.yaml of an earlier version."""
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    text = text.replace("\nsample:\n", f"\n{OLD}\nsample:\n", 1)
    before, oov, after = text.partition("  oov: sample")
    line, _, rest = after.partition("\n")
    text = f"{before}{oov}{line}\n{DETECTION}{rest}"
    (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    return tmp_path


def test_an_old_file_is_refused_by_every_command(old, cli, monkeypatch):
    monkeypatch.chdir(old)
    said = cli("ledger", "show", code=2).err
    assert f"{', '.join(MOVED)} moved to lexveil.toml; `lexveil init --upgrade`" in said
    assert not (old / ".lexveil/ledger").exists()


def test_values_move(old, cli):
    assert ", ".join(MOVED) in cli("init", "--upgrade", old).out
    moved = load_configuration(old / "lexveil.toml")
    assert (moved.machine.memory_limit, moved.machine.workers) == ("8GB", 3)
    assert moved.machine.stage_minutes is None and moved.ledger.cap == "unlimited"
    assert (moved.release.shares.numbers, moved.release.max_recovery) == (0.5, 0.2)
    assert moved.inbox.sql == "SELECT id, text FROM 'a # b'"
    assert moved.detection.types == {"PERSON": "pseudonym"}
    assert moved.detection.presidio.entities == ["PERSON"]


def test_what_remains_keeps_every_byte(old, cli):
    cli("init", "--upgrade", old)
    assert (old / "params.yaml").read_bytes() == (ROOT / "params.yaml").read_bytes()


def test_comments_move_with_their_keys(old, cli):
    cli("init", "--upgrade", old)
    lines = (old / "lexveil.toml").read_text(encoding="utf-8").splitlines()
    for comment, key in (
        ("# half of this machine; left out is nothing", 'memory_limit = "8GB"'),
        ("# the cluster is slow on Mondays", "workers = 3"),
        ('# "none": never', 'stage_minutes = "none"'),
        ("# telephone numbers", "numbers = 0.5"),
        ("# of the tickets", "sql = \"SELECT id, text FROM 'a # b'\""),
        ("# Detectors of names.", 'detector = "presidio"'),
        ("# who", 'types = { "PERSON" = "pseudonym" }'),
        ("# What this machine may use.", "[machine]"),
    ):
        assert lines[lines.index(key) - 1] == comment


def test_a_second_upgrade_changes_nothing(old, cli):
    cli("init", "--upgrade", old)
    before = {file.name: file.read_bytes() for file in old.iterdir() if file.is_file()}
    assert "has no key that belongs into lexveil.toml" in cli("init", "--upgrade", old).out
    assert {file.name: file.read_bytes() for file in old.iterdir() if file.is_file()} == before


def test_other_settings_are_not_overwritten(old, cli):
    (old / "lexveil.toml").write_text("[machine]\nworkers = 7\n", encoding="utf-8")
    before = (old / "params.yaml").read_bytes()
    said = cli("init", "--upgrade", old, code=2).err
    line = (old / "params.yaml").read_text(encoding="utf-8").splitlines().index("  workers: 3") + 1
    assert f"machine.workers is 7 in {old / 'lexveil.toml'}, line 2 and 3 in params.yaml" in said
    assert f"3 in params.yaml, line {line}; " in said and "nothing was changed" in said
    assert (old / "params.yaml").read_bytes() == before
    assert (old / "lexveil.toml").read_text(encoding="utf-8") == "[machine]\nworkers = 7\n"


def test_values_join_those_of_a_file_that_does_not_contradict_them(old, cli):
    """Other keys of the file stay, and so do its own lines."""
    lines = ["# mine", "[machine]", "threads = 5", "[release.shares]", "stopwords = 0.5  # few"]
    (old / "lexveil.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    cli("init", "--upgrade", old)
    merged = load_configuration(old / "lexveil.toml")
    assert (merged.machine.threads, merged.machine.workers) == (5, 3)
    assert (merged.release.shares.stopwords, merged.release.shares.numbers) == (0.5, 0.5)
    assert merged.machine.stage_minutes is None and merged.inbox.protection == "strong"
    text = (old / "lexveil.toml").read_text(encoding="utf-8").splitlines()
    assert [line for line in text if line in lines] == lines
    assert text[text.index("workers = 3") - 1] == "# the cluster is slow on Mondays"


def test_values_join_those_of_a_new_project(old, cli):
    """The file of a new project has the defaults, and examples of keys that have none."""
    (old / "lexveil.toml").write_bytes((ROOT / "lexveil.toml").read_bytes())
    cli("init", "--upgrade", old)
    merged = (old / "lexveil.toml").read_text(encoding="utf-8")
    into_none = load_configuration(old / "lexveil.toml")
    assert (into_none.machine.workers, into_none.release.max_recovery) == (3, 0.2)
    assert into_none.detection.types == {"PERSON": "pseudonym"}
    assert merged.count("\nworkers = ") == 1 and "#max_recovery" not in merged
    assert load_params(old / "params.yaml") == load_params(ROOT / "params.yaml")


@pytest.mark.parametrize(
    "text",
    ["machine = {threads = 5}\n", "machine.threads = 5\n", '["machine"] # mine\n"threads" = 5\n'],
)
def test_values_join_a_file_in_any_form_of_toml(old, cli, text):
    (old / "lexveil.toml").write_text(text, encoding="utf-8")
    cli("init", "--upgrade", old)
    machine = load_configuration(old / "lexveil.toml").machine
    assert (machine.threads, machine.workers) == (5, 3)


def test_files_that_are_wrong_together_are_not_joined(old, cli):
    (old / "lexveil.toml").write_text("[inbox]\nepsilon = 5.0\n", encoding="utf-8")
    before = (old / "params.yaml").read_bytes()
    said = cli("init", "--upgrade", old, code=2).err
    assert "inbox.protection and inbox.epsilon are both set" in said
    assert (old / "params.yaml").read_bytes() == before
    assert (old / "lexveil.toml").read_text(encoding="utf-8") == "[inbox]\nepsilon = 5.0\n"


def test_an_upgrade_that_was_killed_is_completed(old, cli, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(project_upgrade, "_without_moved", killed)
        with pytest.raises(KeyboardInterrupt):
            project_upgrade.upgrade(old)
    written = (old / "lexveil.toml").read_bytes()
    cli("init", "--upgrade", old)
    assert (old / "lexveil.toml").read_bytes() == written and load_params(old / "params.yaml")


@pytest.mark.parametrize(
    ("before", "after"),
    [("workers: 3", "workers: none"), ("min_pmi: 2.0", "min_pmy: 2.0"), ("ledger:", "  ledger:")],
)
def test_nothing_is_written_of_a_wrong_file(old, cli, before, after):
    text = (old / "params.yaml").read_text(encoding="utf-8")
    assert before in text
    (old / "params.yaml").write_text(text.replace(before, after, 1), encoding="utf-8")
    assert "params.yaml" in cli("init", "--upgrade", old, code=2).err
    assert not (old / "lexveil.toml").exists()


@pytest.mark.parametrize("flow", [True, False])
def test_any_form_of_yaml_is_read(old, cli, flow):
    """If several values stand in one line, the upgrade keeps the values and drops the comments."""
    raw = yaml.safe_load((old / "params.yaml").read_text(encoding="utf-8"))
    (old / "params.yaml").write_text(yaml.safe_dump(raw, default_flow_style=flow), encoding="utf-8")
    cli("init", "--upgrade", old)
    assert load_configuration(old / "lexveil.toml").machine.workers == 3
    assert load_params(old / "params.yaml") == load_params(ROOT / "params.yaml")


def test_permissions_stay(old, cli):
    (old / "params.yaml").chmod(0o600)
    cli("init", "--upgrade", old)
    modes = {stat.S_IMODE((old / name).stat().st_mode) for name in ("params.yaml", "lexveil.toml")}
    assert modes == {0o600}


def test_stages_of_another_version_are_named(old, cli):
    (old / "tasks").mkdir()
    (old / "tasks/count_ngrams.py").write_text("# ours\n", encoding="utf-8")
    assert "files of the project differ from the files of this version" in (
        cli("init", "--upgrade", old).out
    )


def test_a_new_project_has_a_name(cli):
    assert "DIR is missing" in cli("init", code=2).err
