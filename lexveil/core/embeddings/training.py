"""Word2Vec training by gensim (Mikolov et al. 2013), in one space for words and collocations
(CLMLDP section 4.2).

A training can resume after any of its epochs and ends with the same bytes as an uninterrupted
training. Besides the two matrices, gensim carries only the state of one generator from one epoch to
the next, from which each worker takes the seed of its epoch (word2vec_inner.pyx, init_w2v_config).
The learning rate depends on the number of the epoch.

The fit of a model to its corpus is measured as the mean negative-sampling loss over a fixed sample
of examples. gensim's own tally is not used, because it has three faults. It adds every loss into
one float32 (word2vec_inner.pyx), which no longer grows once a loss is less than half its spacing:
losses below 1 at 2^24, within the first epoch of a few million tokens. With several workers, the
last worker's tally overwrites the others. And the tally leaves out pairs with a score beyond 6,
which are the worst predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from lexveil.base.errors import RequestError
from lexveil.base.types import Counts, Floats, Ids, Vectors
from lexveil.core.embeddings.base import Base, Start, joined, of_joined, start
from lexveil.core.embeddings.word_space import WordSpace

PROBE = 4096  # examples on which the loss is measured
EXAMPLES = 1024  # examples per block, to limit memory
NOISE_EXPONENT = 0.75  # Mikolov et al. 2013; gensim's default
ROWS_AT_A_TIME = 4096  # rows of the initial vectors drawn per block


@dataclass(frozen=True, slots=True)
class TrainingState:
    """State of a training after an epoch, from which the training can resume: everything on which
    later epochs depend.

    Attributes:
        epoch: number of finished epochs.
        vectors: (V, p) float32, gensim's syn0.
        output_vectors: (V, p) float32, gensim's syn1neg.
        generator_key: (624,) uint32, the state of gensim's Mersenne Twister.
        generator_position: position of the next number in that state.
        losses: mean loss after each finished epoch, in nats; None if there are no examples for
            measuring it.
    """

    epoch: int
    vectors: Vectors
    output_vectors: Vectors
    generator_key: npt.NDArray[np.uint32]
    generator_position: int
    losses: list[float | None]


@dataclass(frozen=True, slots=True)
class Word2VecSettings:
    """Word2Vec settings with gensim's meaning. Together with the corpus they determine the bytes
    of the trained vectors.

    Attributes:
        dimensions: p.
        min_count: tokens rarer than this get no vector.
        workers: number of threads; with more than one, the same seed gives other bytes, since
            threads write to the same vectors without locks.
        subsample: share of the corpus above which occurrences of a token are left out at random; 0
            leaves out none.
    """

    dimensions: int
    window: int
    min_count: int
    epochs: int
    negative: int
    skip_gram: bool
    workers: int
    seed: int
    subsample: float = 1e-3

    def model(self, kind: type[Any]) -> Any:
        """Return an untrained gensim model with these settings. The model has the class ``kind``,
        which is gensim's Word2Vec or derived from it.
        """
        return kind(
            vector_size=self.dimensions,
            window=self.window,
            min_count=self.min_count,
            epochs=self.epochs,
            negative=self.negative,
            sg=int(self.skip_gram),
            sample=self.subsample,
            workers=self.workers,
            seed=self.seed % 2**32,
            hashfxn=_stable_hash,
        )


@dataclass(frozen=True, slots=True)
class Probe:
    """Sample of n training examples on which the loss is measured: input words, the word to be
    predicted from them, and noise words.

    Attributes:
        inputs: (n, m) ids, -1 for padding: one context word in skip-gram, all of them in CBOW,
            which averages.
        targets: (n,) ids of the words to be predicted.
        noise: (n, negative) ids, drawn in proportion to count^0.75; a noise word that equals the
            target is ignored.
    """

    inputs: Ids
    targets: Ids
    noise: Ids

    def loss(self, vectors: Vectors, output_vectors: Vectors) -> float | None:
        """Return the mean negative-sampling loss -log σ(h·u_target) - Σ log σ(-h·u_noise) in nats,
        where h is the mean of the input words' vectors.

        Before training, all output vectors are 0 and the loss is (1 + negative)·ln 2. The loss is
        None if there is no example.

        Args:
            vectors: (V, p), gensim's syn0.
            output_vectors: (V, p), gensim's syn1neg.
        """
        if not len(self.targets):
            return None
        total = 0.0
        for first in range(0, len(self.targets), EXAMPLES):
            inputs = self.inputs[first : first + EXAMPLES]
            is_context = inputs >= 0
            hidden = np.einsum(
                "nmp,nm->np",
                vectors[inputs].astype(np.float64),
                is_context / is_context.sum(1, keepdims=True),
            )
            words = np.column_stack(
                [self.targets[first : first + EXAMPLES], self.noise[first : first + EXAMPLES]]
            )
            score = np.einsum("nkp,np->nk", output_vectors[words].astype(np.float64), hidden)
            score[:, 0] *= -1
            loss = np.logaddexp(0.0, score)
            loss[:, 1:][words[:, 1:] == words[:, :1]] = 0.0
            total += float(loss.sum())
        return total / len(self.targets)


@dataclass(frozen=True, slots=True)
class Trained:
    """Result of a Word2Vec training.

    Attributes:
        space: the embedding, V tokens.
        losses: the mean loss after each epoch (see ``TrainingState``); empty if there was nothing
            to train.
        moved: (V,) distance of each vector from its random start, in lengths of that start; NaN for
            a vector without a random start.
        tokens_covered: occurrences of the trained tokens in the corpus.
        began: number of vectors for each kind of start (the base's vector, the mean of the words'
            vectors, random), and the number of the base's tokens that were not trained. None
            without a base.
    """

    space: WordSpace
    losses: list[float | None]
    moved: Floats
    tokens_covered: int
    began: dict[str, int] | None = None


def _stable_hash(text: str) -> int:
    # Python's own hash of a string differs between processes.
    return crc32(text.encode())


def with_plain_copies(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each line of a segmented corpus. After a line with collocations, yield the same line as
    plain words.

    So "york" gets a vector that is trained on all of its occurrences, in the same space as
    "new_york".
    """
    for line in lines:
        yield line
        if b"_" in line:  # no normal form of a word contains ``_``
            yield line.replace(b"_", b" ")


