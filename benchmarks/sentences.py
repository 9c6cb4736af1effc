r"""Measure what sentences of a public bank keep of texts and what they tell, in comparison with
words.

    uv run python -m benchmarks.sentences --data FOLDER --open FILE.json.gz FILE.json.gz \
        --learn FILE.json.gz --work FOLDER --json rows.json
    uv run python -m benchmarks.sentences --packaged --data FOLDER --learn FILE.json.gz \
        --work FOLDER --json rows.json
    uv run python -m benchmarks.sentences --figures --json rows.json  # lexveil/models/written/
    OPENBLAS_NUM_THREADS=1 uv run python -m benchmarks.sentences --speed 100000 1000000

The bank has 100,000 sentences, half of reviews (films and places, `imdb.parquet`, `yelp.parquet`)
and half of the open texts (JSON lines, compressed); that for the films' reviews has none of them.
Texts of five data sets, and the reviews of medicines that are the default
documents of a project, are cut to 40 words and rewritten: words by `tem` and `tem_context` at
levels of protection, and sentences with the text and with the sentence as unit, at several epsilon,
numbers of sentences and weights of a purpose; where the task is another than sentiment also with a
scale that is trained for it, from texts of the data set that are not measured. A linear classifier
learns from rewritten texts and predicts held-out ones: what is utility where the texts are for
that, or an attack where it is who wrote them. Three readers look for the source of each output
among texts of the data set (lexveil/readers/linkage.py); a fourth names words of the source, with
other texts of the data set as candidates and by the exact channel. An n-gram model of `--learn`
(texts that the bank has no sentence of) says how likely the outputs are as English, in nats a word.
Noise is seeded: this protects nothing. Markdown; what the file of rows has is not measured again.
`--figures` writes what these rows say of linkage with the packaged bank to its folder, from which
records say it. `--speed` draws from banks of random vectors of these sizes, and says how much of
the time the product of queries and bank takes by itself.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from benchmarks.linkage import linkage
from benchmarks.problems import PROBLEMS, Problem, Sizes
from benchmarks.protection import Measuring, learnt, nats_a_word
from benchmarks.table import markdown
from lexveil.base.runtime.tables import write_json
from lexveil.base.types import Ids, Vectors
from lexveil.core.embeddings.sentences import UNIT
from lexveil.core.language_models.language_model import NgramModel
from lexveil.core.mechanisms.sentence_draws import PRODUCT, QUERIES, SentenceDraws
from lexveil.core.protection import LevelName
from lexveil.core.text.encode import encode
from lexveil.core.text.languages import language_of
from lexveil.io.artifacts.default_bank import (
    WRITTEN,
    WRITTEN_LINKAGE,
    WrittenLinkage,
    bank_of,
    read_written_card,
)
from lexveil.io.artifacts.levels import level_of, measured_levels
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import (
    open_bank,
    vectors_sha256,
)
from lexveil.lab.data.default import DRUG_REVIEWS, has_drug_reviews, write_default_documents
from lexveil.lab.data.sentence_banks import BankOptions, build
from lexveil.lab.modelling.scales import build as build_scale
from lexveil.readers.linkage import first_chance, like_length, naive_similarities, words_of
from lexveil.readers.sentences import Channel, named_words, posterior
from lexveil.readers.shares import Share
from lexveil.release.engine.batch import Batch, Rewritten
from lexveil.release.engine.sentences import SentenceEngine, cut
from lexveil.release.settings import NOTHING_KEPT, Sentences, Settings, document_budget

SEED = 1
SIZES = Sizes(train=1_200, test=800, words=40, read=0)
SIZE = 100_000  # number of sentences of a bank
DIMENSIONS = 129  # dimensions of the vectors of `en` with a purpose
EPSILONS = (10.0, 20.0)
REPEATS = 3  # number of repetitions; the fastest counts
CANDIDATES = (400, 1_000)
OUTPUTS = 200  # number of outputs whose sources are searched
PRIOR = 2_000  # number of other texts that the adversary considers when it names words
FILMS = "imdb.parquet"
PLACES = "yelp.parquet"
LEARNT_WORDS = 4_000_000  # words that the n-gram model is trained on
DRUGS = Problem("Drug reviews", DRUG_REVIEWS, {"utility": "label", "attack": "attribute"})
READERS = ("structure", "naive", "likelihood")
# data sets with a task that is not sentiment, and the column of the task
TASK = {"IMDb": "another task", "Tweets": "utility"}
ALL = Sizes(train=10**6, test=10**6, words=40, read=0)
COLUMNS = {
    "problem": "texts",
    "name": "rewriting",
    "utility": "utility",
    "another task": "another task",
    "attack": "attack",
    "nats": "nats a word",
    "in_output": "content words in the output",
    "named": "named (without output)",
    "structure": "structure",
    "naive": "naive",
    "likelihood": "likelihood (95 %)",
    "rate": "sentences per CPU second",
}
SPEEDS = {
    "sentences": "sentences in the bank",
    "epsilon": "ε",
    "rate": "drawn per CPU second",
    "share": "share of the product",
    "memory": "peak MB",
}
Row = dict[str, Any]


class Rewriting(NamedTuple):
    """One way to rewrite texts.

    Attributes:
        strategy: S5 writes sentences; other strategies replace words.
        level: level of protection, for words.
        unit, per_text, epsilon, weight: settings for sentences.
        task_weight: weight of a purpose that was trained for the task of the data set.
    """

    mechanism: str = "tem"
    strategy: str = "S5"
    level: LevelName | None = None
    unit: Literal["text", "sentence"] = "text"
    per_text: int | None = 4
    epsilon: float = 0.0
    weight: float = 0.0
    task_weight: float = 0.0

    def __str__(self) -> str:
        if self == CLEAN:
            return "clean"
        if self.strategy != "S5":
            return f"`{self.mechanism}` {self.strategy} {self.level}"
        what = f"{self.per_text} of the text" if self.per_text else "each sentence"
        weight = f", w = {self.weight:g}" if self.weight else ""
        task = f", task {self.task_weight:g}" if self.task_weight else ""
        return f"S5, {what}{weight}{task}, ε = {self.epsilon:g}"


CLEAN = Rewriting("clean", "")
ROWS = (
    CLEAN,
    Rewriting("tem", "S1", "balanced"),
    Rewriting("tem_context", "S1", "balanced"),
    Rewriting("tem", "S3", "balanced"),
    Rewriting("tem", "S3", "strong"),
    Rewriting(per_text=2, epsilon=10, weight=1.5),
    Rewriting(per_text=4, epsilon=5, weight=3),
    Rewriting(per_text=4, epsilon=10, weight=3),
    Rewriting(per_text=8, epsilon=2.5, weight=3),
    Rewriting(per_text=8, epsilon=5, weight=3),
    Rewriting(per_text=8, epsilon=2.5, task_weight=3),
    Rewriting(per_text=8, epsilon=5, task_weight=3),
    Rewriting(per_text=8, epsilon=5, weight=3, task_weight=3),
    Rewriting(unit="sentence", per_text=None, epsilon=10, weight=3),
    Rewriting(unit="sentence", per_text=None, epsilon=20, weight=3),
)
OF_PACKAGED = (
    CLEAN,
    Rewriting(per_text=4, epsilon=5),
    Rewriting(per_text=4, epsilon=5, weight=3),
    Rewriting(per_text=8, epsilon=5, weight=3),
)


@dataclass(frozen=True, eq=False)
class Rewriter:
    """Rewrites the texts of a data set, and measures the utility and the adversaries of its
    outputs.
    """

    problem: Problem
    bank: Path
    language_model: NgramModel
    scale: Path | None = None

    @cache  # noqa: B019
    def words(self, mechanism: str, strategy: str) -> Measuring:
        """Return the measuring model that replaces words."""
        return Measuring(Model.load(name="en"), mechanism, strategy)

    @cache  # noqa: B019
    def sentences(self, rewriting: Rewriting) -> SentenceEngine:
        """Return the engine that writes sentences."""
        purposes = {"sentiment": rewriting.weight, str(self.scale): rewriting.task_weight}
        chosen = [f"+{name}={weight:g}" for name, weight in purposes.items() if weight]
        unit = Sentences(str(self.bank), rewriting.unit, rewriting.per_text)
        settings = Settings(
            mechanism="tem",
            strategy="S5",
            spending=unit.spending(rewriting.epsilon),
            seed=SEED,
            policy=NOTHING_KEPT,
            keep_layout=False,
            sentences=unit,
        )
        return SentenceEngine(settings, Model.load(name="en" + "".join(chosen)))

    def rewritten(self, rewriting: Rewriting, texts: Sequence[str]) -> Rewritten:
        """Rewrite texts as sentences, and return them."""
        engine = self.sentences(rewriting)
        batch = Batch([[text] for text in texts], [(str(n),) for n in range(len(texts))])
        return engine.worker().draw(batch, document_budget(engine.settings, engine.model))

    def row(self, rewriting: Rewriting) -> Row:
        """Return the figures of one rewriting of all texts."""
        texts = [*self.problem.texts]
        problem = self.problem
        started = time.process_time()
        row: Row = {}
        if rewriting == CLEAN:
            outputs = texts
        elif rewriting.strategy != "S5":
            measuring = self.words(rewriting.mechanism, rewriting.strategy)
            figures = level_of(_levels(), *rewriting[:3])  # type: ignore[arg-type]
            assert figures is not None
            outputs = [*measuring.rewritten(texts, figures.epsilon).texts]
            row |= {"named": f"{figures.content:.2f}"}
            pool = pool_of(problem)
            for found in linkage(measuring, pool, figures.epsilon, OUTPUTS, CANDIDATES):
                row |= {"by_size": {**row.get("by_size", {}), str(found["candidates"]): found}}
        else:
            self.sentences(rewriting)
            started = time.process_time()
            done = self.rewritten(rewriting, texts)
            row |= {"rate": round(len(done.rows) / (time.process_time() - started))}
            outputs = [*done.texts]
            row |= self.told(rewriting)
        row |= {"predicted": problem.predicted(outputs)}
        row |= {"nats": round(nats_a_word(self.language_model, outputs), 2)}
        if rewriting != CLEAN:
            row |= {"in_output": share_in(texts, outputs)}
        return row

    def told(self, rewriting: Rewriting) -> Row:
        """Return the linkage of outputs of a pool, and the share of words that an adversary names
        of their sources.
        """
        engine = self.sentences(rewriting)
        pool = pool_of(self.problem)
        sources = pool[:OUTPUTS]
        done = self.rewritten(rewriting, sources)
        naive = naive_similarities([*done.texts], pool)
        channel = self._channel(engine, pool, done.rows)
        starts = done.encoded.offsets().tolist()
        lengths = np.array([len(text.split()) for text in pool])
        by_size = {}
        for size in CANDIDATES:
            structure = np.zeros(len(sources))
            likelihood = np.zeros(len(sources))
            by_words = np.zeros((len(naive), len(sources)))
            for n in range(len(sources)):
                among = like_length(lengths, n, size)
                place = int(np.searchsorted(among, n))
                scores = channel.scores(done.rows[starts[n] : starts[n + 1]])
                structure[n] = first_chance(np.isfinite(scores[among]) * 1.0, place)
                likelihood[n] = first_chance(scores[among], place)
                for number, way in enumerate(naive):
                    by_words[number, n] = first_chance(way.of(n)[among], place)
            by_size[str(size)] = {
                "structure": float(structure.mean()),
                "naive": float(by_words.mean(axis=1).max()),
                "likelihood": float(likelihood.mean()),
            }
        others = prior_of(self.problem)
        if rewriting.per_text is None:
            return {"by_size": by_size}
        known = self._channel(engine, others, done.rows)
        of_others = [content_words(text) for text in others]
        even = np.full(len(others), 1 / len(others))
        shares: dict[str, list[float]] = {"named": [], "blind": []}
        for n, source in enumerate(sources):
            words = content_words(source)
            if not words:
                continue
            rows = done.rows[starts[n] : starts[n + 1]]
            own = content_words(done.texts[n])
            belief = posterior(known.scores(rows))
            for name, chances, seen in (("named", belief, own), ("blind", even, frozenset())):
                guess = named_words(chances, of_others, len(words), seen)
                shares[name].append(len(guess & words) / len(words))
        named, blind = (float(np.mean(each)) for each in shares.values())
        return {"by_size": by_size, "named": f"{named:.3f} ({blind:.3f})"}

    def _channel(self, engine: SentenceEngine, texts: Sequence[str], rows: Ids) -> Candidates:
        per_text = engine.wanted.per_text
        source = encode(texts, engine.lexicon)
        units, text_of, _ = cut(source, per_text)
        mechanism = engine.worker().sentences.mechanism  # type: ignore[attr-defined]
        epsilon = float(engine.settings.base_epsilon or 0)
        channel = Channel.of(mechanism, engine.bank.space.embed(units), rows, epsilon)
        of_text = np.arange(len(texts)) if per_text else text_of
        return Candidates(channel, of_text, len(texts), is_text=per_text is not None)


@dataclass(frozen=True)
class Candidates:
    """Texts that may be the source of an output, and the channel from their units."""

    channel: Channel
    text_of: Ids
    n_texts: int
    is_text: bool

    def scores(self, output: Ids) -> Any:
        """Return (n_texts,) Σ ln Pr of an output; -inf for texts with another number of
        sentences.
        """
        if self.is_text:
            return self.channel.log_likelihood(output)
        counts = np.bincount(self.text_of, minlength=self.n_texts)
        starts = np.concatenate([[0], np.cumsum(counts)])
        scores = np.full(self.n_texts, -np.inf)
        places = np.array([self.channel.place[row] for row in output.tolist()], dtype=np.int64)
        for text in np.flatnonzero(counts == len(output)).tolist():
            units = np.arange(starts[text], starts[text + 1])
            scores[text] = self.channel.log_p[units, places].sum()
        return scores


@cache
def _levels() -> Any:
    digest = Model.load(name="en").sha256
    assert digest is not None
    return measured_levels(digest)


def pool_of(problem: Problem) -> list[str]:
    """Return distinct texts among which sources are searched, in random order."""
    distinct = [*dict.fromkeys(problem.texts)]
    order = np.random.default_rng(SEED).permutation(len(distinct))[: CANDIDATES[-1]]
    return [distinct[number] for number in order.tolist()]


def prior_of(problem: Problem) -> list[str]:
    """Return other texts of the data set."""
    known = {*pool_of(problem)[:OUTPUTS]}
    return [text for text in dict.fromkeys(problem.texts) if text not in known][:PRIOR]


@cache
def content_words(text: str) -> frozenset[str]:
    """Return the distinct words of a text that are not function words."""
    functional = language_of("en").function_words
    return frozenset(word for word in words_of(text) if word not in functional and word.isalpha())


def share_in(texts: Sequence[str], outputs: Sequence[str]) -> float:
    """Return the share of the distinct content words of texts that are in their outputs."""
    pairs = [
        (content_words(text), content_words(output))
        for text, output in zip(texts, outputs, strict=True)
    ]
    n = sum(len(words) for words, _ in pairs)
    return sum(len(words & others) for words, others in pairs) / max(n, 1)


def mixed_bank(folder: Path, parts: Sequence[Sequence[Path]]) -> Path:
    """Return a bank with the same number of sentences from each part; the bank is made if it does
    not exist.
    """
    if folder.exists():
        return folder
    lines = folder.with_suffix(".jsonl")
    model = Model.load(name="en")
    with lines.open("w", encoding="utf-8") as out:
        for number, sources in enumerate(parts):
            part = folder.with_name(f"{folder.name}-{number}")
            options = BankOptions(model="en", size=SIZE // len(parts), is_public=True)
            if not part.exists():
                build(sources, part, options)
            texts = open_bank(part, model).texts
            out.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    build([lines], folder, BankOptions(model="en", size=SIZE, is_public=True))
    return folder


def task_scale(problem: Problem, drawn: Problem, data: Path, work: Path) -> Path | None:
    """Train a scale for the task of a data set, from texts of the data set that are not
    measured.
    """
    if problem.name not in TASK:
        return None
    scale = work / f"{problem.file}_task.tsv"
    if not scale.exists():
        every = problem.drawn(data, ALL)
        place = [*problem.columns].index(TASK[problem.name])
        measured = {*drawn.texts}
        labelled = work / f"{problem.file}_task.jsonl"
        with labelled.open("w", encoding="utf-8") as out:
            for text, classes in zip(every.texts, every.classes, strict=True):
                if text not in measured:
                    out.write(json.dumps({"text": text, "label": classes[place]}) + "\n")
        build_scale(labelled, scale, "en", is_public=True)
    return scale


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield all rows, data set by data set; rows that were measured before come first."""
    kept = json.loads(options.json.read_text()) if options.json.exists() else []
    yield from kept
    there = {(row["problem"], row["name"]) for row in kept}
    options.work.mkdir(parents=True, exist_ok=True)
    reviews = [options.data / PLACES, options.data / FILMS]
    language_model = learnt(options.learn, LEARNT_WORDS)
    drugs = [DRUGS] if has_drug_reviews() else []
    for problem in [*PROBLEMS, *drugs]:
        if options.only and problem.file not in options.only:
            continue
        drawn = problem.drawn(folder_of(problem, options), SIZES)
        if options.packaged:
            rewriter = Rewriter(drawn, bank_of(Model.load(name="en")), language_model)
        else:
            is_films = f"{problem.file}.parquet" == FILMS
            name = "without-films" if is_films else "bank"
            parts = [reviews[:1] if is_films else reviews, options.open]
            bank = mixed_bank(options.work / name, parts)
            scale = task_scale(problem, drawn, options.data, options.work)
            rewriter = Rewriter(drawn, bank, language_model, scale)
        for rewriting in OF_PACKAGED if options.packaged else ROWS:
            has_task = rewriter.scale is not None or not rewriting.task_weight
            if not has_task or (problem.name, str(rewriting)) in there:
                continue
            row = rewriter.row(rewriting)
            row |= {"problem": problem.name, "name": str(rewriting)}
            for what in problem.columns:
                row[what] = interval(drawn, row["predicted"][what], what)
            print({key: row[key] for key in row if key != "predicted"}, file=sys.stderr, flush=True)
            yield row


