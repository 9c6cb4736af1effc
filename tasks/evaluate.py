"""Score one run: private/**/documents.parquet, embeddings/word, attackers, language_model -> evaluation/**.json.

What a task and attackers get from its texts, how similar they are to the originals, and how natural they read. Every
data set is scored for itself. The clean texts are those of the run `none none 0.0`, which is evaluated like any
other: its scores are what the report compares the others with. What is learnt from, and in which order, is the same for
all runs, so that runs differ by their texts only.
"""

from __future__ import annotations

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lexveil import paths
from lexveil.artifacts.attackers import load_attackers
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.language_models import load_language_model
from lexveil.config import CLEAN, EvaluationParams, Params, load_params
from lexveil.errors import RequestError
from lexveil.evaluation.base import Encoder, LanguageModel, joined
from lexveil.evaluation.encoder import TfidfMean, similarity
from lexveil.evaluation.language_model import NgramModel
from lexveil.evaluation.membership import STREAM, PaperAttacker, attacked, membership_entry, parts_of
from lexveil.evaluation.ngrams import CountedTexts
from lexveil.evaluation.registry import CLASSIFIERS, ENCODERS, LANGUAGE_MODELS
from lexveil.evaluation.text_quality import drawn, perplexity_entry, similarity_entry, texts_of
from lexveil.evaluation.utility import TARGET_OF, LeftOut, attack, entry, problem_of, shuffles_of, utility
from lexveil.mechanisms.noise.streams import stream
from lexveil.runtime.pool import ordered_map
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import read_table, write_json

STAGE = "evaluate"  # the name of its streams
LARGE = 50_000_000  # bytes of documents from which on data sets are learnt from side by side
Part = tuple[str, pa.Table, pa.Table]  # a data set: its name, its documents as they were given, and rewritten

KEPT = ["dataset", "doc_id", "split", "label", "attribute"]  # what rewriting leaves as it is


def read_run(mechanism: str, strategy: str, epsilon: float) -> pa.Table:
    """The documents of one run, ordered by (dataset, doc_id).

    Raises:
        MissingArtifact: if it was not made.
    """
    made_by = "baseline" if mechanism == "none" else f"privatize@{mechanism}-{strategy}-{epsilon}"
    file = paths.private(mechanism, strategy, epsilon) / "documents.parquet"
    return read_table(file, made_by, [*KEPT, "text", "text_b"])


def both(documents: pa.Table) -> tuple[list[str], list[str | None]]:
    """The text of each document, and the second of a pair."""
    return documents.column("text").to_pylist(), documents.column("text_b").to_pylist()


def load_encoder(settings: EvaluationParams) -> Callable[[Sequence[str]], Encoder]:
    """What makes the encoder of a data set from clean texts of it."""
    back_end = ENCODERS[settings.encoder]
    if settings.encoder == TfidfMean.name:
        space = load_embedding("word")
        return lambda texts: back_end(space.tokens, space.vectors, texts)
    encoder = back_end.maker(settings)()  # a model that was made elsewhere is the same for all
    return lambda _: encoder


def load_reader(settings: EvaluationParams) -> LanguageModel:
    """The language model that perplexities are taken from."""
    if settings.language_model == NgramModel.name:
        return load_language_model()
    return LANGUAGE_MODELS[settings.language_model].maker(settings)()


def evaluate(
    clean: pa.Table,
    private: pa.Table,
    params: Params,
    encoder_of: Callable[[Sequence[str]], Encoder],
    language_model: LanguageModel,
) -> dict[str, Any]:
    """All measures of every data set, by its name.

    Args:
        clean: documents as they were given: dataset, doc_id, split, label, attribute, text, text_b.
        private: the same, with rewritten texts, in the same order.
        encoder_of: makes the encoder of a data set from clean texts of it.

    Raises:
        RequestError: if the two are not of the same documents.
    """
    if not clean.select(KEPT).equals(private.select(KEPT)):
        raise RequestError(
            "the run and the clean baseline are not of the same documents; `lexveil run` makes anew what is out of date"
        )
    datasets = sorted(clean.column("dataset").unique().to_pylist())

    def parts() -> Iterator[Part]:
        for dataset in datasets:
            one, other = (table.filter(pc.equal(table.column("dataset"), dataset)) for table in (clean, private))
            yield dataset, one, other

    def to_learn() -> Iterator[tuple[Part, list[PaperAttacker] | None]]:
        for part in parts():
            nothing = isinstance(parts_of(part[1].column(TARGET_OF["utility"]).to_pylist()), LeftOut)
            yield part, None if nothing else load_attackers(part[0])  # a worker need not have this folder

    # The encoder and the language model stay here: they are large, and what they do takes less time.
    where = params.machine if clean.nbytes >= LARGE and len(datasets) > 1 else params.machine.alone()
    with closing(ordered_map(Learner(params), to_learn(), where)) as all_learnt:
        return {
            part[0]: of_part | read(*part, params, encoder_of, language_model)
            for part, of_part in zip(parts(), all_learnt, strict=True)
        }


