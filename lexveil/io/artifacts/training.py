"""Files of a training of embeddings: its checkpoints, a sample of sentences of the corpus, and the
test sets that measure the quality of the embedding. The test sets are similarity judgements and
analogies, which come with gensim.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lexveil.base.logs import logger
from lexveil.base.runtime.tables import atomic_directory
from lexveil.core.embeddings.base import Base
from lexveil.core.embeddings.intrinsic_evaluation import (
    LENGTHS,
    Question,
    analogies,
    by_frequency,
    neighbour_samples,
    similarity,
)
from lexveil.core.embeddings.training import (
    Trained,
    TrainingState,
    Word2VecSettings,
    train_word2vec,
)
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.io.config import MachineParams
from lexveil.io.execution.effort import foresee
from lexveil.io.execution.stage import Progress

LOG = logger(__name__)

FORMAT = 1  # version of the checkpoint format; older checkpoints are ignored
MEASURED_SENTENCES = 2000  # number of sentences of the corpus on which the loss is measured
ARRAYS = ("vectors", "output_vectors", "generator_key")
SIMILARITY = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}
ANALOGIES = "questions-words.txt"


class Checkpoints:
    """Checkpoints of one training in a folder of ``kept_work``. A checkpoint is the state after the
    last finished epoch, stored without pickles.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self) -> TrainingState | None:
        """Return the state after the last finished epoch. The result is None if there is no
        checkpoint.

        A checkpoint that a power cut truncated is skipped, because the checksums of its arrays
        differ.
        """
        for checkpoint in reversed(self._all()):
            try:
                facts = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
                arrays = {
                    name: np.load(checkpoint / f"{name}.npy", allow_pickle=False) for name in ARRAYS
                }
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
        """Write a state, and remove the previous state when the new state is complete."""
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
        return sorted(
            path for path in self.folder.glob("epoch-*") if re.fullmatch(r"epoch-\d{5,}", path.name)
        )


def some_sentences(corpus: Path, n: int) -> list[list[str]]:
    """Return at most ``n`` lines from evenly spaced positions of a file, split at spaces. The whole
    file is not read.
    """
    size = corpus.stat().st_size
    lines: dict[int, bytes] = {}
    with corpus.open("rb") as file:
        for number in range(n):
            file.seek(size * number // n)
            if number:
                file.readline()  # skip the first line, which is most likely incomplete
            start = file.tell()
            if start not in lines and (line := file.readline()):
                lines[start] = line
    return [line.decode("utf-8").split() for line in lines.values()]


def resumed_training(
    segmentation: str,
    corpus: Path,
    settings: Word2VecSettings,
    base: Base | None,
    folder: Path,
    machine: MachineParams,
) -> Trained:
    """Train an embedding, and report the progress. If an earlier training was interrupted in
    ``folder``, resume it.

    Raises:
        RequestError: if the training would take too long or too much memory; see ``foresee``.
    """
    epochs = settings.epochs
    workers = settings.workers
    if workers > 1:
        LOG.info(
            f"training with {workers} workers, which is faster but gives different vectors "
            "each time"
        )
    checkpoints = Checkpoints(folder)
    state = checkpoints.load()
    if state is not None:
        LOG.info(f"continuing an interrupted training: {state.epoch} of {epochs} epochs are done")
    progress = Progress(f"train {segmentation}", epochs, "epochs")
    progress.advance(state.epoch if state else 0)

    def on_start(n_tokens: int, n_words: int) -> None:
        finished = state.epoch if state else 0
        what = f"train {segmentation}: {n_tokens:,} tokens, {n_words:,} vectors, {epochs} epochs"
        read = (epochs - finished) * n_tokens * settings.dimensions
        held = n_words * settings.dimensions
        work = {"token dimensions trained": read, "vector dimensions trained": held}
        foresee(what, work, "Lower embeddings.epochs or sample.max_documents", machine, workers)

    def on_epoch(state: TrainingState) -> None:
        checkpoints.save(state)
        loss = state.losses[-1]
        progress.advance(1, note="" if loss is None else f"loss {loss:.3f}")

    trained = train_word2vec(
        str(corpus),
        settings,
        base=base,
        sentences=some_sentences(corpus, MEASURED_SENTENCES),
        resume=state,
        on_start=on_start,
        on_epoch=on_epoch,
    )
    progress.finish()
    return trained


def load_similarity(name: str) -> list[tuple[str, str, float]]:
    """Return the word pairs of one test set with their mean judgement, in lower case as all tokens.
    The list is empty if the set is not installed.
    """
    rows = [line.split("\t") for line in _lines(SIMILARITY[name]) if not line.startswith("#")]
    return [(first.lower(), second.lower(), float(judged)) for first, second, judged in rows]


def load_analogies() -> dict[str, list[Question]]:
    """Return the analogy questions by section, in lower case. The result is empty if the set is not
    installed.
    """
    sections: dict[str, list[Question]] = {}
    for line in _lines(ANALOGIES):
        if line.startswith(":"):
            questions = sections.setdefault(line[1:].strip(), [])
        else:
            a, b, c, d = line.lower().split()
            questions.append((a, b, c, d))
    return sections


def _lines(file: str) -> list[str]:
    # Do not import gensim: that takes seconds.
    spec = importlib.util.find_spec("gensim")
    path = Path(spec.origin).parent / "test" / "test_data" / file if spec and spec.origin else None
    # A repackaged gensim may lack the test sets. Quality is then not measured, and nothing else
    # depends on them.
    if path is None or not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def embedding_metrics(
    space: WordSpace, raw: WordSpace, about: Mapping[str, object], trained: Trained | None
) -> dict[str, object]:
    """Return figures on the size and the quality of an embedding, and facts about its training.

    Args:
        space: the embedding as it is used.
        raw: the embedding as it was trained, before its lengths were changed.
        about: facts about the training for the record.
        trained: the training of the embedding; None for an external model.
    """
    lengths = Counter(space.n_words.tolist())
    norms = np.linalg.norm(space.vectors, axis=1)
    losses = None if trained is None else [loss and round(loss, 4) for loss in trained.losses]
    return {
        "n_tokens": len(space.tokens),
        **{f"n_{name}s": lengths[n] for n, name in enumerate(LENGTHS, 1)},
        "tokens_covered": int(space.counts.sum()) if trained is None else trained.tokens_covered,
        # Round the value, because people compare this metric.
        "norm_median": round(float(np.median(norms)), 3),
        "norm_largest": round(float(norms.max()), 3),
        "training": {
            **about,
            "began": None if trained is None else trained.began,
            "loss_by_epoch": losses,
        },
        "quality": {
            "neighbours": neighbour_samples(raw),
            "similarity": {name: similarity(raw, load_similarity(name)) for name in SIMILARITY},
            "analogies": analogies(raw, load_analogies()),
            # Use the vectors as trained: their lengths show the effect of training.
            "frequency": by_frequency(raw, None if trained is None else trained.moved),
        },
    }
