"""Whole releases, `lexveil privatize` and `lexveil release`, killed at any moment of them, two at a time.

Each run is forked from a parent that has imported everything, says on a pipe which state of the ledger it has reached,
and gets SIGKILL, with its workers. Half of the kills are drawn evenly from the whole duration of such a run, half from
one of its states: the parent measures all the time how long each state lasts, draws state and part of it, and waits for
the run to reach it, so that kills land inside runs on any machine. After each pair the next process opens the ledger,
and what is out is counted from the outputs themselves. It is a violation if an output is not paid for, a subject is
over its cap, more is spent than killed runs had spent, or anything half-written is left.
"""

from __future__ import annotations

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy: the parent has no threads

import json
import os
import random
import select
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from lexveil.errors import LexveilError
from lexveil.ledger import chain
from tests.crash_states.kill_checks import Expected, Found, inspect

TEXT = "The government said that fire services in New South Wales were there, and so was Zorblax."
BUDGET = 40.0  # of a document
CAP = 6  # documents of one subject
SUBJECTS = 3  # of a pair of runs; new ones every PAIRS pairs, because a cap lasts for ever
PAIRS = 4
PROJECT = 40  # runs of one project: an inbox and an archive grow
SPARED = 10  # of so many runs one is not killed: how long its states last is not cut off by a kill
VERBS = ("privatize", "release", "privatize with workers")
WEIGHTS = (20, 20, 1)
RECENT = 15  # durations of a state that are remembered


