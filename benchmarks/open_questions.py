r"""Measurements for questions that the papers leave open: stop words of S1, MST, other association
measures, Vickrey at a low epsilon and with a public measure, and budgets that are not uniform.

    uv run python -m benchmarks.open_questions --data FOLDER --corpus FOLDER --work FOLDER
    uv run python -m benchmarks.open_questions --data FOLDER --corpus FOLDER --work FOLDER \
        --parts mst other_measures

Word vectors are trained as in the papers (gensim's defaults, unscaled), on the first words of the
corpus (JSON lines, compressed), once for each segmentation; they stay in the work folder. The
library's tokenizer, segmentations and mechanisms rewrite texts. The budget of a document is the
base epsilon times the average words of its data set; S1 and S2 divide it by the number of all words
of the text, S3 and S4 by the number of its tokens. Unknown words are replaced by random words,
punctuation is dropped. Four figures of the rewritten texts are measured: cosine similarity to their
sources (TF-IDF means of word vectors), perplexity by an n-gram model of other words of the corpus,
the accuracy of a linear classifier that learns from rewritten texts, and the share of content words
that are still in the text. The folder of data has sst2.parquet, mrpc.parquet and cola.parquet.
Noise is seeded, so the output is not private. The output is Markdown.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corpus import corpus_texts
from benchmarks.table import markdown
from lexveil.base.types import Floats, Ids, Vectors
from lexveil.core.accounting.budgets import Action, Policy
from lexveil.core.association import MEASURES, rendered
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.language_models.kneser_ney import train as train_ngrams
from lexveil.core.language_models.language_model import NgramModel
from lexveil.core.mechanisms.base_measure import BaseMeasure, base_measure
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.vickrey import Vickrey
from lexveil.core.text.collocation_index import BITS, Collocations
from lexveil.core.text.encode import Encoded, Lexicon, TokenClass, encode, tokenize
from lexveil.core.text.languages import language_of
from lexveil.core.text.normal_forms import has_letters
from lexveil.core.text.segment import segment, write_lines
from lexveil.io.execution import duckdb_session
from lexveil.lab.evaluation.classifier import Linear
from lexveil.lab.evaluation.encoder import TfidfMean

SEED = 1
DIMENSIONS = 100
MIN_COUNT = 5  # minimum count of a token with a vector; gensim's default
MIN_NGRAM = 10  # minimum count of a candidate for a collocation
MIN_PMI = 2.0  # bits; the paper's threshold
EPSILONS = (1.0, 5.0, 10.0, 25.0)
STRATEGIES = {"S1": "word", "S2": "gst-pmi_bits", "S3": "gst-pmi_bits", "S4": "mst-pmi_bits"}
PARTS = ("stopwords", "mst", "other_measures", "anomaly", "weighed", "budgets")
Row = dict[str, object]


class Corpus(NamedTuple):
    """The first words of a corpus, as numbers.

    Attributes:
        forms: (V,) normal forms by number.
        ids: (n,) the words of all sentences.
        offsets: (sentences + 1,) the first word of each sentence.
    """

    forms: list[str]
    ids: Ids
    offsets: Ids

    @classmethod
    def read(cls, texts: Iterator[str], n_words: int) -> Corpus:
        """Tokenize texts until there are ``n_words`` words."""
        number: dict[str, int] = {}
        parts: list[Ids] = []
        sizes: list[Ids] = [np.zeros(1, dtype=np.int64)]
        n = 0
        while n < n_words and (some := list(islice(texts, 2048))):
            tokens = tokenize(some)
            renumbered = [number.setdefault(form, len(number)) for form in tokens.forms]
            parts.append(np.array(renumbered, dtype=np.int64)[tokens.ids])
            sizes.append(tokens.sentence_sizes.astype(np.int64))
            n += len(parts[-1])
        return cls(list(number), np.concatenate(parts), np.cumsum(np.concatenate(sizes)))

    def counts(self) -> Ids:
        """Return (V,) counts of the words."""
        return np.bincount(self.ids, minlength=len(self.forms))


class Scored(NamedTuple):
    """N-grams with their association measures, by the name of the measure's column."""

    words: list[Ids]
    scores: dict[str, Floats]

    def best(self, column: str, n: int) -> tuple[list[Ids], Floats]:
        """Return the n n-grams with the largest scores, and their scores."""
        rows = np.sort(np.argsort(-self.scores[column], kind="stable")[:n])
        return [column_ids[rows] for column_ids in self.words], self.scores[column][rows]


