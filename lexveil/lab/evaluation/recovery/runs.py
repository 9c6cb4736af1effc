"""Measured recovery of one run of the experiment grid: the share of replaced words in its documents
that an adversary recovers.

The documents are those on which similarity is measured. Their clean texts are cut into tokens
again, so that at each position both the source word and the output word are known; only replaced
words count. Three adversaries guess: one decodes each output by its word alone, one by its context,
and one sees no outputs and uses the language model alone.

The shares are functions of source texts, which are evaluation data; they are for people who may see
these texts. The file holds no word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.levels import NoiseSetting, stage_name
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.tables import read_table, require
from lexveil.base.types import Flags, Ids, ModelRows, WordNumbers
from lexveil.core.accounting.budgets import Action, Policy
from lexveil.core.language_models.language_model import NgramModel
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.variants import base_of
from lexveil.core.text.encode import encode
from lexveil.core.text.normal_forms import is_listed
from lexveil.core.text.piece_models import PieceModel
from lexveil.io.artifacts.language_models import load_language_model
from lexveil.io.artifacts.levels import named_in_record
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.text_rows import FIELDS, texts_of
from lexveil.io.artifacts.user_lists import load_words
from lexveil.io.config import CLEAN, Params
from lexveil.lab.evaluation.metrics.base import STREAM, drawn
from lexveil.lab.evaluation.recovery.measured import GUESSES, Replaced
from lexveil.lab.evaluation.registry import READER_MODELS
from lexveil.lab.evaluation.scores import DECIMALS
from lexveil.readers.adversary import Adversary
from lexveil.readers.beams import contextual_adversary
from lexveil.readers.context import CANDIDATES, WEIGHT
from lexveil.readers.counted_words import NEVER
from lexveil.readers.linkage import SIZES, DisclosedTexts, LinkageReaders, naive_similarities
from lexveil.readers.public_words import PublicWords
from lexveil.readers.seen_tokens import SeenTokens, written_before

LOGGED = ["doc_id", "field", "position", "epsilon", "action", "word_id"]


@dataclass(frozen=True, slots=True, repr=False)
class Aligned:
    """Source and rewritten texts of one data set, aligned token by token. They contain source text.

    Attributes:
        tokens: the texts as an adversary sees them.
        source: (n,) id of the source word of each token; -1 at a token that was not replaced.
        doc_ids: ids of the documents.
    """

    tokens: SeenTokens
    source: WordNumbers
    doc_ids: pa.Array

    def replaced(self, guesses: Callable[[SeenTokens, Flags], dict[str, Ids | None]]) -> Replaced:
        """Collect the replaced words with the guesses of adversaries. ``guesses`` is called with
        the tokens, and with flags (n,) of whether each token was replaced.
        """
        is_replaced = self.source >= 0
        answers = {"unchanged": self.tokens.outputs[is_replaced], **dict.fromkeys(GUESSES)}
        return Replaced(self.source[is_replaced], answers | guesses(self.tokens, is_replaced))


def align(
    dataset: str, clean: pa.Table, log_file: Path, model: Model, strategy: str, words: PublicWords
) -> Aligned:
    """Align clean texts with the token log of their rewriting, position by position.

    Args:
        clean: clean documents, in the order of the log.

    Raises:
        RequestError: if the log belongs to other texts or was made with another vocabulary.
    """
    texts = texts_of(clean)
    encoded = encode(texts.column("text").to_pylist(), model.lexicon(strategy))
    chosen = (pc.field("dataset") == dataset) & pc.field("doc_id").isin(
        clean.column("doc_id").combine_chunks()
    )
    log = pq.read_table(log_file, columns=LOGGED, filters=chosen)
    position = np.arange(len(encoded.rows)) - encoded.offsets()[encoded.text_of]
    same = len(log) == len(position) and np.array_equal(log.column("position").to_numpy(), position)
    for name in ("doc_id", "field"):
        same = same and log.column(name).equals(texts.column(name).take(pa.array(encoded.text_of)))
    if not same:
        raise RequestError(
            f"{log_file}: the tokens of data set {dataset} differ from the tokens of its clean "
            "texts; `lexveil run` renews what is out of date"
        )
    action = log.column("action").combine_chunks().cast(pa.string())
    replaced, kept = (
        pc.equal(action, name.name.lower()).to_numpy(zero_copy_only=False)
        for name in (Action.PERTURBED, Action.KEPT)
    )
    number = words.prepared.vocabulary.number
    source, output = (WordNumbers(np.full(len(position), -1, dtype=np.int64)) for _ in range(2))
    source[replaced] = number[encoded.rows[replaced]]
    output[replaced] = number[pc.fill_null(log.column("word_id"), -1).to_numpy()[replaced]]
    first_words = zip(encoded.first_word.tolist(), kept.tolist(), strict=True)
    certain = [encoded.words[word] if is_kept else None for word, is_kept in first_words]
    text_of = encoded.text_of.astype(np.int64)
    word_ids = pc.fill_null(log.column("word_id"), -1).to_numpy()
    written = ModelRows(np.where(kept, encoded.rows, word_ids))
    is_dropped = pc.equal(action, Action.DROPPED.name.lower()).to_numpy(zero_copy_only=False)
    before = written_before(text_of, written, is_dropped)
    epsilon = log.column("epsilon").to_numpy()
    return Aligned(
        tokens=SeenTokens(text_of, output, epsilon, certain, before, source, written),
        source=source,
        doc_ids=clean.column("doc_id").combine_chunks(),
    )


def listed_words(file: str | None, tokens: list[str]) -> Flags | None:
    """Return flags of whether each token is a word of the user's list FILE@HASH, or a collocation
    with such a word. Return None without a list.

    Raises:
        ParameterError: if the file is missing, has another hash, is not text in UTF-8, or holds no
            word.
    """
    if file is None:
        return None
    words = load_words(file, "params.yaml: evaluation.sensitive")
    return np.fromiter(
        (is_listed(token, words) for token in tokens), dtype=np.bool_, count=len(tokens)
    )


def datasets(
    clean: pa.Table, log_file: Path, model: Model, strategy: str, words: PublicWords
) -> Iterator[tuple[str, Aligned]]:
    """Yield name and aligned texts of every data set."""
    params = model.params
    for dataset in sorted(clean.column("dataset").unique().to_pylist()):
        own = clean.filter(pc.equal(clean.column("dataset"), dataset))
        n_texts = 1 + own.column("text_b").is_valid().to_numpy().astype(np.int64)
        # The random stream of the similarity metric draws the same documents.
        rows = drawn(
            n_texts.tolist(),
            params.evaluation.max_texts,
            stream(params.seed, STREAM, dataset, "texts"),
        )
        yield dataset, align(dataset, own.take(pa.array(rows)), log_file, model, strategy, words)


def measure_recovery(
    mechanism: str, strategy: str, noise: NoiseSetting, params: Params
) -> dict[str, Any]:
    """Measure the share of replaced words and source texts that adversaries recover from one run of
    the grid, by data set and frequency band.

    Raises:
        MissingArtifactError: if the run, the clean baseline or the language model does not exist
            yet.
        ParameterError: if the list of sensitive words cannot be read.
        RequestError: if the run and the clean baseline have different texts, or the model of the
            contextual adversary cannot be read.
    """
    made_by = stage_name("privatize", mechanism, strategy, noise)
    log_file = require(paths.private(mechanism, strategy, noise) / "tokens.parquet", made_by)
    clean_file = paths.private(*CLEAN) / "documents.parquet"
    clean = read_table(clean_file, "baseline", ["dataset", "doc_id", *FIELDS])
    chosen = params.policy
    model = Model.load(Path(), OWN).of_variant(mechanism)
    policy = Policy.of(strategy, chosen.stopwords, chosen.punctuation, chosen.oov)
    words = PublicWords.of(model, base_of(mechanism), strategy, policy)
    space = model.embedding(strategy)
    tokens = [space.tokens[row] for row in words.prepared.vocabulary.rows.tolist()]
    sensitive = params.evaluation.sensitive
    listed = listed_words(sensitive, tokens)
    aligned = dict(datasets(clean, log_file, model, strategy, words))
    is_trained = params.evaluation.language_model == NgramModel.name
    language_model = load_language_model() if is_trained else None
    reader = params.evaluation.reader
    neural = READER_MODELS[reader].make() if language_model and reader in READER_MODELS else None
    without = (
        None
        if neural or reader not in READER_MODELS
        else f"by {reader}, because the corpus has no n-grams"
    )
    unigram = unigram_adversary(aligned, words)
    replaced = decode(aligned, words, tokens, unigram, language_model, neural)
    private = read_table(
        paths.private(mechanism, strategy, noise) / "documents.parquet",
        made_by,
        ["dataset", "doc_id", *FIELDS],
    )
    return {
        **named_in_record(mechanism, strategy, noise),
        "language_model": None if language_model is None else language_model.name,
        "reader": None if neural is None else neural.name,
        "weight": None if language_model is None else WEIGHT,
        "candidates": CANDIDATES,
        "left_out": without,
        "sensitive_sha256": None
        if sensitive is None
        else sha256(Path(sensitive.rpartition("@")[0])),
        "all": Replaced.joined(list(replaced.values())).shares(words.bands, listed),
        "datasets": {name: part.shares(words.bands, listed) for name, part in replaced.items()},
        "linkage": {
            name: {} if unigram is None else measure_linkage(texts, pool, unigram)
            for name, texts, pool in pools(aligned, clean, private, model, strategy, words, policy)
        },
    }


def unigram_adversary(aligned: dict[str, Aligned], words: PublicWords) -> Adversary | None:
    """Build the adversary that guesses each word from its own replacement, for the budgets of some
    texts; return None if no token was perturbed.
    """
    spent = np.concatenate(
        [np.empty(0), *(texts.tokens.epsilon[texts.source >= 0] for texts in aligned.values())]
    )
    return words.adversary((float(spent.min()), float(spent.max()))) if len(spent) else None


@dataclass(frozen=True, slots=True, repr=False)
class LinkagePool:
    """Candidate source texts for some rewritten texts. They contain source text.

    Attributes:
        candidates: P texts of a data set, among them the measured texts.
        disclosed: structure of each candidate that an output discloses.
        outputs: the m rewritten texts.
        sources: (m,) position of each output's source among the candidates.
    """

    candidates: Sequence[str]
    disclosed: DisclosedTexts
    outputs: Sequence[str]
    sources: Ids


def pools(
    aligned: dict[str, Aligned],
    clean: pa.Table,
    private: pa.Table,
    model: Model,
    strategy: str,
    words: PublicWords,
    policy: Policy,
) -> Iterator[tuple[str, Aligned, LinkagePool]]:
    """Yield the candidate source texts of every data set: its texts, up to the largest number of
    candidates.
    """
    for dataset, texts in aligned.items():
        own = texts_of(clean.filter(pc.equal(clean.column("dataset"), dataset)))
        rewritten = texts_of(private.filter(pc.equal(private.column("dataset"), dataset)))
        is_measured = pc.is_in(own.column("doc_id"), texts.doc_ids).to_numpy(zero_copy_only=False)
        measured = np.flatnonzero(is_measured)
        others = np.flatnonzero(~is_measured)[: max(SIZES[-1] - len(measured), 0)]
        chosen = np.sort(np.concatenate([measured, others]))
        candidates = own.column("text").take(pa.array(chosen)).to_pylist()
        number = words.prepared.vocabulary.number
        yield (
            dataset,
            texts,
            LinkagePool(
                candidates=candidates,
                disclosed=DisclosedTexts.cut(candidates, model.lexicon(strategy), number, policy),
                outputs=rewritten.column("text").take(pa.array(measured)).to_pylist(),
                sources=np.searchsorted(chosen, measured),
            ),
        )


def measure_linkage(
    texts: Aligned, pool: LinkagePool, adversary: Adversary
) -> dict[str, dict[str, float]]:
    """Return the share of rewritten texts whose source an adversary finds among the candidates, by
    the number of candidates and the adversary.
    """
    is_replaced = texts.source >= 0
    before = texts.tokens.before
    if before is None:
        before = ModelRows(np.full(len(texts.source), -1))
    readers = LinkageReaders(
        candidates=pool.disclosed,
        sources=pool.sources,
        outputs=WordNumbers(texts.tokens.outputs[is_replaced]),
        epsilon=texts.tokens.epsilon[is_replaced],
        before=ModelRows(before[is_replaced]),
        similarities=naive_similarities(pool.outputs, pool.candidates),
        adversary=adversary,
    )
    n_candidates = len(pool.candidates)
    sizes = [size for size in SIZES if size < n_candidates] + [n_candidates]
    return {
        str(size): {name: round(share, DECIMALS) for name, share in readers.shares(size).items()}
        for size in sizes
        if size <= SIZES[-1]
    }


def decode(
    aligned: dict[str, Aligned],
    words: PublicWords,
    tokens: list[str],
    unigram: Adversary | None,
    language_model: NgramModel | None,
    neural: PieceModel | None = None,
) -> dict[str, Replaced]:
    """Run the adversaries and return their guesses of the replaced words by data set. Without a
    language model, only the adversary who guesses each word from its own replacement is run.
    """
    if unigram is None:
        none = np.empty(0, dtype=np.int64)
        return {
            name: texts.replaced(lambda *_: {"by_word": none}) for name, texts in aligned.items()
        }
    prior = np.maximum(words.prior, NEVER)
    pieces = [token.split("_") for token in tokens]
    contextual = (
        contextual_adversary(unigram, prior, language_model, pieces, neural)
        if language_model
        else None
    )

    def guesses(seen: SeenTokens, is_replaced: Flags) -> dict[str, Ids | None]:
        if contextual is None:
            before = None if seen.before is None else seen.before[is_replaced]
            return {
                "by_word": unigram.guess(
                    seen.outputs[is_replaced], seen.epsilon[is_replaced], before
                )
            }
        return asdict(contextual.guess(seen))

    return {name: texts.replaced(guesses) for name, texts in aligned.items()}
