"""A long training and its files: checkpoints, a sample of sentences of the corpus, progress by how far it is read."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
import zlib
from pathlib import Path
from types import TracebackType

import numpy as np

from lexveil.embeddings.base import Base
from lexveil.embeddings.training import Trained, TrainingState, Word2VecSettings, train_word2vec
from lexveil.runtime.tables import atomic_directory

FORMAT = 1  # of a checkpoint; an older one is not read
SENTENCES = 2000  # of the corpus, from which the examples come that the loss is measured on
ARRAYS = ("vectors", "output_vectors", "generator_key")


class Checkpoints:
    """The state of one training after its last finished epoch, in a folder of ``kept_work``. Nothing is pickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self) -> TrainingState | None:
        """The state of the last finished epoch, or None.

        A truncated checkpoint (the machine lost power) counts as none: the checksums of its arrays differ.
        """
        for checkpoint in reversed(self._all()):
            try:
                facts = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
                arrays = {name: np.load(checkpoint / f"{name}.npy", allow_pickle=False) for name in ARRAYS}
                if any(zlib.crc32(arrays[name].data) != facts["crc32"][name] for name in ARRAYS):
                    continue
                return TrainingState(
                    epoch=facts["epoch"],
                    generator_position=facts["generator_position"],
                    losses=facts["losses"],
                    **arrays,
                )
            except (OSError, ValueError, KeyError, EOFError):
                continue
        return None

    def save(self, state: TrainingState) -> None:
        """Write the state; the one before is removed when this one is whole."""
        before = self._all()
        facts = {name: getattr(state, name) for name in ("epoch", "generator_position", "losses")}
        with atomic_directory(self.folder / f"epoch-{state.epoch:05d}") as partial:
            facts["crc32"] = {}
            for name in ARRAYS:
                array = np.ascontiguousarray(getattr(state, name))
                np.save(partial / f"{name}.npy", array, allow_pickle=False)
                facts["crc32"][name] = zlib.crc32(array.data)
            (partial / "state.json").write_text(json.dumps(facts), encoding="utf-8")
        for old in before:
            if old.name != f"epoch-{state.epoch:05d}":
                shutil.rmtree(old, ignore_errors=True)

    def _all(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("epoch-*") if re.fullmatch(r"epoch-\d{5,}", path.name))


def some_sentences(corpus: Path, n: int) -> list[list[str]]:
    """At most ``n`` lines of a file, from evenly spaced places, split at spaces; the file is not read as a whole."""
    size = corpus.stat().st_size
    lines: dict[int, bytes] = {}
    with corpus.open("rb") as file:
        for number in range(n):
            file.seek(size * number // n)
            if number:
                file.readline()  # most likely the rest of a line
            start = file.tell()
            if start not in lines and (line := file.readline()):
                lines[start] = line
    return [line.decode("utf-8").split() for line in lines.values()]


class TrainingWatch:
    """Reports every few seconds how far training is, inside an epoch too.

    gensim reports nothing before the end of an epoch in the mode that reads a file itself. But it reads that file from
    one end to the other, and Linux shows its position. Elsewhere only the ends of epochs are reported.
    """

    def __init__(self, label: str, corpus: Path, epochs: int, workers: int, every: float = 5.0) -> None:
        self.label, self.corpus, self.epochs, self.workers, self.every = label, corpus, epochs, workers, every
        self.size = max(corpus.stat().st_size, 1)
        self.n_tokens = 0
        self.first = self.finished = 0
        self.losses: list[float | None] = []
        self.start = self.reported = time.monotonic()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> TrainingWatch:
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.over.set()
        self.thread.join()

    def begin(self, n_tokens: int, finished: int) -> None:
        """The vocabulary is known; ``finished`` epochs were done earlier."""
        self.n_tokens, self.first, self.finished = n_tokens, finished, finished
        self.start = time.monotonic()

    def epoch_ends(self, finished: int, losses: list[float | None]) -> None:
        """Another epoch is done."""
        self.finished, self.losses = finished, losses
        if time.monotonic() - self.reported >= self.every or finished == self.epochs:
            self._report(0.0)

    def _watch(self) -> None:
        while not self.over.wait(self.every):
            read = read_share(self.corpus, self.size, self.workers if self.n_tokens else 1)
            if read is None or time.monotonic() - self.reported < self.every / 2:
                continue
            if not self.n_tokens:
                print(f"{self.label}: counting tokens, {read:.0%}", flush=True)
            elif self.finished < self.epochs:
                self._report(read)

    def _report(self, share: float) -> None:
        self.reported = time.monotonic()
        elapsed = max(self.reported - self.start, 1e-9)
        done = self.finished - self.first + share
        line = f"{self.label}: {self.finished} of {self.epochs} epochs"
        if share:
            line += f" and {share:.0%} of the next"
        line += f", {done * self.n_tokens / elapsed:,.0f} tokens/s"
        if self.losses and self.losses[-1] is not None:
            line += f", loss {self.losses[-1]:.3f}"
        left = self.epochs - self.finished - share
        if left > 0 and done > 0:
            line += f", about {elapsed * left / done:.0f} s left"
        print(line, flush=True)


def read_share(file: Path, size: int, readers: int) -> float | None:
    """The share of ``file`` that this process has read, by ``readers`` that each read one part of equal length.

    None if it is not open, or on a system other than Linux, which shows positions in /proc.
    """
    wanted, part = str(file.resolve()), size / readers
    shares: list[float] = []
    for link in Path("/proc/self/fd").glob("*"):
        try:
            if str(link.readlink()) == wanted:
                position = int(Path("/proc/self/fdinfo", link.name).read_text().split()[1])
                shares.append(min(position, size - 1) % part / part)
        except OSError:
            continue  # closed meanwhile
    # A reader that has closed the file has read its part.
    return min(1.0, (sum(shares) + max(0, readers - len(shares))) / readers) if shares else None


def resumed_training(
    segmentation: str, corpus: Path, settings: Word2VecSettings, base: Base | None, folder: Path
) -> Trained:
    """Train, or go on with what a stopped training left in ``folder``, and say how far it is."""
    epochs, workers = settings.epochs, settings.workers
    if workers > 1:
        print(f"training with {workers} workers: faster, and not byte-stable: other vectors each time", flush=True)
    checkpoints = Checkpoints(folder)
    state = checkpoints.load()
    if state is not None:
        print(f"going on with an interrupted training: {state.epoch} of {epochs} epochs are done", flush=True)
    with TrainingWatch(f"train {segmentation}", corpus, epochs, workers) as watch:

        def on_epoch(state: TrainingState) -> None:
            checkpoints.save(state)
            watch.epoch_ends(state.epoch, state.losses)

        return train_word2vec(
            str(corpus),
            settings,
            base=base,
            sentences=some_sentences(corpus, SENTENCES),
            resume=state,
            on_start=lambda n_tokens: watch.begin(n_tokens, state.epoch if state else 0),
            on_epoch=on_epoch,
        )