def folder_of(problem: Problem, options: argparse.Namespace) -> Path:
    """Return the folder with the file of a data set, and write the default documents first if they
    are the data set.
    """
    if problem != DRUGS:
        return Path(options.data)
    folder = Path(options.work) / "documents"
    if not folder.exists():
        write_default_documents(folder)
    return folder


def speeds(sizes: Sequence[int]) -> Iterator[Row]:
    """Yield the time of draws from banks of random vectors, one draw for each query, and of the
    product alone.
    """
    for size in sizes:
        rng = np.random.default_rng(SEED)
        vectors = np.empty((size, DIMENSIONS), dtype=np.float32)
        for start in range(0, size, SIZE):
            block = rng.standard_normal((min(SIZE, size - start), DIMENSIONS), dtype=np.float32)
            lengths = np.linalg.norm(block, axis=1, keepdims=True)
            vectors[start : start + SIZE] = UNIT * block / lengths
        mechanism = SentenceDraws(vectors, 1.0)
        queries = np.ascontiguousarray(vectors[:QUERIES])
        draws = np.arange(QUERIES)
        product = _seconds(partial(_multiply, queries, vectors))
        for epsilon in EPSILONS:
            budgets = np.full(QUERIES, epsilon)
            keys = mechanism.noise(budgets, rng)
            taken = _seconds(partial(mechanism.replace_queries, queries, draws, budgets, keys))
            yield {
                "sentences": size,
                "epsilon": epsilon,
                "rate": round(QUERIES / taken),
                "share": product / taken,
                "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }


def _multiply(queries: Vectors, bank: Vectors) -> None:
    for start in range(0, len(bank), PRODUCT):
        queries @ bank[start : start + PRODUCT].T


def _seconds(work: Callable[[], object]) -> float:
    """Return the CPU time that ``work`` takes, the smallest of several measurements."""
    taken = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)