def make_project(folder: Path, built: Path, cap: float | None) -> None:
    """A project with the artifacts of another, an inbox and a ledger of its own."""
    params = yaml.safe_load((built / "params.yaml").read_text(encoding="utf-8"))
    gate = params["inbox"]["gate"] | {"min_coverage": 0.1, "max_length_ratio": None}
    params["ledger"]["cap"], params["release"]["max_token_epsilon"] = cap, BUDGET
    params["inbox"] |= {
        "source": "inbox", "subject_column": "who", "columns": ["also"], "gate": gate,
        "document_budget": BUDGET,
    }  # fmt: skip
    for name in ("artifacts", "inbox", "outputs", "sources"):
        (folder / name).mkdir(parents=True)
    for path in (built / "artifacts").iterdir():
        if path.name != "data_docs":  # which releases write
            (folder / "artifacts" / path.name).symlink_to(path.absolute())
    (folder / "dvc.yaml").write_bytes((built / "dvc.yaml").read_bytes())
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def release(folder: Path, verb: str, number: int, subjects: list[str], said: int) -> None:
    """What a child does: one release, in a group of processes of its own, that says how far it is."""
    os.setpgid(0, 0)
    append = chain.append

    def saying(*arguments: Any) -> chain.Entry:
        entry = append(*arguments)
        os.write(said, f"{entry.kind} {time.monotonic()}\n".encode())
        return entry

    mock.patch.object(chain, "append", saying).start()
    os.chdir(folder)
    with Path(os.devnull).open("w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        os.write(said, f"begun {time.monotonic()}\n".encode())
        rows = [{"id": f"{number}-{n}", "who": who, "also": who, "text": TEXT} for n, who in enumerate(subjects)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        if verb == "release":
            from lexveil.inbox.run import release_inbox

            hidden = folder / "inbox" / f".{number}"
            hidden.write_text(lines, encoding="utf-8")
            hidden.rename(folder / "inbox" / f"{number}.jsonl")
            release_inbox()
        else:
            from lexveil.privatization.adapters.files import privatize_file
            from lexveil.request import FileRequest

            source = folder / "sources" / f"{number}.jsonl"
            source.write_text(lines, encoding="utf-8")
            request = FileRequest(
                mechanism="madlib",
                strategy="S3",
                document_budget=BUDGET,
                max_token_epsilon=BUDGET,
                subject_column="who",
                workers=2 if verb == "privatize with workers" else 1,
            )
            privatize_file(source, folder / "outputs" / f"{number}.jsonl", request)
    os.write(said, f"ended {time.monotonic()}\n".encode())


@dataclass(slots=True)
class Durations:
    """How long the states of a run last, as far as it was seen: the median of the last ones, in seconds."""

    seen: dict[str, dict[str, deque[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(lambda: deque(maxlen=RECENT)))
    )

    def draw(self, verb: str, rng: random.Random) -> tuple[str, float]:
        """The state in which a run is killed, and how many seconds after it is reached.

        Half of the kills are spread evenly over the whole duration, half evenly over states: those in which most can go
        wrong last milliseconds.
        """
        lasts = {state: statistics.median(values) for state, values in self.seen[verb].items()}
        if lasts and rng.random() < 0.5:
            state = rng.choice(list(lasts))
            return state, rng.uniform(0, lasts[state])
        moment = rng.uniform(0, sum(lasts.values()))
        for state, seconds in lasts.items():
            if moment < seconds:
                return state, moment
            moment -= seconds
        return "begun", 0.0


@dataclass(slots=True)
class Run:
    """One child."""

    verb: str
    number: int
    subjects: list[str]
    kill_in: str | None
    kill_after: float
    pid: int = 0
    said: int = 0
    state: str = "not begun"
    since: float = 0.0
    status: int | None = None
    rest: bytes = b""

    def listen(self, durations: Durations) -> None:
        """Take what it has said since."""
        while not self.ended and select.select([self.said], [], [], 0)[0]:
            if not (heard := os.read(self.said, 4096)):
                self.status = os.waitpid(self.pid, 0)[1]
                return
            *lines, self.rest = (self.rest + heard).split(b"\n")
            for line in lines:
                state, at = line.decode().split()
                if self.state != "not begun":
                    durations.seen[self.verb][self.state].append(float(at) - self.since)
                if self.state == self.kill_in and state != self.kill_in:
                    self.kill_in, self.kill_after = state, 0.0  # it was faster than those before: at once
                self.state, self.since = state, float(at)

    @property
    def ended(self) -> bool:
        """Whether it was killed or has ended."""
        return self.status is not None

    def due(self) -> float | None:
        """When it is to be killed, if that is known by now."""
        return self.since + self.kill_after if self.state == self.kill_in else None

    def kill(self) -> None:
        """Kill it with all of its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.status = os.waitpid(self.pid, 0)[1]

    @property
    def was_killed(self) -> bool:
        """Whether it did not end by itself."""
        return self.status is not None and os.WIFSIGNALED(self.status)


def fork(work: Callable[[], None], refused: int) -> int:
    """Do some work in a child; its number. What Lexveil refuses is written to ``refused``, and is no error."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except LexveilError as error:
            os.write(refused, f"{error}\n".encode())
            code = 2
        except BaseException as error:
            os.write(refused, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    return pid


@dataclass(slots=True)
class Killing:
    """Makes pairs of runs, kills them and has the rest inspected.

    Attributes:
        work: where projects are made.
        built: the project whose artifacts are used.
        killed: verb and state of each run that was killed.
    """

    work: Path
    built: Path
    rng: random.Random
    durations: Durations = field(default_factory=Durations)
    killed: Counter[tuple[str, str]] = field(default_factory=Counter)
    found: Found = field(default_factory=Found)
    finished: int = 0
    missed: int = 0
    number: int = 0
    pairs: int = 0
    folder: Path = Path()
    cost: int = 0

    def calibrate(self, verbs: tuple[str, ...]) -> None:
        """Let each kind of release run: what a document costs, and how long it takes where caches are warm."""
        self._project(None)
        for verb in [*verbs, *verbs]:
            self.pair([Run(verb, 0, ["nobody"], None, 0.0)])
        self.cost = self.found.dearest

    def go(self, runs: int, verbs: tuple[str, ...]) -> None:
        """Kill that many."""
        self.pairs = 0
        while (left := runs - self.killed.total()) > 0:
            if self.pairs % (PROJECT // 2) == 0:
                self._project((CAP * self.cost + 1) / 1e9)
            cohort = [f"subject-{self.pairs // PAIRS}-{n}" for n in range(SUBJECTS)]
            pair: list[Run] = []
            for _ in range(min(2, left)):
                # Two of `lexveil release` are kept apart by a lock.
                choice = [verb for verb in verbs if verb != "release" or all(run.verb != verb for run in pair)]
                (verb,) = self.rng.choices(choice, [WEIGHTS[VERBS.index(one)] for one in choice])
                state, after = self.durations.draw(verb, self.rng)
                spared = self.rng.randrange(SPARED) == 0
                subjects = self.rng.choices(cohort, k=self.rng.randint(1, 4))
                pair.append(Run(verb, 0, subjects, None if spared else state, after))
            self.pair(pair)
            if self.pairs % 20 == 0:
                print(f"{self.killed.total():,} of {runs:,} killed", file=sys.stderr, flush=True)

    def pair(self, pair: list[Run]) -> None:
        """Run some at once, kill them when they are due, and have the rest inspected."""
        refusals, refused = os.pipe()
        for run in pair:
            self.number += 1
            run.number = self.number
            reads, writes = os.pipe()
            run.pid = fork(partial(release, self.folder, run.verb, run.number, run.subjects, writes), refused)
            run.said = reads
            os.close(writes)
        while running := [run for run in pair if not run.ended]:
            due = min((at for run in running if (at := run.due()) is not None), default=time.monotonic() + 60)
            select.select([run.said for run in running], [], [], max(0.0, due - time.monotonic()))
            for run in running:
                run.listen(self.durations)
                at = run.due()
                if not run.ended and at is not None and at <= time.monotonic():
                    run.kill()
        os.close(refused)
        with os.fdopen(refusals, encoding="utf-8") as said:
            self.found.refusals.update(line.replace(str(self.folder), "FOLDER") for line in said.read().splitlines())
        self._count(pair)
        expected = Expected(self.folder, CAP * self.cost or None, sum(run.was_killed for run in pair))
        self.found.add(inspect(expected))
        self.pairs += 1

    def _count(self, pair: list[Run]) -> None:
        for run in pair:
            os.close(run.said)
            assert run.status is not None
            if run.was_killed:
                self.killed[run.verb, run.state] += 1
            elif run.status and os.waitstatus_to_exitcode(run.status) == 1:
                self.found.violations.append(f"a {run.verb} ended with an error, and not by being killed")
            else:
                self.finished += 1
                self.missed += run.kill_in is not None

    def _project(self, cap: float | None) -> None:
        self.folder = self.work / f"project-{self.number}"
        self.found.visible.clear()
        make_project(self.folder, self.built, cap)


def _warm_up(releases: bool) -> None:
    """Do for all children what takes long and starts no thread."""
    import numba

    from lexveil.runtime.hashes import code_hash

    names = ["pyarrow.dataset", "scipy.linalg", "lexveil.privatization.adapters.files"]
    if releases:
        names += ["lexveil.checks.release_suite", "lexveil.checks.validation", "lexveil.inbox.run"]
    for name in names:
        import_module(name)
    numba.njit("int64()")(lambda: 0)  # loads what every compiled function needs
    code_hash()


def run(runs: int, built: Path, work: Path, seed: int, verbs: tuple[str, ...] = VERBS) -> Killing:
    """Kill that many releases."""
    _warm_up("release" in verbs)
    killing = Killing(work, built, random.Random(seed))
    killing.calibrate(verbs)
    killing.go(runs, verbs)
    return killing


def main() -> None:
    """Kill ``RUNS`` releases of the built project here, in ``FOLDER``, and write what happened as JSON."""
    runs, folder, seed, *verbs = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir=folder) as work:
        killing = run(int(runs), Path.cwd(), Path(work), int(seed), tuple(verbs) or VERBS)
    found = killing.found
    states = sorted({state for _, state in killing.killed})
    summary = {"killed": killing.killed.total(), "states": states, "refusals": dict(found.refusals)}
    print(json.dumps(summary | {"violations": found.violations}))


if __name__ == "__main__":
    main()