def scored_ngrams(corpus: Corpus, size: int) -> Scored:
    """Score the n-grams of two or three words, without punctuation and connectors, by the library's
    own queries.
    """
    connectors = language_of("en").connectors
    counts = corpus.counts()
    is_content = np.array([has_letters(form) and form not in connectors for form in corpus.forms])
    is_content &= counts >= MIN_NGRAM
    starts = np.arange(len(corpus.ids) - size + 1)
    sentence = np.repeat(np.arange(len(corpus.offsets) - 1), np.diff(corpus.offsets))
    inside = sentence[starts] == sentence[starts + size - 1]
    key = np.zeros(len(starts), dtype=np.int64)
    for place in range(size):
        words = corpus.ids[starts + place]
        inside &= is_content[words]
        key = key << BITS | words
    keys, occurrences = np.unique(key[inside], return_counts=True)
    frequent = occurrences >= MIN_NGRAM
    keys = keys[frequent]
    occurrences = occurrences[frequent]
    columns = [keys >> BITS * (size - 1 - place) & 2**BITS - 1 for place in range(size)]
    places = ("first", "second", "third")[:size]
    table = {f"{place}_id": ids for place, ids in zip(places, columns, strict=True)}
    table |= {"count": occurrences}
    table |= {f"{place}_count": counts[ids] for place, ids in zip(places, columns, strict=True)}
    name = "bigrams" if size == 2 else "trigrams"
    values: dict[str, float | None] = {measure.threshold: None for measure in MEASURES}
    values |= {"n_tokens": len(corpus.ids), "min_count": MIN_NGRAM}
    with duckdb.connect() as con:
        con.execute("set threads = 1")
        con.register(name, pa.table(table))
        query = rendered(duckdb_session.text(f"collocations/collocation_{name}"))
        found = con.sql(query, params=values).to_arrow_table()
    return Scored(
        [found.column(f"{place}_id").to_numpy() for place in places],
        {measure.column: found.column(measure.column).to_numpy() for measure in MEASURES},
    )


class Space(NamedTuple):
    """Vectors of one segmentation of the corpus.

    Attributes:
        lexicon: vocabulary and collocations by which texts are encoded.
        vectors: (V, p), most frequent token first.
        counts: (V,) count of each token.
    """

    lexicon: Lexicon
    vectors: Vectors
    counts: Ids

    def without_marks(self) -> Ids:
        """Return the rows of tokens that contain letters; other tokens are never an output."""
        return np.flatnonzero([has_letters(token) for token in self.lexicon.tokens])


def space_of(file: Path) -> Space:
    """Read vectors of words from a Parquet file (word, vector), most frequent first, in
    lower case.
    """
    table = pq.read_table(file, columns=["word", "vector"])
    row_of: dict[str, int] = {}
    for row, word in enumerate(table.column("word").to_pylist()):
        row_of.setdefault(word.lower(), row)
    vectors = np.array(table.column("vector").to_pylist(), dtype=np.float32)[list(row_of.values())]
    return Space(Lexicon.build("word", list(row_of), None), vectors, np.ones(len(vectors), int))


