"""Recovery of one run of the grid: what an adversary names of its documents.

Of every data set those documents are read that similarity is measured on. Their clean texts are cut into tokens again,
so that at each position both are known, the word that stood there and the one that came out; only replaced words count.
The reader decodes the outputs: by the word, by context, and without them by the language model alone.

The shares are functions of source texts: of evaluation data, for whoever may see those. The file holds no word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil import paths
from lexveil.accounting.budgets import Action, Policy
from lexveil.artifacts.calibrations import named_in_record
from lexveil.artifacts.language_models import load_language_model
from lexveil.artifacts.model import Model
from lexveil.artifacts.model_store import OWN
from lexveil.artifacts.text_rows import FIELDS, texts_of
from lexveil.artifacts.user_lists import load_words
from lexveil.config import CLEAN, EvaluationParams, Params
from lexveil.errors import ParameterError, RequestError
from lexveil.evaluation.base import NextWord
from lexveil.evaluation.language_model import NgramModel
from lexveil.evaluation.registry import READERS
from lexveil.evaluation.text_quality import STREAM, drawn
from lexveil.levels import stage_name
from lexveil.mechanisms.noise.streams import stream
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.context import CANDIDATES, LOOKED_AT, NOT_CERTAIN, WEIGHT, ContextReader, Guesses, Tokens
from lexveil.recovery.left_to_right import LeftToRightReader, SeenTokens
from lexveil.recovery.measured import Replaced
from lexveil.recovery.public_words import NEVER, PublicWords
from lexveil.runtime.hashes import sha256
from lexveil.runtime.tables import read_table, require
from lexveil.text.encode import Encoded, encode
from lexveil.text.listed import is_listed
from lexveil.types import Flags, Floats, Ids

LOGGED = ["doc_id", "field", "position", "epsilon", "action", "word_id"]


@dataclass(frozen=True, slots=True, repr=False)
class Aligned:
    """Some texts of one data set, token by token. It holds source text.

    Attributes:
        encoded: the clean texts.
        action: (n,) names of actions.
        epsilon: (n,) what each token got.
        source, output: (n,) numbers of the vocabulary; -1 where the token was not replaced.
    """

    encoded: Encoded
    action: pa.Array
    epsilon: Floats
    source: Ids
    output: Ids

    @property
    def is_replaced(self) -> Flags:
        """(n,) whether noise was drawn for the token's word."""
        replaced: Flags = self.source >= 0
        return replaced

    def tokens(self, reader: ContextReader) -> Tokens:
        """What the reader by n-grams sees of them."""
        n = len(self.output)
        first, last = np.full(n, NOT_CERTAIN, dtype=np.int64), np.full(n, NOT_CERTAIN, dtype=np.int64)
        kept, words = self._kept()
        first[kept], last[kept] = reader.certain(words)
        return Tokens(self.encoded.text_of.astype(np.int64), self.output, self.epsilon, first, last)

    def seen(self) -> SeenTokens:
        """What the reader from left to right sees of them."""
        certain: list[str | None] = [None] * len(self.output)
        for at, word in zip(*self._kept(), strict=True):
            certain[at] = word
        return SeenTokens(self.encoded.text_of.astype(np.int64), self.output, self.epsilon, certain)

    def _kept(self) -> tuple[Ids, list[str]]:
        """Positions that were kept, and their words."""
        kept = np.flatnonzero(pc.equal(self.action, Action.KEPT.name.lower()).to_numpy(zero_copy_only=False))
        words = self.encoded.words
        return kept, [words[at] for at in self.encoded.first_word[kept].tolist()]


def align(dataset: str, clean: pa.Table, log_file: Path, model: Model, strategy: str, words: PublicWords) -> Aligned:
    """Texts and their token log, position by position.

    Args:
        clean: documents as they were given, in the order of the log.

    Raises:
        RequestError: if the log is of other texts or was made with another vocabulary.
    """
    texts = texts_of(clean)
    encoded = encode(texts.column("text").to_pylist(), model.lexicon(strategy))
    chosen = (pc.field("dataset") == dataset) & pc.field("doc_id").isin(clean.column("doc_id").combine_chunks())
    log = pq.read_table(log_file, columns=LOGGED, filters=chosen)
    position = np.arange(len(encoded.rows)) - encoded.offsets()[encoded.text_of]
    same = len(log) == len(position) and np.array_equal(log.column("position").to_numpy(), position)
    for name in ("doc_id", "field"):
        same = same and log.column(name).equals(texts.column(name).take(pa.array(encoded.text_of)))
    if not same:
        raise RequestError(
            f"{log_file}: the tokens of data set {dataset} are not those of its clean texts; `lexveil run` makes anew "
            "what is out of date"
        )
    action = log.column("action").combine_chunks().cast(pa.string())
    replaced = pc.equal(action, Action.PERTURBED.name.lower()).to_numpy(zero_copy_only=False)
    number = words.prepared.vocabulary.number
    source, output = (np.full(len(position), -1, dtype=np.int64) for _ in range(2))
    source[replaced] = number[encoded.rows[replaced]]
    output[replaced] = number[pc.fill_null(log.column("word_id"), -1).to_numpy()[replaced]]
    return Aligned(encoded, action, log.column("epsilon").to_numpy(), source, output)


