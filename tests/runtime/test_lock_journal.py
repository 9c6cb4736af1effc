"""dvc.lock beside its journal: entries are read, put in together, and never lost or mixed by a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from dvc.utils.serialize import dumps_yaml, loads_yaml

from lexveil.runtime import lock_cache, lock_journal
from lexveil.runtime.lock_text import HEAD, cut
from lexveil.runtime.lock_yaml import entry_text, read_entries

LOCK = Path(__file__).parents[2] / "dvc.lock"


def entry(name: str, cmd: str) -> str:
    return f"  {name}:\n    cmd: {cmd}\n"


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose dvc.lock has two entries, with a journal that is never put into it by itself."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lock_journal, "SMALL", 0)
    monkeypatch.setattr(lock_journal, "SHARE", 0)
    Path("dvc.lock").write_text(HEAD + entry("a", "1") + entry("b", "1"))
    return tmp_path / lock_journal.JOURNAL


def lock() -> str:
    return Path("dvc.lock").read_text()


def test_entries_are_read_from_the_journal_and_put_into_the_lock(journal: Path) -> None:
    before = lock()
    lock_journal.append("b", entry("b", "2"))
    lock_journal.append("c", entry("c", "1"))
    lock_journal.append("b", entry("b", "3"))
    assert lock() == before
    assert [lock_journal.current(name) for name in "abcd"] == [entry("a", "1"), entry("b", "3"), entry("c", "1"), ""]
    lock_journal.fold()
    assert lock() == HEAD + entry("a", "1") + entry("b", "3") + entry("c", "1")
    assert not journal.exists()
    lock_journal.fold()


def test_an_entry_that_did_not_change_is_not_written(journal: Path) -> None:
    lock_journal.append("a", entry("a", "1"))
    assert not journal.exists()


def test_a_record_cut_anywhere_leaves_the_others(journal: Path) -> None:
    """SIGKILL may end a write after any byte; what comes after it in a later run is read all the same."""
    lock_journal.append("a", entry("a", "2"))
    first = journal.read_bytes()
    lock_journal.append("b", entry("b", "2"))
    second = journal.read_bytes()[len(first) :]
    before = lock()
    for end in range(len(second)):
        Path("dvc.lock").write_text(before)
        journal.write_bytes(first + second[:end])
        lock_journal.append("c", entry("c", "1"))
        lock_journal.fold()
        assert lock() == HEAD + entry("a", "2") + entry("b", "1") + entry("c", "1")


def test_a_kill_before_the_journal_is_removed_does_no_harm(journal: Path) -> None:
    lock_journal.append("a", entry("a", "2"))
    kept = journal.read_bytes()
    lock_journal.fold()
    after = lock()
    journal.write_bytes(kept)
    lock_journal.fold()
    assert lock() == after


def test_what_somebody_else_wrote_meanwhile_stays(journal: Path) -> None:
    lock_journal.append("a", entry("a", "2"))
    Path("dvc.lock").write_text(HEAD + entry("a", "theirs") + entry("b", "1"))
    assert lock_journal.current("a") == entry("a", "theirs")
    lock_journal.fold()
    assert lock() == HEAD + entry("a", "theirs") + entry("b", "1")


def test_bytes_written_grow_with_the_lock_and_not_with_its_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lock_journal, "SMALL", 0)
    written = []
    replace = lock_journal.os.replace
    monkeypatch.setattr(
        lock_journal.os, "replace", lambda old, new: (written.append(old.stat().st_size), replace(old, new))
    )
    totals = {}
    for stages in (50, 400):
        Path("dvc.lock").unlink(missing_ok=True)
        written.clear()
        for number in range(stages):
            lock_journal.append(f"s{number}", entry(f"s{number}", "x" * 2000))
        lock_journal.fold()
        assert list(cut(lock()) or ()) == [f"s{number}" for number in range(stages)]
        totals[stages] = sum(written) / len(lock())
    assert totals[400] < 12 and totals[400] < 1.5 * totals[50]  # written at each stage they would be 200 and 25


def test_the_lock_of_another_form_is_not_for_the_journal(journal: Path) -> None:
    Path("dvc.lock").write_text("# mine\n" + lock())
    assert lock_journal.current("a") is None


def test_entries_are_written_as_dvc_writes_them() -> None:
    text = LOCK.read_text(encoding="utf-8")
    entries = cut(text)
    assert entries
    for name in [*entries][::6]:
        record = loads_yaml(HEAD + entries[name])["stages"][name]
        assert f"  {name}:\n{entry_text(record, dumps_yaml, '    ')}" == entries[name]
        assert entry_text(record, dumps_yaml) == dumps_yaml(record)


def parse(text: str) -> dict[str, Any]:
    return dict(loads_yaml(text)["stages"])


def test_entries_are_read_as_dvc_reads_them() -> None:
    """The lists of files are read without a library; what is left for it is a small part."""
    text = LOCK.read_text(encoding="utf-8")
    seen: list[int] = []

    def counted(part: str) -> dict[str, Any]:
        seen.append(len(part))
        return parse(part)

    entries = cut(text)
    assert entries
    read, wanted = read_entries(entries, counted), parse(text)
    assert read == wanted and json.dumps(read) == json.dumps(wanted) and sum(seen) < len(text) / 5


ODD = """1e5 0x1g. yes No null ~ . .. 1.5 1_000.0 12:30:45 2001-01-01 -g/. g.: @g/. ü/g.x 'g.' true.g m/y.no
00000000000000000000000000000000 1e000000000000000000000000000000 12345678901234567890123456789e12
d41d8cd98f00b204e9800998ecf8427e.dir""".split()


@pytest.mark.parametrize(
    "value",
    [
        *ODD,
        "",
        "a: b",
        "a #b",
        " g.",
        "a b/g.txt",
        "g/" * 60,
        7,
        -1,
        True,
        None,
        1.5,
        1e-7,
        [],
        {},
        ["a/g"],
        {"a": "b"},
    ],
    ids=repr,
)
def test_odd_values_are_written_as_dvc_writes_them(value: object) -> None:
    other = deepcopy(value)  # DVC's records share no lists
    record = {"cmd": "x", "deps": [{"path": value, "size": 3}], "outs": [{"path": "a/g", "other": other}]}
    written = dumps_yaml({"stages": {"s": record}})
    assert f"stages:\n  s:\n{entry_text(record, dumps_yaml, '    ')}" == written
    if entries := cut(HEAD + written.removeprefix("stages:\n")):
        assert repr(read_entries(entries, parse)) == repr(parse(written))


@pytest.mark.parametrize(
    "lines",
    [
        "    deps:\n    - path: a/g\n      size: 07\n",
        "    deps:\n    - path: a/g\n      path: b/g\n",
        "    deps:\n    - path: a/g #c\n",
        "    deps:\n    - path: a/g\n      size: 1_0\n",
        "    deps: []\n",
        "    deps: a\n    - path: a/g\n",
        "    deps:\n      path: a/g\n",
        "    deps:\n    - path: a/g\n      md5: 12345678901234567890123456789012\n      size: 0x10\n",
        "    deps:\n    - path: a/g\n        more\n",
        "    outs:\n    - path: a/g\n    deps:\n    - path: b/g\n    outs:\n    - path: c/g\n",
    ],
    ids=repr,
)
def test_entries_that_dvc_would_not_write_are_read_as_dvc_reads_them(lines: str) -> None:
    def outcome(read: Callable[[], object]) -> str:
        try:
            return repr(read())
        except Exception as error:
            return type(error).__name__

    text = HEAD + entry("s", "x") + lines
    entries = cut(text)
    assert entries is not None
    assert outcome(lambda: read_entries(entries, parse)) == outcome(lambda: parse(text))


def test_known_entries_are_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[list[str]] = []

    def parse(text: str) -> dict[str, Any]:
        stages = dict(loads_yaml(text)["stages"])
        seen.append(list(stages))
        return stages

    text = HEAD + entry("a", "1") + entry("b", "{1: 2}")
    wanted = {"a": {"cmd": 1}, "b": {"cmd": {1: 2}}}  # JSON would make 1 a text: never kept
    for asked in (["a", "b"], ["b"]):
        assert lock_cache.parsed(text, "k", parse) == wanted and seen.pop() == asked
    lock_cache._known.cache_clear()  # another process
    assert lock_cache.parsed(text, "k", parse) == wanted and seen.pop() == ["b"]
    lock_cache.parsed(text, "k", parse)["a"]["cmd"] = 5  # type: ignore[index]  # the caller's own copy
    assert lock_cache.parsed(text, "k", parse) == wanted
    assert lock_cache.parsed("# mine\n" + text, "k", parse) is None
    file = next(lock_cache.FOLDER.iterdir())
    for damage in ("", "[]", "{", json.dumps({"a": 1})):
        file.write_text(damage)
        lock_cache._known.cache_clear()
        assert lock_cache.parsed(text, "k", parse) == wanted


def test_a_journal_that_was_cut_inside_a_character_is_read_up_to_there(journal: Path) -> None:
    lock_journal.append("a", entry("a", "Grüße"))
    lock_journal.append("b", entry("b", "Grüße"))
    whole = journal.read_bytes()
    second = whole.index(lock_journal.MARK.encode(), 1)
    for end in range(second, len(whole)):
        journal.write_bytes(whole[:end])
        assert lock_journal.current("a") == entry("a", "Grüße")
        assert lock_journal.current("b") == entry("b", "1")
    before = lock()
    lock_journal.fold()
    assert not journal.exists() and lock() == before.replace(entry("a", "1"), entry("a", "Grüße"))


def test_a_journal_does_not_keep_a_damaged_lock_from_being_seen_to(journal: Path) -> None:
    lock_journal.append("a", entry("a", "2"))
    Path("dvc.lock").write_bytes((HEAD + entry("a", "Grü")).encode()[:-2])
    lock_journal.fold()
    assert not journal.exists()