class Spaces:
    """Spaces by name: word, or SEGMENTATION-MEASURE. Each space is trained once, then read from a
    folder.
    """

    def __init__(self, corpus: Corpus, work: Path) -> None:
        self.corpus = corpus
        self.work = work
        self._pairs: Scored | None = None
        self._triples: Scored | None = None
        self._made: dict[str, Space] = {}

    def tables(self, column: str) -> tuple[list[Ids], Floats, list[Ids], Floats]:
        """Return the n-grams with the largest values of a measure, as many as reach the threshold
        of PMI.
        """
        if self._pairs is None or self._triples is None:
            self._pairs = scored_ngrams(self.corpus, 2)
            self._triples = scored_ngrams(self.corpus, 3)
        n = [int((of.scores["pmi_bits"] >= MIN_PMI).sum()) for of in (self._pairs, self._triples)]
        return *self._pairs.best(column, n[0]), *self._triples.best(column, n[1])

    def collocations(self, column: str) -> Collocations:
        """Return the collocations by one measure."""
        pairs, pair_score, triples, triple_score = self.tables(column)
        forms = np.array(self.corpus.forms, dtype=object)
        words = [[forms[ids].tolist() for ids in of] for of in (pairs, triples)]
        return Collocations.build(words[0], pair_score, words[1], triple_score)

    def scores(self, column: str) -> tuple[Floats, Floats]:
        """Return (n,) scores of the pair and of the triple that start at each word of the
        corpus.
        """
        collocations = self.collocations(column)
        number = collocations.ids(self.corpus.forms)
        return collocations.scores(number[self.corpus.ids], self.corpus.offsets)

    def __getitem__(self, name: str) -> Space:
        """Return the space with a name; train the space if it is not in the folder."""
        if name not in self._made:
            segmentation, _, column = name.partition("-")
            collocations = self.collocations(column) if column else None
            tokens, vectors, counts = self._trained(name, segmentation, column)
            self._made[name] = Space(
                Lexicon.build(segmentation, tokens, collocations), vectors, counts
            )
        return self._made[name]

    def _trained(self, name: str, segmentation: str, column: str) -> tuple[list[str], Vectors, Ids]:
        vectors_file = self.work / f"{name}.npz"
        tokens_file = self.work / f"{name}.json"
        if not tokens_file.exists():
            from gensim.models import Word2Vec

            started = time.process_time()
            lengths = np.ones(len(self.corpus.ids), dtype=np.int8)
            if column:
                scores = self.scores(column)
                lengths = segment(segmentation, *scores, self.corpus.offsets)
            words = pa.array(self.corpus.forms, pa.large_string())
            lines = write_lines(words, self.corpus.ids, lengths, self.corpus.offsets)
            sentences = [line.split(" ") for line in lines.decode("utf-8").splitlines()]
            model = Word2Vec(
                sentences, vector_size=DIMENSIONS, min_count=MIN_COUNT, workers=1, seed=SEED
            )
            tokens = model.wv.index_to_key
            counts = np.array([model.wv.get_vecattr(token, "count") for token in tokens])
            np.savez(vectors_file, vectors=model.wv.vectors, counts=counts)
            tokens_file.write_text(json.dumps(tokens), encoding="utf-8")
            seconds = time.process_time() - started
            print(f"{name}: {len(tokens):,} tokens, {seconds:.0f} s", file=sys.stderr, flush=True)
        with np.load(vectors_file) as kept:
            vectors = kept["vectors"]
            counts = kept["counts"]
        return json.loads(tokens_file.read_text(encoding="utf-8")), vectors, counts


Weights = Callable[[Encoded, Space], Floats]


def even(encoded: Encoded, _: Space) -> Floats:
    """Give every token the same share."""
    return np.ones(len(encoded.rows))


def by_words(encoded: Encoded, _: Space) -> Floats:
    """Give a collocation the sum of the shares of its words."""
    return encoded.n_words.astype(np.float64)


def by_score(encoded: Encoded, space: Space) -> Floats:
    """Give a collocation the share 1 + PMI / 4 bits, which is about twice the share of a word, or
    more.
    """
    weight = np.ones(len(encoded.rows))
    collocations = space.lexicon.collocations
    assert collocations is not None
    for place in np.flatnonzero(encoded.n_words > 1).tolist():
        n = int(encoded.n_words[place])
        first = encoded.first_word[place]
        ids = collocations.ids(encoded.words[first : first + n])
        weight[place] += collocations.scores(ids, np.array([0, n]))[n - 2][0] / 4
    return weight


def token_epsilons(encoded: Encoded, strategy: str, budget: float, weight: Floats) -> Floats:
    """Return (n,) epsilons of the tokens; 0 for punctuation. The share of kept words stays
    unspent.
    """
    counted = np.where(encoded.kind == TokenClass.PUNCTUATION.value, 0.0, weight)
    if strategy in ("S1", "S2"):
        parts = np.where(counted > 0, encoded.n_words, 0).astype(np.float64)
    else:
        parts = counted
    whole = np.bincount(encoded.text_of, parts, encoded.n_texts)
    return budget * counted / np.maximum(whole, 1e-300)[encoded.text_of]


