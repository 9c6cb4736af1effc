"""Processes that are killed, race for the last of a budget, or put right at once what another
left."""

import json
import os
from pathlib import Path

import pytest
from few_words import NANO, asked, balance, edit, spend, states, write

from lexveil import Ledger, RequestError
from lexveil.release.ledger.verification import verify
from tests.forks import forks_of

pytestmark = pytest.mark.slow


# Argument 2 says after which call it kills itself.
DIES = """
import os, signal, sys, hashlib
from pathlib import Path
import numpy as np
from lexveil.release.ledger import chain
from lexveil.release.ledger.ledger import Ledger

folder, dies = Path(sys.argv[1]), sys.argv[2]
out = folder.parent

def reached(point):
    if point == dies:
        os.kill(os.getpid(), signal.SIGKILL)

append = chain.append
def appending(con, release, kind, payload):
    entry = append(con, release, kind, payload)
    reached(f"in {kind}")
    return entry
chain.append = appending
replace = os.replace
def replacing(a, b):
    replace(a, b)
    reached(f"renamed {Path(b).name}")
os.replace = replacing

with Ledger.open(folder) as ledger, ledger.begin({}, [out / ".p", out / ".q"]) as release:
    reached("opened")
    release.request(["ana", "ben"], np.ones(2))
    release.reserve(1.0, 1.0)
    (out / ".p").write_text("p")
    reached("reserved")
    (out / ".q").write_text("q")
    release.spend()
    reached("spent")
    hashes = {n: hashlib.sha256(n.encode()).hexdigest() for n in "pq"}
    release.written([(out / f".{n}", out / n, of_file) for n, of_file in hashes.items()])
    reached("written")
    release.publish()
    reached("published")
"""


@pytest.fixture(scope="module")
def forks():
    with forks_of("lexveil.release.ledger.ledger") as made:
        yield made


KILLED = [
    # reached, state that it leaves, and what it becomes
    pytest.param("renamed ledger.sqlite", None, None, id="while the ledger is made"),
    pytest.param("opened", "open", "aborted", id="opened"),
    pytest.param("in reserved", "open", "aborted", id="while it reserves"),
    pytest.param("reserved", "reserved", "aborted", id="reserved"),
    pytest.param("in spent", "reserved", "aborted", id="while it spends"),
    pytest.param("spent", "spent", "failed", id="spent"),
    pytest.param("in written", "spent", "failed", id="while it notes what is written"),
    pytest.param("written", "written", "committed", id="written"),
    pytest.param("renamed p", "written", "committed", id="while it publishes"),
    pytest.param("published", None, "committed", id="published"),
]


@pytest.mark.parametrize(("dies", "was", "becomes"), KILLED)
def test_a_killed_release_is_put_right(forks, folder, tmp_path, dies, was, becomes):
    """The next process that opens the ledger finishes the release or takes it back, and leaves no
    trace of it.
    """
    assert forks.run(DIES, folder, dies).returncode == -9
    with Ledger.open(folder) as ledger:
        recovered = [(one.was, one.now, one.notes) for one in ledger.recovered]
        assert recovered == ([(was, becomes, [])] if was else [])
        assert states(ledger) == ([becomes] if becomes else [])
    published = {"p", "q"} if becomes == "committed" else set()
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == published
    assert [path.name for path in (folder / "locks").iterdir()] == ["making"]
    assert not list(folder.glob(".*.partial"))
    assert verify(folder).problems == []


@pytest.mark.parametrize(("dies", "_", "becomes"), KILLED)
def test_a_killed_release_is_paid_for_once_noise_may_be_drawn(forks, folder, dies, _, becomes):
    assert forks.run(DIES, folder, dies).returncode == -9
    paid = becomes in ("committed", "failed")
    with Ledger.open(folder) as ledger:
        balances = [balance(ledger, subject) for subject in ("ana", "ben")]
        assert balances == [NANO * paid] * 2
        assert spend(ledger, "ana", cap=1.0).n_withheld == paid


@pytest.mark.parametrize(
    ("name", "content", "note"),
    [(".q", "damaged", "q: damaged"), (".q", None, "q: missing"), ("p", None, "p: missing")],
)
def test_what_is_gone_stays_paid(forks, folder, tmp_path, name, content, note):
    assert forks.run(DIES, folder, "renamed p").returncode == -9  # p is out, q is not
    (tmp_path / name).unlink()
    if content:
        (tmp_path / name).write_text(content)
    with Ledger.open(folder) as ledger:
        assert [one.now for one in ledger.recovered] == ["committed"]
        assert [line.endswith(note) for line in ledger.recovered[0].notes] == [True]
        assert balance(ledger, "ana") == NANO
        ((payload,),) = ledger.database.rows("select payload from entries where kind = 'committed'")
    assert json.loads(payload)["lost"][0].endswith(note)
    assert not (tmp_path / ".q").exists()
    assert verify(folder).holds


@pytest.mark.parametrize(
    ("dies", "call", "state", "later"),
    [
        ("renamed p", (os, "replace"), "written", "committed"),
        ("reserved", (Path, "unlink"), "reserved", "aborted"),
    ],
)
def test_what_cannot_be_put_right_now_is_left_for_later(
    forks,
    folder,
    tmp_path,
    dies,
    call,
    state,
    later,
):
    """An output that cannot be renamed stays paid; of a partial that cannot be removed nothing is
    given back."""
    assert forks.run(DIES, folder, dies).returncode == -9

    def denied(path, *_, **__):
        if path.name in (".p", ".q"):
            raise PermissionError(13, "Permission denied", str(path))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*call, denied)
        with Ledger.open(folder) as ledger:
            assert [one.now for one in ledger.recovered] == states(ledger) == [state]
            assert balance(ledger, "ana") == NANO
    with Ledger.open(folder) as ledger:
        assert states(ledger) == [later]
        assert balance(ledger, "ana") == (NANO if later == "committed" else 0)
    assert (tmp_path / "q").exists() == (later == "committed") and not (tmp_path / ".p").exists()


def test_who_begins_first_puts_right_what_died_since(forks, folder, tmp_path):
    """A ledger that stays open: the file that the dead one wrote can be written again."""
    with Ledger.open(folder) as ledger:
        assert forks.run(DIES, folder, "reserved").returncode == -9
        with ledger.begin({}, [tmp_path / ".p"]) as release:
            assert states(ledger) == ["aborted", "open"]
            assert asked(release, "ana", cap=1.0).n_withheld == 0


def together(forks, code, *arguments):
    """Return the outputs of processes that all wait at a barrier before the first one begins."""
    barrier, start = os.pipe()
    started = [forks.start(code, *given, stdin=barrier) for given in arguments]
    os.close(start)
    os.close(barrier)
    done = [fork.wait() for fork in started]
    assert [one.returncode for one in done] == [0] * len(done), [one.stderr for one in done]
    return [one.stdout.strip() for one in done]


def test_a_release_whose_ledger_was_replaced_publishes_nothing(folder, tmp_path):
    """The test simulates locks that do not work, so that another process aborts the release of a
    living one.
    """
    said = pytest.raises(RequestError, match="is aborted in the ledger")
    with Ledger.open(folder) as ledger, said, ledger.begin({}, [tmp_path / ".f"]) as release:
        asked(release, "ana")
        edit(folder, "update releases set state = 'aborted'")
        write(release, tmp_path, "f")
    assert not (tmp_path / "f").exists()