def interval(problem: Problem, predicted: str, what: str) -> str:
    """Return macro F1, and its 95 % interval over documents."""
    scores = problem.f1(predicted, what)
    low, high = np.percentile(scores[1:], (2.5, 97.5))
    return f"{scores[0]:.3f} ({low:.2f}–{high:.2f})"


def shown(row: Row) -> Row:
    """Return a row as the table shows it: linkage among 400 and among 1,000 texts, the latter with
    its interval.
    """
    cells = dict(row)
    by_size = row.get("by_size", {})
    for name in READERS:
        values = [by_size[str(n)][name] for n in CANDIDATES if str(n) in by_size]
        if values:
            cells[name] = " / ".join(f"{value:.3f}" for value in values)
        if values and name == "likelihood":
            share = Share.of(round(values[-1] * OUTPUTS), OUTPUTS)
            cells[name] += f" ({share.low:.3f}–{share.high:.3f})"
    cells["nats"] = f"{row['nats']:.2f}"
    if "in_output" in row:
        cells["in_output"] = f"{row['in_output']:.3f}"
    return cells


def write_figures(rows: Sequence[Row]) -> None:
    """Write how often sources were found with the packaged bank: by the best adversary, and for the
    data set in which it was right most often.
    """
    linkage = list[dict[str, object]]()
    for rewriting in OF_PACKAGED[1:]:
        purpose = f"+sentiment={rewriting.weight:g}" if rewriting.weight else ""
        model = Model.load(name=f"en{purpose}")
        of_it = [row for row in rows if row["name"] == str(rewriting)]
        found = max(max(row["by_size"][str(CANDIDATES[-1])].values()) for row in of_it)
        one = WrittenLinkage(
            model=vectors_sha256(model),
            purposes=model.weighted_purposes,
            per_text=rewriting.per_text or 0,
            epsilon=rewriting.epsilon,
            found=found,
            high=round(Share.of(round(found * OUTPUTS), OUTPUTS).high, 4),
        )
        linkage.append(one._asdict())
    measured = {"sentences": read_written_card().sha256, "linkage": linkage}
    write_json(measured, WRITTEN / WRITTEN_LINKAGE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sentences", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--open", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--learn", type=Path, nargs="+", metavar="FILE", help="of an n-gram model")
    parser.add_argument("--work", type=Path, metavar="FOLDER")
    parser.add_argument("--json", type=Path, help="keep the rows here")
    parser.add_argument("--packaged", action="store_true", help="measure the bank that ships")
    parser.add_argument(
        "--figures", action="store_true", help="write the linkage that privacy records quote"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="FILE")
    parser.add_argument("--speed", type=int, nargs="+", metavar="N")
    options = parser.parse_args(arguments)
    if options.speed:
        print(markdown(SPEEDS, [*speeds(options.speed)]))
        return
    if options.figures and options.json is not None:
        write_figures(json.loads(options.json.read_text()))
        return
    if None in (options.data, options.learn, options.work, options.json):
        parser.error("--data, --learn, --work and --json are needed, or --speed")
    if not options.open and not options.packaged:
        parser.error("give --open or --packaged")
    rows = []
    for row in measure(options):
        rows.append(row)
        write_json(rows, options.json)
    columns = {key: name for key, name in COLUMNS.items() if key != "problem"}
    for problem in dict.fromkeys(row["problem"] for row in rows):
        print(f"\n### {problem}\n")
        print(markdown(columns, [shown(row) for row in rows if row["problem"] == problem]))


if __name__ == "__main__":
    main()