@dataclass(frozen=True, slots=True)
class Learner:
    """``learnt`` of one data set, in whatever process it finds itself."""

    params: Params

    def __call__(self, item: tuple[Part, list[PaperAttacker] | None]) -> dict[str, Any]:
        """Measure what is learnt from its texts."""
        part, attackers = item
        return learnt(*part, self.params, attackers)


def learnt(
    dataset: str, clean: pa.Table, private: pa.Table, params: Params, attackers: list[PaperAttacker] | None
) -> dict[str, Any]:
    """Utility, attack and membership inference: what is learnt from the texts of one data set.

    Args:
        attackers: on its members; None where they cannot be asked for, by ``parts_of``.
    """
    settings = params.evaluation
    make = CLASSIFIERS[settings.classifier].maker(settings)
    clean_texts, private_texts = CountedTexts.each(joined(*both(clean)), joined(*both(private)))
    labels = clean.column(TARGET_OF["utility"]).to_pylist()
    made: dict[str, Any] = {}
    for name, measure, max_classes in (("utility", utility, None), ("attack", attack, settings.max_classes)):
        target = TARGET_OF[name]
        splits, classes = (clean.column(column).to_pylist() for column in ("split", target))
        problem = problem_of(target, splits, classes, max_classes)
        if isinstance(problem, LeftOut):
            made[name] = {"left_out": problem.reason}
            continue
        rngs = [stream(params.seed, STAGE, dataset, target, str(number)) for number in range(settings.shuffles)]
        shuffles = shuffles_of(problem, rngs, settings.train_share)
        made[name] = entry(problem, shuffles, measure(clean_texts, private_texts, problem, shuffles, make))
    parts = parts_of(labels)
    if isinstance(parts, LeftOut):
        return made | {"membership": {"left_out": parts.reason}}
    rngs = [stream(params.seed, STREAM, dataset, str(number)) for number in range(settings.shuffles)]
    assert attackers is not None
    results = attacked(clean_texts.counts, private_texts.counts, parts, rngs, attackers)
    return made | {"membership": membership_entry(results, parts.n_classes)}


def read(
    dataset: str,
    clean: pa.Table,
    private: pa.Table,
    params: Params,
    encoder_of: Callable[[Sequence[str]], Encoder],
    language_model: LanguageModel,
) -> dict[str, Any]:
    """Similarity and perplexity: of some texts of one data set, the same in all runs."""
    n_texts = [1 + (second is not None) for second in both(clean)[1]]
    rows = drawn(n_texts, params.evaluation.max_texts, stream(params.seed, STAGE, dataset, "texts"))
    original, rewritten = texts_of(*both(clean), rows), texts_of(*both(private), rows)
    return {
        "similarity": similarity_entry(similarity(encoder_of(original), original, rewritten)),
        "perplexity": perplexity_entry(language_model.score(rewritten)),
    }


def run(mechanism: str, strategy: str, epsilon: float, params: Params, out: Path) -> dict[str, Any]:
    """Write the scores of one run to ``out`` and return them.

    Raises:
        MissingArtifact: if the run, the clean baseline or one of the models was not made.
        RequestError: if the two are not of the same documents.
    """
    private = read_run(mechanism, strategy, epsilon)
    clean = private if mechanism == "none" else read_run(*CLEAN)
    settings = params.evaluation
    encoder_of, language_model = load_encoder(settings), load_reader(settings)
    record = {
        "mechanism": mechanism,
        "strategy": strategy,
        "epsilon": epsilon,
        "classifier": settings.classifier,
        "encoder": settings.encoder,
        "language_model": settings.language_model,
        "shuffles": settings.shuffles,
        "datasets": evaluate(clean, private, params, encoder_of, language_model),
    }
    write_json(record, out)
    return record


def main() -> None:
    """Run the stage for the mechanism, strategy and base epsilon named on the command line."""
    usage = f"usage: python -m tasks.{STAGE} MECHANISM STRATEGY EPSILON, or none none 0.0"
    if len(sys.argv) != 4:
        raise RequestError(usage)
    mechanism, strategy = sys.argv[1:3]
    try:
        epsilon = float(sys.argv[3])
    except ValueError:
        raise RequestError(usage) from None
    made = run(mechanism, strategy, epsilon, load_params(), paths.evaluation(mechanism, strategy, epsilon))
    for dataset, one in made["datasets"].items():
        for name, result in one.items():
            print(f"{dataset}, {name}: {in_words(name, result)}")


def in_words(name: str, result: Mapping[str, Any]) -> str:
    """One line of what was measured."""
    if result["left_out"] is not None:
        return f"left out, {result['left_out']}"
    if name == "similarity":
        return f"mean cosine {result['mean']:.3f} of {result['n_compared']:,} texts"
    if name == "perplexity":
        return f"mean {result['mean']:,.1f} of {result['n_texts']:,} texts, {result['corpus']:,.1f} of all as one"
    if name == "membership":
        auc = result["auc"]["mean"]
        return f"AUC {auc:.3f} ± {result['standard_error']:.3f}, {result['n_in']:,} in and {result['n_out']:,} out"
    scores = ", ".join(f"{setting} {score['macro_f1']['mean']:.3f}" for setting, score in result["scores"].items())
    return f"macro F1 {scores}; majority {result['majority']['macro_f1']:.3f}"


if __name__ == "__main__":
    stage_main(main)