def train_word2vec(
    corpus_file: str,
    settings: Word2VecSettings,
    *,
    base: Base | None = None,
    sentences: Sequence[Sequence[str]] = (),
    resume: TrainingState | None = None,
    on_start: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[TrainingState], None] | None = None,
) -> Trained:
    """Train Word2Vec on a file with one sentence per line and spaces between tokens.

    With one worker, the same file, settings and base give the same bytes, whether the training was
    interrupted or not.

    Args:
        corpus_file: path of the file. gensim opens it itself, which is faster than passing
            sentences to gensim.
        base: a model whose vectors are the start of the training, and whose other tokens are added.
        sentences: some sentences of the corpus; the loss is measured on examples drawn from them.
        resume: a state that ``on_epoch`` received for the same corpus, settings and base.
        on_start: called when the vocabulary is known, with the number of tokens of the corpus and
            the number of vectors.
        on_epoch: called after each epoch with the state. The arrays of the state belong to gensim
            and change after the call.

    Raises:
        RequestError: if no token occurs ``min_count`` times and there is no base.
    """
    finished, losses = (resume.epoch, list(resume.losses)) if resume else (0, [])

    def epoch_ends(model: Any, epoch: int) -> None:
        losses.append(probe.loss(model.wv.vectors, model.syn1neg))
        if on_epoch is not None:
            _, key, position, *_ = model.random.get_state()
            on_epoch(
                TrainingState(epoch, model.wv.vectors, model.syn1neg, key, int(position), losses)
            )

    model = settings.model(_resumable(finished, epoch_ends))
    with suppress(RuntimeError):  # the corpus has no token
        model.build_vocab(corpus_file=corpus_file)
    if not model.wv.index_to_key:
        return _untrained(base, settings.min_count)
    tokens = list(model.wv.index_to_key)
    counts = np.asarray(model.wv.expandos["count"], dtype=np.int64).copy()
    keep = np.asarray(model.wv.expandos["sample_int"]) / 2**32
    probe = draw_probe(sentences, model.wv.key_to_index, counts, keep, settings)
    begun = None if base is None else _begin(model, tokens, base)
    if resume is not None:
        model.wv.vectors[:] = resume.vectors
        model.syn1neg[:] = resume.output_vectors
        model.random.set_state(("MT19937", resume.generator_key, resume.generator_position))
    if on_start is not None:
        on_start(model.corpus_total_words, len(tokens))
    model.train(
        corpus_file=corpus_file,
        total_examples=model.corpus_count,
        total_words=model.corpus_total_words,
        epochs=settings.epochs,
    )
    own = WordSpace(tokens, np.ascontiguousarray(model.wv.vectors, dtype=np.float32), counts)
    return _finished(own, losses, settings.seed, base, begun)


def _resumable(finished: int, epoch_ends: Callable[[Any, int], None]) -> type[Any]:
    """Return a subclass of gensim's Word2Vec that skips its first ``finished`` epochs and calls
    ``epoch_ends`` after each of the others.
    """
    from gensim.models import Word2Vec

    class Resumable(Word2Vec):  # type: ignore[misc]
        def _train_epoch_corpusfile(self, *args: Any, cur_epoch: int = 0, **rest: Any) -> Any:
            if cur_epoch < finished:
                return 0, 0, 0
            totals = super()._train_epoch_corpusfile(*args, cur_epoch=cur_epoch, **rest)
            epoch_ends(self, cur_epoch + 1)
            return totals

    return Resumable