class Rewriter:
    """Rewriter of texts by one mechanism over one space."""

    def __init__(
        self, space: Space, strategy: str, mechanism: type[Madlib], **options: object
    ) -> None:
        self.space = space
        self.strategy = strategy
        self.out = space.without_marks()
        self.number = np.full(len(space.vectors), -1)
        self.number[self.out] = np.arange(len(self.out))
        self.mechanism = mechanism(space.vectors[self.out], **options)

    def epsilons(self, encoded: Encoded, base_epsilon: float, weights: Weights) -> Floats:
        """Return the epsilon of each token, from the budget of a document of these texts."""
        is_mark = encoded.kind == TokenClass.PUNCTUATION.value
        n_words = int(encoded.n_words[~is_mark].sum())
        budget = base_epsilon * n_words / encoded.n_texts
        return token_epsilons(encoded, self.strategy, budget, weights(encoded, self.space))

    def tokens(
        self,
        texts: Sequence[str],
        base_epsilon: float,
        stopwords: str = "paper",
        weights: Weights = even,
    ) -> Written:
        """Return the replacement of each token of texts."""
        rng = np.random.default_rng(SEED)
        encoded = encode(texts, self.space.lexicon)
        policy = Policy.of(self.strategy, stopwords, "drop", "sample")
        known = encoded.rows >= 0
        known[known] = self.number[encoded.rows[known]] >= 0
        action = policy.actions(encoded.kind, known)
        epsilon = self.epsilons(encoded, base_epsilon, weights)
        rows = np.full(len(action), -1, dtype=np.int64)
        sampled = action == Action.SAMPLED.value
        rows[sampled] = self.out[rng.integers(len(self.out), size=int(sampled.sum()))]
        drawn = np.flatnonzero(action == Action.PERTURBED.value)
        ids = self.number[encoded.rows[drawn]]
        noise = self.mechanism.noise(epsilon[drawn], rng)
        self.draw(Written(encoded, rows, action), drawn, ids, epsilon[drawn], noise)
        return Written(encoded, rows, action)

    def draw(self, texts: Written, drawn: Ids, ids: Ids, epsilon: Floats, noise: Floats) -> None:
        """Fill in the rows of the drawn tokens, given their places, ids, epsilons and noise."""
        texts.rows[drawn] = self.out[self.mechanism.replace(ids, epsilon, noise)]

    def written(self, texts: Written) -> list[str]:
        """Return texts of the tokens, words separated by spaces."""
        encoded, rows, action = texts
        out: list[list[str]] = [[] for _ in range(encoded.n_texts)]
        words = encoded.words
        firsts = encoded.first_word.tolist()
        sizes = encoded.n_words.tolist()
        for place, (text, row, what) in enumerate(
            zip(encoded.text_of.tolist(), rows.tolist(), action.tolist(), strict=True)
        ):
            if what == Action.DROPPED.value:
                continue
            if row < 0:
                out[text] += words[firsts[place] : firsts[place] + sizes[place]]
            else:
                out[text] += self.space.lexicon.tokens[row].split("_")
        return [" ".join(some) for some in out]

    def __call__(self, texts: Sequence[str], base_epsilon: float, **options: Any) -> list[str]:
        """Rewrite texts."""
        return self.written(self.tokens(texts, base_epsilon, **options))


class Written(NamedTuple):
    """Tokens of texts, the output row of each token (-1: unchanged), and its action."""

    encoded: Encoded
    rows: Ids
    action: npt.NDArray[np.int8]


class WeighedRewriter(Rewriter):
    """MADLIB's noise, then one of the k words nearest to the noisy vector, drawn by a public
    measure of words after the word written before. This is post-processing of the noisy vector.
    """

    def __init__(self, space: Space, measure: BaseMeasure, k: int) -> None:
        super().__init__(space, "S1", Madlib)
        self.measure = measure
        self.k = k

    def draw(self, texts: Written, drawn: Ids, ids: Ids, _: Floats, noise: Floats) -> None:
        """Fill in the output rows from the first token to the last."""
        encoded, rows, action = texts
        noisy = self.mechanism.vectors[ids] + noise
        near = self.out[self.mechanism.search.nearest_k(noisy, self.k)[0]]
        uniform = np.random.default_rng(SEED + 1).random(len(drawn))
        number = np.full(len(rows), -1)
        number[drawn] = np.arange(len(drawn))
        text = -1
        before = -1
        for place in np.flatnonzero(action != Action.DROPPED.value).tolist():
            if encoded.text_of[place] != text:
                text = encoded.text_of[place]
                before = -1
            if number[place] >= 0:
                candidates = near[number[place]]
                sums = np.cumsum(self.mass(before, candidates))
                at = np.searchsorted(sums, uniform[number[place]] * sums[-1], side="right")
                rows[place] = candidates[at]
            before = int(rows[place] if rows[place] >= 0 else encoded.rows[place])

    def mass(self, before: int, words: Ids) -> Floats:
        """Return (k,) the measure of each word after another word."""
        mass = self.measure.single[words].astype(np.float64)
        if before >= 0:
            start, end = self.measure.starts[before : before + 2]
            follows = self.measure.ids[start:end]
            at = np.minimum(np.searchsorted(follows, words), max(len(follows) - 1, 0))
            if len(follows):
                mass += np.where(follows[at] == words, self.measure.after[start:end][at], 0)
        return mass