def listed_words(named: str | None, tokens: list[str]) -> Flags | None:
    """Whether each token is a word of the user's list FILE@HASH, or a collocation with one; None without a list.

    Raises:
        ParameterError: if the file is not there, has another content, is no text in UTF-8, or holds no word.
    """
    if named is None:
        return None
    words = load_words(named, "params.yaml: evaluation.sensitive")
    return np.fromiter((is_listed(token, words) for token in tokens), dtype=np.bool_, count=len(tokens))


def datasets(
    clean: pa.Table, log_file: Path, model: Model, strategy: str, words: PublicWords
) -> Iterator[tuple[str, Aligned]]:
    """The texts of every data set that are measured, by its name."""
    params = model.params
    for dataset in sorted(clean.column("dataset").unique().to_pylist()):
        own = clean.filter(pc.equal(clean.column("dataset"), dataset))
        n_texts = 1 + own.column("text_b").is_valid().to_numpy().astype(np.int64)
        # The same generator as where texts are compared, so that they are the same documents.
        rows = drawn(n_texts.tolist(), params.evaluation.max_texts, stream(params.seed, STREAM, dataset, "texts"))
        yield dataset, align(dataset, own.take(pa.array(rows)), log_file, model, strategy, words)


def measure_recovery(mechanism: str, strategy: str, epsilon: float, params: Params) -> dict[str, Any]:
    """The shares of one run, by data set and band.

    Raises:
        MissingArtifact: if the run, the clean baseline or the language model was not made.
        ParameterError: if the list of sensitive words cannot be read.
        RequestError: if the run and the clean baseline are not of the same texts, or the model of the reader by
            context cannot be read.
    """
    made_by = stage_name("privatize", mechanism, strategy, epsilon)
    log_file = require(paths.private(mechanism, strategy, epsilon) / "tokens.parquet", made_by)
    clean_file = paths.private(*CLEAN) / "documents.parquet"
    clean = read_table(clean_file, "baseline", ["dataset", "doc_id", *FIELDS])
    chosen, model = params.policy, Model.load(Path(), OWN)
    policy = Policy.of(strategy, chosen.stopwords, chosen.punctuation, chosen.oov)
    words = PublicWords.of(model, mechanism, strategy, policy)
    space = model.embedding(strategy)
    tokens = [space.tokens[row] for row in words.prepared.vocabulary.rows.tolist()]
    sensitive = params.evaluation.sensitive
    listed = listed_words(sensitive, tokens)
    aligned = dict(datasets(clean, log_file, model, strategy, words))
    language_model = load_reader(params.evaluation, tokens)
    left_out = None
    try:
        replaced = decode(aligned, words, tokens, language_model)
    except ParameterError as error:  # of the mechanism, that nobody can decode so far: what is unchanged is known
        left_out = str(error)
        replaced = {
            name: Replaced(one.source[one.is_replaced], one.output[one.is_replaced], None)
            for name, one in aligned.items()
        }
    shares = {name: one.shares(words.bands, listed) for name, one in replaced.items()}
    return {
        **named_in_record(mechanism, strategy, epsilon),
        "language_model": None if language_model is None else language_model.name,
        "weight": None if language_model is None else WEIGHT,
        "candidates": LOOKED_AT if params.evaluation.reader in READERS else CANDIDATES,
        "left_out": left_out,
        "sensitive_sha256": None if sensitive is None else sha256(Path(sensitive.rpartition("@")[0])),
        "all": Replaced.joined(list(replaced.values())).shares(words.bands, listed),
        "datasets": shares,
    }


def load_reader(settings: EvaluationParams, tokens: Sequence[str]) -> NgramModel | NextWord | None:
    """The language model of the reader by context; None without one.

    Args:
        tokens: the vocabulary.
    """
    if settings.reader in READERS:
        return READERS[settings.reader].maker(settings)([token.replace("_", " ") for token in tokens])
    return load_language_model() if settings.language_model == NgramModel.name else None


def decode(
    aligned: dict[str, Aligned], words: PublicWords, tokens: list[str], language_model: NgramModel | NextWord | None
) -> dict[str, Replaced]:
    """What the reader guesses, by data set; by the word alone without a language model."""
    spent = np.concatenate([np.empty(0), *(one.epsilon[one.is_replaced] for one in aligned.values())])
    if not len(spent):
        none = np.empty(0, dtype=np.int64)
        return dict.fromkeys(aligned, Replaced(none, none, none))
    adversary = words.adversary((float(spent.min()), float(spent.max())))
    guess = by_context(adversary, np.maximum(words.prior, NEVER), tokens, language_model)
    replaced = {}
    for name, one in aligned.items():
        at = one.is_replaced
        source, output = one.source[at], one.output[at]
        if guess is not None:
            replaced[name] = Replaced.of(source, output, guess(one))
        else:
            replaced[name] = Replaced(source, output, adversary.guess(output, one.epsilon[at]))
    return replaced


def by_context(
    adversary: Adversary, prior: Floats, tokens: Sequence[str], language_model: NgramModel | NextWord | None
) -> Callable[[Aligned], Guesses] | None:
    """The reader by context; None without a language model."""
    if language_model is None:
        return None
    pieces = [token.split("_") for token in tokens]
    if isinstance(language_model, NgramModel):
        ngrams = ContextReader(adversary, prior, language_model, pieces)
        return lambda texts: ngrams.guess(texts.tokens(ngrams))
    reader = LeftToRightReader(adversary, prior, language_model, [" ".join(words) for words in pieces])
    return lambda texts: reader.guess(texts.seen())