def _untrained(base: Base | None, min_count: int) -> Trained:
    if base is None:
        raise RequestError(
            f"no token occurs {min_count} times in the segmented corpus, so there is nothing "
            "to train; "
            "lower embeddings.min_count in params.yaml or use more text"
        )
    nothing = WordSpace(
        [], np.empty((0, base.space.vectors.shape[1]), np.float32), np.empty(0, np.int64)
    )
    none = np.zeros(0, dtype=np.bool_)
    return _finished(nothing, [], 0, base, Start(nothing.vectors, none, none))


def _begin(model: Any, tokens: Sequence[str], base: Base) -> Start:
    """Set the initial vectors of gensim's model from the base model, and lock the vectors that
    must not change.
    """
    begun = start(tokens, model.wv.vectors, base)
    model.wv.vectors[:] = begun.vectors
    if base.keep:
        # gensim multiplies every change of a vector by this factor: 0 locks the base's vectors.
        model.wv.vectors_lockf = np.where(begun.is_known, 0, 1).astype(np.float32)
    return begun


def _finished(
    own: WordSpace, losses: list[float | None], seed: int, base: Base | None, begun: Start | None
) -> Trained:
    moved = displacement(own.vectors, seed)
    n_covered = int(own.counts.sum())
    if base is None or begun is None:
        return Trained(own, losses, moved, n_covered)
    space, rows = joined(own, base.space)
    began = {
        "of_base": int(begun.is_known.sum()),
        "composed": int(begun.is_composed.sum()),
        "random": int(begun.is_random.sum()),
        "not_trained": int((rows < 0).sum()),
    }
    return Trained(
        space, losses, of_joined(np.where(begun.is_random, moved, np.nan), rows), n_covered, began
    )


def displacement(vectors: Vectors, seed: int) -> npt.NDArray[np.float64]:
    """Return how far training moved each vector: its distance from its random start, in lengths of
    that start, shape (V,).

    gensim draws the start from ``seed`` alone (KeyedVectors.resize_vectors), so this function can
    draw it again.
    """
    rng = np.random.default_rng(seed % 2**32)
    moved = np.empty(len(vectors))
    for first in range(0, len(vectors), ROWS_AT_A_TIME):
        block = vectors[first : first + ROWS_AT_A_TIME]
        start = rng.random(block.shape, dtype=np.float32)
        start *= 2.0
        start -= 1.0
        start /= vectors.shape[1]
        moved[first : first + len(block)] = np.linalg.norm(block - start, axis=1) / np.linalg.norm(
            start, axis=1
        )
    return moved


def draw_probe(
    sentences: Sequence[Sequence[str]],
    row_of: Mapping[str, int],
    counts: Counts,
    keep: Floats,
    settings: Word2VecSettings,
    size: int = PROBE,
) -> Probe:
    """Draw at most ``size`` training examples as gensim draws them: frequent words are thinned
    out, and windows have random widths.

    Args:
        sentences: sentences of the corpus, as lists of tokens.
        row_of: id of each known token.
        counts: (V,) occurrences.
        keep: (V,) the probability that an occurrence is not left out.
    """
    rng = np.random.default_rng([settings.seed, PROBE])
    inputs: list[list[int]] = []
    targets: list[int] = []
    for sentence in sentences:
        rows = np.array([row_of[token] for token in sentence if token in row_of], dtype=np.int64)
        rows = rows[rng.random(len(rows)) < keep[rows]]
        widths = rng.integers(1, settings.window + 1, size=len(rows))
        for position, width in enumerate(widths.tolist()):
            left = rows[max(0, position - width) : position]
            right = rows[position + 1 : position + 1 + width]
            context = np.concatenate([left, right]).tolist()
            for example in (
                [[word] for word in context] if settings.skip_gram else [context] * bool(context)
            ):
                inputs.append(example)
                targets.append(int(rows[position]))
    chosen = np.unique(np.linspace(0, len(targets) - 1, min(size, len(targets))).astype(np.int64))
    padded = np.full(
        (len(chosen), 1 if settings.skip_gram else 2 * settings.window), -1, dtype=np.int64
    )
    for row, number in enumerate(chosen.tolist()):
        padded[row, : len(inputs[number])] = inputs[number]
    weight = np.cumsum(counts.astype(np.float64) ** NOISE_EXPONENT)
    noise = np.searchsorted(
        weight, rng.random((len(chosen), settings.negative)) * weight[-1], side="right"
    )
    return Probe(
        padded, np.array(targets, dtype=np.int64)[chosen], np.minimum(noise, len(counts) - 1)
    )
