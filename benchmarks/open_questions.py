"""Questions that the papers leave open, on public texts (docs/explanation/open-questions.md).

    uv run python -m benchmarks.open_questions --data FOLDER --corpus FOLDER
    uv run python -m benchmarks.open_questions --data FOLDER --corpus FOLDER --only vickrey budgets

The folder has sst2.parquet. Its texts are rewritten with the words of the model `en`, by budgets
that are a base epsilon times the mean words of a text; a linear classifier learns the label from
rewritten texts and is scored on rewritten ones. The corpus (JSON lines, compressed) gives the
n-gram model by which cross-entropy is measured. Noise is seeded: this protects nothing. Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import PROBLEMS, Problem, Sizes
from benchmarks.protection import learnt, nats_a_word
from benchmarks.table import markdown
from lexveil.accounting.budgets import Action, Policy
from lexveil.artifacts.model import Model
from lexveil.embeddings.bigrams import Bigrams
from lexveil.evaluation.encoder import TfidfMean
from lexveil.evaluation.language_model import NgramModel
from lexveil.mechanisms.base import Mechanism
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.registry import build_mechanism
from lexveil.text.collocation_index import Collocations
from lexveil.text.encode import Encoded, Lexicon, TokenClass, encode
from lexveil.types import Floats, Ids

SEED = 1
EPSILONS = (5.0, 10.0, 20.0, 30.0)  # base epsilon per word, in 1 / distances of `en`
LOW_EPSILONS = (0.1, 1.0, 10.0, 25.0)  # of CLMLDP Table 6
CANDIDATES = 8  # nearest words of a noisy vector that are weighed
KEPT = Policy("keep", "keep", "keep")
PERTURBED = Policy("perturb", "keep", "keep")
SENTENCES = 1_000  # that are cut in all ways
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CutTexts:
    """Texts cut into tokens, with what a budget is divided by.

    Attributes:
        ids: (n,) number of the word at each perturbed token, -1 at others.
        document_budget: B at base epsilon 1: the mean words of a text.
    """

    encoded: Encoded
    ids: Ids
    document_budget: float

    @property
    def is_perturbed(self) -> np.ndarray:
        """(n,) whether noise is drawn for a token."""
        return self.ids >= 0

    def per_text(self, weight: Floats) -> Floats:
        """(n,) the sum of a weight over the text of each token."""
        text_of = self.encoded.text_of
        sums = np.bincount(text_of, weight, minlength=self.encoded.n_texts)
        return np.maximum(sums, 1e-9)[text_of]

    def by_words(self) -> Floats:
        """(n,) share of B of a token in S1 and S2: one part of all words of its text."""
        is_word = self.encoded.kind != TokenClass.PUNCTUATION.value
        return 1 / self.per_text(self.encoded.n_words * is_word)

    def by_tokens(self, weight: Floats | None = None) -> Floats:
        """(n,) share of B of a perturbed token in S3 and S4: its weight, of the weights of all."""
        weights = np.ones(len(self.ids)) if weight is None else weight
        return weights / self.per_text(weights * self.is_perturbed)


class Questions:
    """Texts, a model, and how well rewritten texts serve."""

    def __init__(self, problem: Problem, language_model: NgramModel) -> None:
        self.problem = problem
        self.language_model = language_model
        self.model = Model.load(name="en")
        words = self.model.embedding("S1")
        self.encoder = TfidfMean.fit(words.tokens, words.vectors, problem.texts)
        self.clean = self.encoder.encode(problem.texts)

    def lexicon(self, segmentation: str) -> Lexicon:
        """What texts are cut by: word, gst, mst or mst_exact."""
        if segmentation == "word":
            return self.model.lexicon("S1")
        return replace(self.model.lexicon("S4"), segmentation=segmentation)

    def cut(self, lexicon: Lexicon, policy: Policy) -> CutTexts:
        """The texts of the problem, cut."""
        encoded = encode(self.problem.texts, lexicon)
        action = policy.actions(encoded.kind, encoded.rows >= 0)
        is_word = encoded.kind != TokenClass.PUNCTUATION.value
        mean_words = float((encoded.n_words * is_word).sum()) / encoded.n_texts
        ids = np.where(action == Action.PERTURBED.value, encoded.rows, -1)
        return CutTexts(encoded, ids, mean_words)

    def rewritten(
        self, lexicon: Lexicon, cut: CutTexts, replacements: Ids, only_replaced: bool = False
    ) -> list[str]:
        """Texts with other words at their perturbed tokens; or these words alone."""
        rows = np.full(len(cut.ids), -1, dtype=np.int64)
        rows[cut.is_perturbed] = replacements
        texts: list[list[str]] = [[] for _ in range(cut.encoded.n_texts)]
        words = cut.encoded.words
        firsts = cut.encoded.first_word.tolist()
        lengths = cut.encoded.n_words.tolist()
        for token, (text, row) in enumerate(
            zip(cut.encoded.text_of.tolist(), rows.tolist(), strict=True)
        ):
            if row >= 0:
                texts[text].append(lexicon.tokens[row].replace("_", " "))
            elif not only_replaced:
                first = firsts[token]
                texts[text] += words[first : first + lengths[token]]
        return [" ".join(tokens) for tokens in texts]

    def drawn(self, mechanism: Mechanism, cut: CutTexts, epsilon: Floats) -> Ids:
        """Replacements of the perturbed tokens."""
        own = epsilon[cut.is_perturbed]
        noise = mechanism.noise(own, np.random.default_rng(SEED))
        return mechanism.replace(cut.ids[cut.is_perturbed], own, noise)

    def figures(self, texts: Sequence[str]) -> Row:
        """Utility with its interval, cosine with the clean texts, and nats a word."""
        predicted = self.problem.predicted(texts)["utility"]
        f1 = self.problem.f1(predicted, "utility")
        low, high = np.percentile(f1[1:], (2.5, 97.5))
        vectors = self.encoder.encode(texts)
        lengths = np.linalg.norm(self.clean, axis=1) * np.linalg.norm(vectors, axis=1)
        products = (self.clean * vectors).sum(axis=1)
        cosine = np.divide(products, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
        read = texts[self.problem.n_train :]
        return {
            "utility": f"{f1[0]:.3f} ({low:.3f} to {high:.3f})",
            "cosine": f"{cosine.mean():.3f}",
            "nats": f"{nats_a_word(self.language_model, read):.2f}",
        }

    def row(
        self,
        lexicon: Lexicon,
        cut: CutTexts,
        mechanism: Mechanism,
        of_tokens: Floats,
        **about: Any,
    ) -> Row:
        """Rewrite all texts, and measure them."""
        drawn = self.drawn(mechanism, cut, of_tokens)
        same = float((drawn == cut.ids[cut.is_perturbed]).mean())
        return (
            about | {"unchanged": f"{same:.3f}"} | self.figures(self.rewritten(lexicon, cut, drawn))
        )

    def stop_words(self) -> Iterator[Row]:
        """S1 with stop words kept or perturbed, beside S2."""
        for name, segmentation, policy in (
            ("S1, stop words kept", "word", KEPT),
            ("S1, stop words perturbed", "word", PERTURBED),
            ("S2", "gst", PERTURBED),
        ):
            lexicon = self.lexicon(segmentation)
            cut = self.cut(lexicon, policy)
            mechanism = Madlib(self.vectors(lexicon))
            for base in EPSILONS:
                epsilon = base * cut.document_budget * cut.by_words()
                yield self.row(lexicon, cut, mechanism, epsilon, what=name, epsilon=base)

    def vectors(self, lexicon: Lexicon) -> Any:
        """Vectors of the tokens of a lexicon."""
        return self.model.embedding("S1" if lexicon.segmentation == "word" else "S4").vectors

    def segmentations(self) -> Iterator[Row]:
        """GST, greedy MST and the exact optimum, each token with its part of the same budget."""
        for segmentation in ("gst", "mst", "mst_exact"):
            lexicon = self.lexicon(segmentation)
            cut = self.cut(lexicon, PERTURBED)
            mechanism = Madlib(self.vectors(lexicon))
            n_tokens = len(cut.ids) / cut.encoded.n_texts
            for base in EPSILONS:
                epsilon = base * cut.document_budget * cut.by_tokens()
                yield self.row(
                    lexicon,
                    cut,
                    mechanism,
                    epsilon,
                    what=f"{segmentation}, {n_tokens:.2f} tokens a text",
                    epsilon=base,
                )

    def below_optimum(self) -> Iterator[Row]:
        """How often greedy MST is below the largest sum of scores, and GST."""
        texts = self.problem.texts[:SENTENCES]
        sums = {name: self.score_sums(name, texts) for name in ("gst", "mst", "mst_exact")}
        for name in ("gst", "mst"):
            below = int((sums[name] < sums["mst_exact"] - 1e-6).sum())
            share = sums[name].sum() / sums["mst_exact"].sum()
            yield {
                "what": f"{name}: texts below the optimum, of {len(texts):,}",
                "epsilon": below,
                "unchanged": f"{share:.3f} of its sum",
            }

    def score_sums(self, segmentation: str, texts: Sequence[str]) -> Floats:
        """(n,) the sum of the scores of the collocations of each text."""
        lexicon = self.lexicon(segmentation)
        encoded = encode(texts, lexicon)
        assert self.model.packaged is not None
        scores = dict(zip(self.model.packaged.tokens, self.model.packaged.pmi, strict=True))
        of_tokens = np.array([float(scores[token]) for token in lexicon.tokens])
        weights = np.where(encoded.rows >= 0, of_tokens[encoded.rows], 0.0)
        return np.bincount(encoded.text_of, weights, minlength=len(texts))

    def measures(self) -> Iterator[Row]:
        """MST by other association measures than PMI."""
        base = self.lexicon("mst")
        scored = association_scores(base, self.model.embedding("S4").counts)
        mechanism = Madlib(self.vectors(base))
        for name, scores in scored.items():
            lexicon = replace(base, collocations=with_scores(base, scores))
            cut = self.cut(lexicon, PERTURBED)
            n_tokens = len(cut.ids) / cut.encoded.n_texts
            for epsilon_base in EPSILONS:
                epsilon = epsilon_base * cut.document_budget * cut.by_tokens()
                yield self.row(
                    lexicon,
                    cut,
                    mechanism,
                    epsilon,
                    what=f"mst by {name}, {n_tokens:.2f} tokens a text",
                    epsilon=epsilon_base,
                )

    def vickrey(self) -> Iterator[Row]:
        """Vickrey at small epsilons, with the input excluded or not, read whole or without what was
        kept.
        """
        lexicon = self.lexicon("word")
        for excludes in (True, False):
            parameters = {"vickrey": {"t": 0.75, "exclude_input": excludes}}
            mechanism = build_mechanism("vickrey", self.vectors(lexicon), parameters)
            for policy, kept in ((KEPT, "kept"), (PERTURBED, "perturbed")):
                cut = self.cut(lexicon, policy)
                for base in LOW_EPSILONS:
                    epsilon = base * cut.document_budget * cut.by_words()
                    what = f"input {'excluded' if excludes else 'allowed'}, stop words {kept}"
                    drawn = self.drawn(mechanism, cut, epsilon)
                    for only in (False, True):
                        texts = self.rewritten(lexicon, cut, drawn, only_replaced=only)
                        part = "replaced words alone" if only else "whole texts"
                        yield {"what": f"{what}: {part}", "epsilon": base} | self.figures(texts)

    def weighed(self) -> Iterator[Row]:
        """Vickrey's nearest words of a noisy vector, drawn by distance or by what suits the word
        before.
        """
        lexicon = self.lexicon("word")
        cut = self.cut(lexicon, KEPT)
        bigrams = self.model.bigrams("S1")
        assert bigrams is not None
        madlib = Madlib(self.vectors(lexicon))
        for base in EPSILONS:
            epsilon = (base * cut.document_budget * cut.by_words())[cut.is_perturbed]
            ids = cut.ids[cut.is_perturbed]
            noise = madlib.noise(epsilon, np.random.default_rng(SEED))
            noisy = madlib.vectors[ids] + noise
            near, distances = madlib.search.nearest_k(noisy, CANDIDATES)
            choices: dict[str, Callable[[], Ids]] = {
                "madlib": lambda near=near: near[:, 0],
                "vickrey, t = .75": lambda near=near, distances=distances: by_distance(
                    near, distances
                ),
                f"{CANDIDATES} nearest, by what is written before": (
                    lambda near=near: self.by_context(cut, near, bigrams)
                ),
            }
            for name, choose in choices.items():
                drawn = choose()
                same = float((drawn == ids).mean())
                about = {"what": name, "epsilon": base, "unchanged": f"{same:.3f}"}
                yield about | self.figures(self.rewritten(lexicon, cut, drawn))

    def by_context(self, cut: CutTexts, near: Ids, bigrams: Bigrams) -> Ids:
        """One of the nearest words of each token, by the public counts after what is written before
        it.
        """
        counts = self.model.embedding("S1").counts
        single = counts / counts.sum()
        rng = np.random.default_rng(SEED)
        drawn = np.empty(len(near), dtype=np.int64)
        place = 0
        before = -1
        text = -1
        for token, row in enumerate(cut.encoded.rows.tolist()):
            if int(cut.encoded.text_of[token]) != text:
                text = int(cut.encoded.text_of[token])
                before = -1
            if cut.ids[token] < 0:
                before = row
                continue
            candidates = near[place]
            weight = single[candidates].copy()
            if before >= 0:
                following = slice(bigrams.starts[before], bigrams.starts[before + 1])
                after = dict(
                    zip(
                        bigrams.ids[following].tolist(),
                        bigrams.counts[following].tolist(),
                        strict=True,
                    )
                )
                total = max(sum(after.values()), 1)
                weight += [after.get(word, 0) / total for word in candidates.tolist()]
            before = int(rng.choice(candidates, p=weight / weight.sum()))
            drawn[place] = before
            place += 1
        return drawn

    def budgets(self) -> Iterator[Row]:
        """S3 with budgets of tokens by their length, or by their score, adding up to B."""
        lexicon = self.lexicon("gst")
        cut = self.cut(lexicon, PERTURBED)
        mechanism = Madlib(self.vectors(lexicon))
        assert self.model.packaged is not None
        scores = dict(zip(self.model.packaged.tokens, self.model.packaged.pmi, strict=True))
        of_tokens = np.array([float(scores[token]) for token in lexicon.tokens])
        pmi = np.where(cut.ids >= 0, of_tokens[cut.ids], 0.0)
        lengths = cut.encoded.n_words.astype(np.float64)
        for name, weight in (
            ("equal", np.ones(len(pmi))),
            ("by words", lengths),
            ("by 1 / words", 1 / lengths),
            ("by 1 + PMI / 5 bits", 1 + pmi / 5),
        ):
            for base in EPSILONS:
                epsilon = base * cut.document_budget * cut.by_tokens(weight)
                yield self.row(lexicon, cut, mechanism, epsilon, what=name, epsilon=base)


def by_distance(near: Ids, distances: Floats, t: float = 0.75) -> Ids:
    """Vickrey's choice between the two nearest words (Algorithm 1), the input among them."""
    first = (1 - t) * distances[:, 1]
    chance = first / np.maximum(first + t * distances[:, 0], 1e-300)
    is_first = np.random.default_rng(SEED).random(len(near)) < chance
    return np.where(is_first, near[:, 0], near[:, 1])


