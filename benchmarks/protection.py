"""Epsilon of a token at each level of protection, which `--protection` uses for a model that ships.

    uv run python -m benchmarks.protection --corpus FOLDER --json lexveil/models/protection/en.json
    uv run python -m benchmarks.protection --corpus FOLDER --check FILE.parquet FILE.parquet
    uv run python -m benchmarks.protection --figures    # lexveil/models/expected.json

A level limits the share of the content words and the share of the rare words that an adversary may
name; both limits hold. Every adversary knows the mechanism, the words and epsilon; the adversary
that names most words decides. The unigram adversary uses single words. The contextual adversary
uses an n-gram model, which learns from all files of the corpus (JSON lines, compressed) except the
last. `--reader smollm2` adds an adversary with a neural model. The documents of the last file are
rewritten, and a bisection finds epsilon, the same for every token. `--check` measures the levels of
the file that ships on other texts; with `--epsilon`, it measures other epsilons. With `--base
smollm2` a language model weighs the words of `tem_context`. Noise is seeded, so the output is not
private. The table also has the shares that calibration expects; calibration reads no text.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.table import markdown
from lexveil.base.runtime.tables import write_json
from lexveil.base.types import ModelRows, WordNumbers
from lexveil.core.accounting.budgets import Action, DocumentBudget, PerDocument, Policy
from lexveil.core.language_models.kneser_ney import train
from lexveil.core.language_models.language_model import NgramModel
from lexveil.core.protection import LEVELS, MeasuredLevel, Shares
from lexveil.core.text.encode import tokenize
from lexveil.core.text.piece_models import PieceModel
from lexveil.io.artifacts.levels import level_of, measured_levels
from lexveil.io.artifacts.mechanisms import CAUSAL_MODELS
from lexveil.io.artifacts.model import Model
from lexveil.io.request import Request
from lexveil.lab.evaluation.recovery.measured import GUESSES, READERS
from lexveil.lab.evaluation.registry import READER_MODELS
from lexveil.readers.bands import BANDS
from lexveil.readers.beams import contextual_adversary
from lexveil.readers.calibration import recovered
from lexveil.readers.context import ContextualAdversary
from lexveil.readers.counted_words import NEVER
from lexveil.readers.public_words import WORDS_OF_A_BAND, PublicWords
from lexveil.readers.seen_tokens import SeenTokens, written_before
from lexveil.readers.shares import Expected, Share, by_band
from lexveil.readers.stored_curve import SHIPPED
from lexveil.release.engine.batch import Batch, Rewritten
from lexveil.release.engine.engine import WordEngine
from lexveil.release.settings import Settings, resolve_settings

SEED = 1
STEPS = 8  # steps of a bisection on ln ε, after which ε is known to 1.2 %
DIGITS = 3
RANGES = {"diffractor_geometric": (0.002, 20.0), "diffractor_tem": (0.004, 40.0)}
RANGE = (0.3, 50.0)  # range of ε for the other mechanisms, in 1 / units of the embedding
SIDE_BY_SIDE = 64  # texts in one batch of a neural model
RARE = BANDS.index("rare")
COLUMNS = {
    "texts": "texts",
    "mechanism": "mechanism",
    "strategy": "strategy",
    "level": "level",
    "epsilon": "ε",
    "content_expected": "content, expected, unigram / contextual",
    "rare_expected": "rare, expected",
    "content_by_word": "content, unigram",
    "content_by_context": "by n-grams",
    "content_by_neural": "by SmolLM2",
    "content_knowing_rest": "knowing the rest",
    "rare_by_word": "rare, unigram",
    "rare_by_context": "by n-grams",
    "rare_by_neural": "by SmolLM2",
    "rare_knowing_rest": "knowing the rest",
    "unchanged": "unchanged",
    "words": "words per word",
    "nats": "nats a word (clean)",
    "neural_nats": "by SmolLM2",
    "rate": "tokens per CPU second",
    "verbatim": "unchanged texts of 1,000",
    "note": "",
}


@dataclass(frozen=True, slots=True)
class Named:
    """Shares of the perturbed words of some texts that each adversary named, by the name of the
    adversary.
    """

    content: dict[str, Share]
    rare: dict[str, Share]
    unchanged: Share
    words: float
    verbatim: float  # texts with no changed word, of 1,000 texts with a perturbed word
    texts: list[str]  # the rewritten texts
    neural_nats: str  # nats per word under the neural model
    rate: float  # tokens rewritten per CPU second

    def row(self) -> dict[str, object]:
        """Return the shares as a row of the table."""
        of = {"content": self.content, "rare": self.rare}
        shares = {
            f"{band}_{name}": share
            for band, readers in of.items()
            for name, share in readers.items()
        }
        shown = {
            name: f"{share.share:.3f} ({share.low:.3f}–{share.high:.3f})"
            for name, share in (shares | {"unchanged": self.unchanged}).items()
        }
        return shown | {
            name: getattr(self, name) for name in ("words", "verbatim", "neural_nats", "rate")
        }

    @property
    def strongest(self) -> Shares:
        """Shares of content words and of rare words that the strongest adversary named."""
        return Shares(
            *(
                max(of[name].share for name in READERS if name in of)
                for of in (self.content, self.rare)
            )
        )


class Measuring:
    """One mechanism and strategy with one model, and the adversaries that read its outputs."""

    def __init__(
        self,
        model: Model,
        mechanism: str,
        strategy: str,
        language_model: NgramModel | None = None,
        neural: PieceModel | None = None,
        epsilons: tuple[float, float] | None = None,
    ) -> None:
        """Load the mechanism. With ``epsilons``, one adversary is built for that range; otherwise
        each epsilon gets an adversary of its own.
        """
        chosen = model.params.policy
        policy = Policy.of(strategy, chosen.stopwords, chosen.punctuation, chosen.oov)
        settings = Settings(mechanism, strategy, PerDocument(1.0), SEED, policy, keep_layout=False)
        self.engine = WordEngine(settings, model)
        self.public = PublicWords.of(model, mechanism, strategy, policy)
        self.range = RANGES.get(mechanism, RANGE)
        tokens = [
            self.engine.lexicon.tokens[row] for row in self.public.prepared.vocabulary.rows.tolist()
        ]
        self.pieces = [token.split("_") for token in tokens]
        self.language_model = language_model
        self.neural = neural
        self.reader = self._reader_of(epsilons) if epsilons else None

    def _reader_of(self, epsilons: tuple[float, float]) -> ContextualAdversary:
        adversary = self.public.adversary(epsilons)
        prior = np.maximum(self.public.prior, NEVER)
        assert self.language_model is not None
        reader = contextual_adversary(
            adversary, prior, self.language_model, self.pieces, self.neural
        )
        reader.with_output_only = True
        return reader

    def rewritten(
        self, texts: Sequence[str], epsilon: float, names: Sequence[str] | None = None
    ) -> Rewritten:
        """Rewrite texts at one epsilon for every token; the name of a text decides its noise."""
        worker = replace(self.engine.worker(), column_keys=(("text",),), budget_name="1")
        names = names or [str(number) for number in range(len(texts))]
        batch = Batch([[text] for text in texts], [(name,) for name in names])
        return worker.draw(batch, DocumentBudget(math.inf, epsilon))

    def seen(self, done: Rewritten) -> SeenTokens:
        """Return rewritten texts as an adversary sees them, together with the replaced words."""
        number = self.public.prepared.vocabulary.number
        is_drawn = done.action == Action.PERTURBED.value
        is_kept = done.action == Action.KEPT.value
        words = done.encoded.words
        first_word = done.encoded.first_word.tolist()
        certain = [
            words[word] if kept else None
            for word, kept in zip(first_word, is_kept.tolist(), strict=True)
        ]
        outputs = WordNumbers(np.where(is_drawn, number[done.rows], -1))
        true = WordNumbers(np.where(is_drawn, number[done.encoded.rows], -1))
        text_of = done.encoded.text_of.astype(np.int64)
        written = ModelRows(np.where(is_kept, done.encoded.rows, done.rows))
        before = written_before(text_of, written, done.action == Action.DROPPED.value)
        return SeenTokens(text_of, outputs, done.token_epsilon, certain, before, true, written)

    def named(
        self, texts: Sequence[str], epsilon: float, names: Sequence[str] | None = None
    ) -> Named:
        """Rewrite texts, and count the words that each adversary names."""
        started = time.process_time()
        done = self.rewritten(texts, epsilon, names)
        rate = round(len(done.rows) / (time.process_time() - started))
        number = self.public.prepared.vocabulary.number
        is_drawn = done.action == Action.PERTURBED.value
        source = number[done.encoded.rows[is_drawn]]
        output = number[done.rows[is_drawn]]
        reader = self.reader or self._reader_of((epsilon / 1.01, epsilon * 1.01))
        seen = self.seen(done)
        guesses = asdict(reader.guess(seen))
        bands = self.public.bands[source]
        content = bands > 0
        rare = bands == RARE
        shown = [name for name in GUESSES if name != "without_output" and guesses[name] is not None]

        def share(right: np.ndarray, of: np.ndarray) -> Share:
            return Share.of(int((right & of).sum()), int(of.sum()))

        drawn_in = done.encoded.text_of[is_drawn]
        changed, perturbed = (
            np.bincount(drawn_in, some, len(texts)) for some in (output != source, None)
        )
        verbatim = round(
            1000 * float(((changed == 0) & (perturbed > 0)).sum() / max((perturbed > 0).sum(), 1)),
            1,
        )
        n_words = (
            sum(len(text.split()) for text in texts),
            sum(len(text.split()) for text in done.texts),
        )
        of_content, of_rare = (
            {name: share(guesses[name] == source, of) for name in shown} for of in (content, rare)
        )
        words_per_word = round(n_words[1] / n_words[0], 3)
        unchanged = share(output == source, content)
        rewritten = [*done.texts]
        by_neural = (
            [nats_by(self.neural, some) for some in (rewritten, texts)] if self.neural else []
        )
        neural_nats = "{:.2f} ({:.2f})".format(*by_neural) if by_neural else ""
        return Named(
            of_content, of_rare, unchanged, words_per_word, verbatim, rewritten, neural_nats, rate
        )

    def expected(self, epsilon: float) -> dict[str, str]:
        """Return the shares of content words and of rare words that calibration expects the unigram
        and the contextual adversary to name.
        """
        sample = self.public.sample("calibration", WORDS_OF_A_BAND)
        _, guesses = self.public.read(sample, epsilon, "calibration")
        named = [by_band(guess == sample.ids, sample.bands) for guess in guesses]
        found = [Expected(epsilon, shares, shares, sample.mass) for shares in named]
        return {
            f"{band}_expected": " / ".join(f"{recovered(one, band):.3f}" for one in found)
            for band in ("content", "rare")
        }

    def epsilon_of(self, texts: Sequence[str], allowed: Shares) -> float | None:
        """Return the largest epsilon within the range at which the strongest adversary names at
        most the allowed shares. Return None if this holds at every epsilon of the range, or at
        none.
        """
        return largest(lambda epsilon: self.named(texts, epsilon).strongest, allowed, self.range)


def largest(
    strongest: Callable[[float], Shares], allowed: Shares, within: tuple[float, float]
) -> float | None:
    """Return the largest epsilon within a range at which no share is above its allowed value.
    Return None if this holds at every epsilon of the range, or at none.
    """

    @cache
    def holds(epsilon: float) -> bool:
        named = strongest(epsilon)
        return named.content <= allowed.content and named.rare <= allowed.rare

    low, high = within
    if not holds(low) or holds(high):
        return None
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    digits = DIGITS - 1 - math.floor(math.log10(low))
    epsilon = math.floor(low * 10.0**digits) / 10.0**digits
    while not holds(epsilon):  # by chance: other noise may name one word more
        epsilon = round(epsilon - 10.0**-digits, max(digits, 0))
    return epsilon


def nats_by(model: PieceModel, texts: Sequence[str]) -> float:
    """Return the nats per word of texts under a neural model, each text read from its beginning;
    punctuation marks count as words.
    """
    words = [re.findall(r"[^\W_]+|[^\w\s]", text) for text in texts]
    pieces = sorted(
        (
            [piece for one in model.pieces([[word] for word in text]) for piece in one]
            for text in words
        ),
        key=len,
    )
    total = 0.0
    for start in range(0, len(pieces), SIDE_BY_SIDE):
        some = pieces[start : start + SIDE_BY_SIDE]
        states = model.begin(len(some), 1)
        for at in range(len(some[-1])):
            going_on = np.array([len(text) > at for text in some])
            next_piece = np.array([text[at] if len(text) > at else 0 for text in some])
            p = states.next_pieces(np.arange(len(some)))[np.arange(len(some)), 0, next_piece]
            total -= float(np.log(p[going_on]).sum())
            states.read(next_piece[:, None], going_on[:, None])
    return total / sum(map(len, words))


def nats_a_word(language_model: NgramModel, texts: Sequence[str]) -> float:
    """Return the cross-entropy of texts under the n-gram model, in nats per word."""
    scores = language_model.score([*texts])
    return float(-scores.log_sum.sum() / scores.n_tokens.sum())


def learnt(files: Sequence[Path], max_words: int, without: Collection[str] = ()) -> NgramModel:
    """Train an n-gram model on the first words of files, without the texts of some sources."""
    numbers = dict[str, int]()
    ids = list[int]()
    offsets = [0]
    for file in files:
        for sentence in _sentences(read_texts(file, without)):
            ids += [numbers.setdefault(word, len(numbers)) for word in sentence]
            offsets.append(len(ids))
            if len(ids) >= max_words:
                break
        if len(ids) >= max_words:
            break
    print(f"n-gram model of {len(ids):,} words", file=sys.stderr)
    model = train(np.array(ids, dtype=np.int64), np.array(offsets, dtype=np.int64), len(numbers), 3)
    return NgramModel(model, list(numbers))


def _sentences(texts: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), 2048):
        tokens = tokenize(texts[start : start + 2048])
        words = np.array([*tokens.forms], dtype=object)[tokens.ids].tolist()
        begin = 0
        for size in tokens.sentence_sizes.tolist():
            yield words[begin : begin + size]
            begin += size


def read_texts(file: Path, without: Collection[str] = ()) -> list[str]:
    """Read the texts of a file: compressed JSON lines, without the texts of some sources; or
    Parquet.
    """
    if file.suffix == ".parquet":
        return [
            text
            for text in pq.read_table(file, columns=["text"]).column("text").to_pylist()
            if text
        ]
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [row["text"] for row in map(json.loads, lines) if row.get("source") not in without]


def drawn(texts: Sequence[str], n_words: int, longest: int) -> list[str]:
    """Draw texts in random order, and cut each text to its first ``longest`` words, until there are
    ``n_words`` words.
    """
    chosen = []
    total = 0
    for number in np.random.default_rng(SEED).permutation(len(texts)).tolist():
        words = texts[number].split(" ")[:longest]
        chosen.append(" ".join(words))
        total += len(words)
        if total >= n_words:
            break
    return chosen


def with_context(base: Model, **changed: object) -> Model:
    """Return a model with changed parameters of tem_context."""
    params = base.params
    context = params.mechanisms.tem_context.model_copy(update=changed)
    mechanisms = params.mechanisms.model_copy(update={"tem_context": context})
    return replace(
        base,
        project=replace(base.project, params=params.model_copy(update={"mechanisms": mechanisms})),
    )


def write_figures() -> None:
    """Write the expected recovery at the levels of the default release, so that no user has to
    compute it.
    """
    write_json({}, SHIPPED)
    model = Model.load(name="en")
    for name in LEVELS:
        settings = resolve_settings(Request(protection=name), model)
        assert settings.base_epsilon is not None
        curve = WordEngine(settings, model).recovery_curve()
        curve.meaning(settings.base_epsilon, settings.base_epsilon)
    write_json({curve.public_key: json.loads(curve.file.read_bytes())}, SHIPPED)


def write_levels(model: Model, levels: Sequence[MeasuredLevel], file: Path) -> None:
    """Write levels of a model into the file that ships; the levels of other models in the file
    stay.
    """
    assert model.packaged is not None and model.sha256 is not None
    again = {level[:3] for level in levels}
    kept = [level for level in measured_levels(model.sha256) if level[:3] not in again]
    others = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    about = {
        "model": f"{model.name} {model.packaged.card.version}",
        "levels": [level._asdict() for level in sorted([*kept, *levels])],
    }
    write_json(others | {model.sha256: about}, file)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the levels, print them, and write the file that ships."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.protection", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--corpus", type=Path, default=Path(), metavar="FOLDER")
    parser.add_argument("--model", default="en", metavar="NAME")
    parser.add_argument("--mechanism", nargs="+", default=["tem"])
    parser.add_argument("--strategy", nargs="+", default=["S1"])
    parser.add_argument(
        "--learn", type=int, default=20_000_000, metavar="N", help="words of the n-gram model"
    )
    parser.add_argument(
        "--words", type=int, default=60_000, metavar="N", help="words to rewrite at each epsilon"
    )
    parser.add_argument(
        "--longest",
        type=int,
        default=200,
        metavar="N",
        help="largest number of words of a text, from its start",
    )
    parser.add_argument(
        "--check", type=Path, nargs="+", default=[], metavar="FILE", help="other public texts"
    )
    parser.add_argument(
        "--reader",
        default="ngrams",
        choices=["ngrams", *READER_MODELS],
        help="the strongest adversary to run",
    )
    parser.add_argument(
        "--epsilon", type=float, nargs="+", help="measure these epsilons instead of the levels"
    )
    parser.add_argument(
        "--base", default="bigrams", choices=["bigrams", *CAUSAL_MODELS], help="of tem_context"
    )
    parser.add_argument("--json", type=Path, help="write the levels here")
    parser.add_argument(
        "--figures",
        action="store_true",
        help="write the expected recovery of the default at its levels",
    )
    options = parser.parse_args(arguments)
    if options.figures:
        write_figures()
        return
    if options.json and (options.epsilon or options.base != "bigrams"):
        parser.error("--json is for levels of the default base measure only")
    *learn, held_out = sorted(options.corpus.glob("*.json.gz"))
    model = with_context(Model.load(name=options.model), model=options.base)
    language_model = learnt(learn, options.learn)
    assert model.packaged is not None and model.sha256 is not None
    shipped = measured_levels(model.sha256)
    neural = READER_MODELS[options.reader].make() if options.reader in READER_MODELS else None
    rows = list[dict[str, object]]()
    levels = list[MeasuredLevel]()
    for mechanism, strategy in product(options.mechanism, options.strategy):
        measuring = Measuring(model, mechanism, strategy, language_model, neural)
        expected = cache(measuring.expected if options.base == "bigrams" else lambda _: {})
        for file, name in product(options.check or [held_out], options.epsilon or LEVELS):
            texts = drawn(read_texts(file), options.words, options.longest)
            known = level_of(shipped, mechanism, strategy, name)
            epsilon = (known and known.epsilon) if options.check else None
            if options.epsilon:
                epsilon = name
            elif not options.check:
                epsilon = measuring.epsilon_of(texts, LEVELS[name])
            row: dict[str, object] = {
                "texts": file.name.split(".")[0],
                "mechanism": mechanism,
                "strategy": strategy,
                "level": name,
            }
            if epsilon is None:
                rows.append(row | {"note": "not reached"})
                continue
            found = measuring.named(texts, epsilon)
            nats = "{:.2f} ({:.2f})".format(
                *(nats_a_word(language_model, some) for some in (found.texts, texts))
            )
            rows.append(
                row | {"epsilon": epsilon, "nats": nats, **expected(epsilon), **found.row()}
            )
            levels.append(MeasuredLevel(mechanism, strategy, name, epsilon, *found.strongest))
            print(f"  {rows[-1]}", file=sys.stderr, flush=True)
    print(markdown(COLUMNS, rows))
    if options.json:
        write_levels(model, levels, options.json)


if __name__ == "__main__":
    main()