def public_measure(spaces: Spaces) -> BaseMeasure:
    """Return the base measure of tem_context for the words of the corpus: word frequency and
    bigrams.
    """
    space = spaces["word"]
    corpus = spaces.corpus
    row = np.array([space.lexicon.rows.get(form, -1) for form in corpus.forms])[corpus.ids]
    last = np.zeros(len(row), dtype=np.bool_)
    last[corpus.offsets[1:] - 1] = True
    pair = ~last[:-1] & (row[:-1] >= 0) & (row[1:] >= 0)
    n = len(space.counts)
    keys, counts = np.unique(row[:-1][pair] * n + row[1:][pair], return_counts=True)
    bigrams = Bigrams.of(keys // n, keys % n, counts, n)
    return base_measure(space.counts, bigrams, 1.0, np.zeros(n, dtype=np.uint8))


class Texts(NamedTuple):
    """Texts of a data set, the labels of a task, and the number of training texts."""

    name: str
    texts: list[str]
    labels: list[str]
    n_train: int

    @classmethod
    def read(cls, folder: Path, name: str, n_train: int, n_test: int) -> Texts:
        """Draw random texts of the split train for training, and of the split dev for the test."""
        table = pq.read_table(folder / f"{name}.parquet", columns=["split", "text", "label"])
        split = np.array(table.column("split").to_pylist())
        order = np.random.default_rng(SEED).permutation(len(split))
        rows = [*order[split[order] == "train"][:n_train], *order[split[order] == "dev"][:n_test]]
        texts, labels = (table.column(column).to_pylist() for column in ("text", "label"))
        return cls(name, [texts[row] for row in rows], [str(labels[row]) for row in rows], n_train)


class Measures:
    """Figures of rewritten texts: similarity, perplexity, accuracy and kept words."""

    def __init__(self, sets: Sequence[Texts], words: Space, language_model: NgramModel) -> None:
        self.sets = sets
        self.language_model = language_model
        self.encoders = [
            TfidfMean.fit(words.lexicon.tokens, words.vectors, some.texts) for some in sets
        ]
        self.sources = [
            encoder.encode(some.texts) for encoder, some in zip(self.encoders, sets, strict=True)
        ]

    def of(self, rewrite: Callable[[Sequence[str]], list[str]]) -> Row:
        """Return the mean cosine and perplexity over the sets, the share of content words that are
        still present, and the accuracy on the first set, whose texts have classes.
        """
        rewritten = [rewrite(some.texts) for some in self.sets]
        cosines = [
            cosine(source, encoder.encode(texts))
            for source, encoder, texts in zip(self.sources, self.encoders, rewritten, strict=True)
        ]
        scores = [self.language_model.score(texts) for texts in rewritten]
        nats = [float(-one.log_sum.sum() / one.n_tokens.sum()) for one in scores]
        both = zip(self.sets, rewritten, strict=True)
        n_words = sum(len(text.split()) for texts in rewritten for text in texts)
        return {
            "cosine": float(np.mean(cosines)),
            "perplexity": float(np.mean(np.exp(nats))),
            "accuracy": 100 * accuracy(self.sets[0], rewritten[0]),
            "kept": 100 * float(np.mean([still_there(some.texts, texts) for some, texts in both])),
            "words": n_words / sum(len(words_of(t)) for some in self.sets for t in some.texts),
        }


def cosine(left: Vectors, right: Vectors) -> float:
    """Return the mean cosine over texts; a text without a known word counts as 0."""
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return float(np.mean(np.einsum("np,np->n", left, right) / np.maximum(lengths, 1e-12)))


def accuracy(texts: Texts, rewritten: Sequence[str]) -> float:
    """Return the accuracy of a linear classifier on the test texts, after training on rewritten
    texts.
    """
    n = texts.n_train
    guesses = Linear(SEED).fit(rewritten[:n], texts.labels[:n]).predict(rewritten[n:])
    return float(np.mean(np.array(guesses) == np.array(texts.labels[n:])))


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text.lower())


def still_there(texts: Sequence[str], rewritten: Sequence[str]) -> float:
    """Return the share of content words of texts that their rewritten texts contain, at any
    place.
    """
    function_words = language_of("en").function_words
    n = 0
    n_kept = 0
    for before, after in zip(texts, rewritten, strict=True):
        content = Counter(word for word in words_of(before) if word not in function_words)
        n += content.total()
        n_kept += (content & Counter(words_of(after))).total()
    return n_kept / max(n, 1)