def association_scores(lexicon: Lexicon, counts: Ids) -> dict[str, Floats]:
    """(V,) scores of the collocations of a lexicon by several measures, from the counts of its
    tokens; 0 of words.
    """
    total: dict[str, int] = {}
    for token, count in zip(lexicon.tokens, counts.tolist(), strict=True):
        for word in token.split("_"):
            total[word] = total.get(word, 0) + count
    n = float(sum(total.values()))
    joint = np.maximum(counts.astype(np.float64), 1)
    alone = np.array(
        [np.log2([total[word] for word in token.split("_")]).sum() for token in lexicon.tokens]
    )
    size = lexicon.n_words.astype(np.float64)
    log_expected = alone - (size - 1) * np.log2(n)  # bits, of the count if words were independent
    pmi = np.log2(joint) - log_expected
    expected = np.exp2(log_expected)
    scores = {
        "PMI": pmi,
        "NPMI": pmi / np.maximum((size - 1) * (np.log2(n) - np.log2(joint)), 1e-9),
        "log-likelihood ratio": 2 * joint * np.maximum(pmi, 0) * np.log(2),
        "t-score": (joint - expected) / np.sqrt(joint),
    }
    return {name: np.where(size > 1, values, 0.0) for name, values in scores.items()}


def with_scores(lexicon: Lexicon, scores: Floats) -> Collocations:
    """The collocations of a lexicon with other scores; each is worth more than its words alone."""
    least = float(scores[lexicon.n_words > 1].min())
    shifted = scores - min(least, 0.0) + 1e-6
    columns: dict[int, list[list[str]]] = {2: [], 3: []}
    values: dict[int, list[float]] = {2: [], 3: []}
    for row, token in enumerate(lexicon.tokens):
        words = token.split("_")
        if len(words) > 1:
            columns[len(words)].append(words)
            values[len(words)].append(float(shifted[row]))
    pairs = [list(column) for column in zip(*columns[2], strict=True)]
    triples = [list(column) for column in zip(*columns[3], strict=True)]
    return Collocations.build(pairs, np.array(values[2]), triples, np.array(values[3]))


COLUMNS = {
    "what": "",
    "epsilon": "base ε",
    "unchanged": "unchanged",
    "utility": "utility, macro F1",
    "cosine": "cosine",
    "nats": "nats a word",
}
QUESTIONS: dict[str, Callable[[Questions], Iterator[Row]]] = {
    "stop_words": Questions.stop_words,
    "segmentations": Questions.segmentations,
    "below_optimum": Questions.below_optimum,
    "measures": Questions.measures,
    "vickrey": Questions.vickrey,
    "weighed": Questions.weighed,
    "budgets": Questions.budgets,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table for each question."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.open_questions", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--corpus", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=[*QUESTIONS], choices=[*QUESTIONS])
    parser.add_argument("--train", type=int, default=2_000, help="texts to learn from")
    parser.add_argument("--test", type=int, default=1_500, help="texts to predict")
    parser.add_argument("--learn", type=int, default=1_000_000, help="words of the n-gram model")
    options = parser.parse_args(arguments)
    sizes = Sizes(train=options.train, test=options.test, words=40, read=8_000)
    sst2 = next(problem for problem in PROBLEMS if problem.file == "sst2")
    problem = sst2.drawn(options.data, sizes)
    files = sorted(options.corpus.glob("*.json.gz"))
    questions = Questions(problem, learnt(files, options.learn))
    print(f"clean texts: {questions.figures(problem.texts)}")
    for name in options.only:
        print(f"\n## {name}\n\n{markdown(COLUMNS, [*QUESTIONS[name](questions)])}", flush=True)


if __name__ == "__main__":
    main()