COLUMNS = {
    "what": "",
    "epsilon": "ε",
    "cosine": "cosine",
    "perplexity": "perplexity",
    "accuracy": "SST-2, accuracy %",
    "kept": "content words still there, %",
    "words": "words per word",
}


class Questions:
    """The open questions; each method answers one and prints its table."""

    def __init__(
        self,
        spaces: Spaces,
        measures: Measures,
        epsilons: Sequence[float],
        sentences: int,
        other: Path | None,
    ) -> None:
        self.spaces = spaces
        self.measures = measures
        self.other = other
        self.epsilons = epsilons
        self.sentences = sentences

    def show(self, title: str, rows: Sequence[Row]) -> None:
        """Print a table."""
        print(f"\n### {title}\n\n{markdown(COLUMNS, rows)}", flush=True)

    def row(self, what: str, epsilon: float, rewriter: Rewriter, **options: Any) -> Row:
        """Measure one rewriting."""
        figures = self.measures.of(lambda texts: rewriter(texts, epsilon, **options))
        print(f"{what} {epsilon:g}: {figures}", file=sys.stderr, flush=True)
        return {"what": what, "epsilon": f"{epsilon:g}"} | figures

    def clean(self) -> None:
        """Measure the texts without rewriting."""
        self.show("Clean", [{"what": "clean"} | self.measures.of(list)])

    def stopwords(self) -> None:
        """Compare S1 with stop words kept and with stop words perturbed, and S2, S3 and S4."""
        rewriters = {
            strategy: Rewriter(self.spaces[space], strategy, Madlib)
            for strategy, space in STRATEGIES.items()
        }
        rows = [
            self.row(f"S1, stop words {policy}", epsilon, rewriters["S1"], stopwords=policy)
            for policy in ("keep", "perturb")
            for epsilon in self.epsilons
        ]
        if self.other:
            other = Rewriter(space_of(self.other), "S1", Madlib)
            rows += [
                self.row(f"S1, {self.other.stem}, perturb", epsilon, other, stopwords="perturb")
                for epsilon in self.epsilons
            ]
        rows += [
            self.row(strategy, epsilon, rewriters[strategy])
            for strategy in ("S2", "S3", "S4")
            for epsilon in self.epsilons
        ]
        self.show("Stop words of S1, MADLIB", rows)
        self.lengths()

    def lengths(self) -> None:
        """Print the lengths of vectors and the distances to the nearest word, which give an epsilon
        its meaning.
        """
        spaces = {name: self.spaces[name] for name in ("word", "gst-pmi_bits", "mst-pmi_bits")}
        if self.other:
            spaces[self.other.stem] = space_of(self.other)
        print("\n| vectors | words | dimensions | median length | median distance to the nearest |")
        print("| --- " * 5 + "|")
        for name, space in spaces.items():
            rows = space.without_marks()[:5000]
            vectors = np.ascontiguousarray(space.vectors[rows])
            nearest = Madlib(vectors).search.nearest_k(vectors.astype(np.float64), 2)[1][:, 1]
            length = np.median(np.linalg.norm(vectors, axis=1))
            print(
                f"| {name} | {len(space.vectors):,} | {vectors.shape[1]} | {length:.2f} | "
                f"{np.median(nearest):.2f} |"
            )

    def mst(self) -> None:
        """Measure how often greedy MST is below the best total, and the utility of each
        segmentation.
        """
        pair, triple = self.spaces.scores("pmi_bits")
        offsets = self.spaces.corpus.offsets
        totals = {}
        for name in ("gst", "mst", "mst_exact"):
            lengths = segment(name, pair, triple, offsets)
            bits = np.where(lengths == 2, pair, 0.0) + np.where(lengths == 3, triple, 0.0)
            totals[name] = np.add.reduceat(np.where(np.isfinite(bits), bits, 0.0), offsets[:-1])
        candidates = (pair > -np.inf).astype(int) + (triple > -np.inf)
        density = np.add.reduceat(candidates, offsets[:-1]) / np.diff(offsets)
        long = np.diff(offsets) >= 10
        dense = np.flatnonzero(long)[np.argsort(-density[long], kind="stable")[: self.sentences]]
        print(
            "\n### Greedy and best totals\n\n| sentences | n | candidates per word | MST below "
            "the best | GST below the best | PMI of MST, of the best | of GST |"
        )
        print("| --- " * 7 + "|")
        for name, some in {
            "all of ten words and more": np.flatnonzero(long),
            "densest": dense,
        }.items():
            best = totals["mst_exact"][some]
            below = {n: int((totals[n][some] < best - 1e-9).sum()) for n in ("mst", "gst")}
            share = {n: totals[n][some].sum() / best.sum() for n in ("mst", "gst")}
            print(
                f"| {name} | {len(some):,} | {density[some].mean():.2f} | {below['mst']:,} | "
                f"{below['gst']:,} | {share['mst']:.2%} | {share['gst']:.2%} |"
            )
        names = ("gst-pmi_bits", "mst-pmi_bits", "mst_exact-pmi_bits")
        self.segmentations("GST, MST and the best total, MADLIB, S3's budget", names)

    def other_measures(self) -> None:
        """Compare GST and MST by several association measures."""
        columns = [measure.column for measure in MEASURES]
        names = [f"{how}-{column}" for how in ("gst", "mst") for column in columns]
        best = {column: set(zip(*self.spaces.tables(column)[0], strict=True)) for column in columns}
        pmi = best["pmi_bits"]
        shared = {column: f"{len(pmi & some) / len(pmi):.0%}" for column, some in best.items()}
        print(f"\n{len(pmi):,} bigrams by each measure; shared with PMI: {shared}")
        self.segmentations("Association measures, MADLIB, S3's budget", names)

    def segmentations(self, title: str, names: Sequence[str]) -> None:
        """Measure texts in several segmentations."""
        rows = []
        for name in names:
            rewriter = Rewriter(self.spaces[name], "S3", Madlib)
            rows += [self.row(name, epsilon, rewriter) for epsilon in self.epsilons]
        self.show(title, rows)

    def anomaly(self) -> None:
        """Measure Vickrey in S1 at low and high epsilons, with the interpretations that could
        explain Table 6.
        """
        words = self.spaces["word"]
        readings: dict[str, Rewriter] = {
            "madlib": Rewriter(words, "S1", Madlib),
            "vickrey, t 0.75": Rewriter(words, "S1", Vickrey),
            "the same, input left out": Rewriter(words, "S1", Vickrey, exclude_input=True),
            "always the second": Rewriter(words, "S1", Vickrey, t=1.0),
            "the same, input left out, always the second": Rewriter(
                words, "S1", Vickrey, t=1.0, exclude_input=True
            ),
        }
        rows = [
            self.row(f"{what}, stop words {policy}", epsilon, rewriter, stopwords=policy)
            for what, rewriter in readings.items()
            for policy in ("keep", "perturb")
            for epsilon in (0.1, 1.0, 10.0, 25.0)
        ]
        inverted = Inverted(words, "S1", Vickrey, exclude_input=True)
        rows += [
            self.row("noise of scale ε instead of 1/ε, input excluded", epsilon, inverted)
            for epsilon in (0.1, 1.0, 10.0, 25.0)
        ]
        for share in (0.0, 0.25, 0.5, 0.75, 0.9):
            rewriter = Leaking(words, "S1", Madlib, share=share)
            rows.append(self.row(f"{share:.0%} of the words unchanged", 0.1, rewriter))
        self.show("Vickrey in S1", rows)
        self.far_out()

    def far_out(self) -> None:
        """Measure how much the nearest words to a noisy vector depend on the word under it: the
        same noise is added to the words of two random orders.
        """
        rewriter = Rewriter(self.spaces["word"], "S1", Madlib)
        rng = np.random.default_rng(SEED)
        vectors = rewriter.mechanism.vectors
        search = rewriter.mechanism.search
        n = 1000
        left, right = (rng.permutation(len(vectors))[:n] for _ in range(2))
        print(
            "\n| ε of a token | noise, in median lengths of a word | nearest word the same for two"
            " words, % | second the same, % | different words | median δ₂/δ₁ |"
        )
        print("| --- " * 6 + "|")
        for epsilon in (0.1, 1.0, 10.0, 25.0):
            noise = rewriter.mechanism.noise(np.full(n, epsilon), rng)
            near, distances = search.nearest_k(vectors[left] + noise, 2)
            other = search.nearest_k(vectors[right] + noise, 2)[0]
            same = (near == other).mean(axis=0)
            length = np.linalg.norm(noise, axis=1).mean() / np.median(
                np.linalg.norm(vectors, axis=1)
            )
            ratio = np.median(distances[:, 1] / distances[:, 0])
            print(
                f"| {epsilon:g} | {length:.1f} | {same[0]:.0%} | {same[1]:.0%} | "
                f"{len(np.unique(near)):,} of {near.size:,} | {ratio:.4f} |"
            )

    def weighed(self) -> None:
        """Compare the nearest words weighed by the public measure with MADLIB and Vickrey."""
        words = self.spaces["word"]
        measure = public_measure(self.spaces)
        rewriters: dict[str, Rewriter] = {
            "madlib": Rewriter(words, "S1", Madlib),
            "vickrey, t 0.75": Rewriter(words, "S1", Vickrey),
        }
        rewriters |= {
            f"{k} nearest, weighed": WeighedRewriter(words, measure, k) for k in (2, 5, 20)
        }
        for policy in ("perturb", "keep"):
            rows = [
                self.row(what, epsilon, rewriter, stopwords=policy)
                for what, rewriter in rewriters.items()
                for epsilon in (5.0, 10.0, 25.0, 50.0)
            ]
            self.show(f"Neighbours weighed by a public measure, S1, stop words {policy}", rows)

    def budgets(self) -> None:
        """Measure S3 with shares of the budget that are not uniform."""
        rewriter = Rewriter(self.spaces["gst-pmi_bits"], "S3", Madlib)
        shares = {"even": even, "by words": by_words, "by 1 + PMI/4": by_score}
        rows = [
            self.row(what, epsilon, rewriter, weights=weights)
            for what, weights in shares.items()
            for epsilon in self.epsilons
        ]
        self.show("Shares of a document's budget, MADLIB, S3", rows)


class Inverted(Rewriter):
    """Rewriter with a deliberate fault: noise of scale ε instead of 1/ε."""

    def epsilons(self, encoded: Encoded, base_epsilon: float, weights: Weights) -> Floats:
        """Return the reciprocal of each epsilon."""
        return 1 / np.maximum(super().epsilons(encoded, base_epsilon, weights), 1e-9)


class Leaking(Rewriter):
    """Rewriter with a deliberate fault: a share of the words stays unchanged."""

    def __init__(self, space: Space, strategy: str, mechanism: type[Madlib], share: float) -> None:
        super().__init__(space, strategy, mechanism)
        self.share = share

    def draw(self, texts: Written, drawn: Ids, ids: Ids, epsilon: Floats, noise: Floats) -> None:
        """Draw random words, except for the words that leak."""
        leaks = np.random.default_rng(SEED + 1).random(len(drawn)) < self.share
        super().draw(texts, drawn, ids, epsilon, noise)
        texts.rows[drawn[leaks]] = self.out[ids[leaks]]


def language_model(texts: Iterator[str], n_words: int) -> NgramModel:
    """Train an n-gram model on the first words of texts."""
    corpus = Corpus.read(texts, n_words)
    model = train_ngrams(corpus.ids, corpus.offsets, len(corpus.forms), 3)
    return NgramModel(model, corpus.forms)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the requested parts."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.open_questions", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--corpus", type=Path, required=True, metavar="FOLDER", help="public texts")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER", help="keeps vectors")
    parser.add_argument(
        "--other", type=Path, metavar="FILE", help="other vectors for S1 (Parquet: word, vector)"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--learn", type=int, default=2_000_000, help="words of the vectors' corpus")
    parser.add_argument("--train", type=int, default=2_000, help="texts of SST-2 to learn from")
    parser.add_argument("--test", type=int, default=872, help="texts of SST-2 to predict")
    parser.add_argument("--texts", type=int, default=300, help="texts of MRPC, and of CoLA")
    parser.add_argument(
        "--sentences",
        type=int,
        default=1_000,
        help="number of the most frequent words of the corpus",
    )
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    shards = sorted(file.name for file in options.corpus.glob("*train*.json.gz"))
    corpus = Corpus.read(corpus_texts(options.corpus, shards[0]), options.learn)
    spaces = Spaces(corpus, options.work)
    sets = [
        Texts.read(options.data, "sst2", options.train, options.test),
        Texts.read(options.data, "mrpc", options.texts, 0),
        Texts.read(options.data, "cola", options.texts, 0),
    ]
    other = language_model(corpus_texts(options.corpus, shards[-1]), options.learn)
    measures = Measures(sets, spaces["word"], other)
    questions = Questions(spaces, measures, options.epsilons, options.sentences, options.other)
    questions.clean()
    for part in options.parts:
        getattr(questions, part)()


if __name__ == "__main__":
    main()
