"""Plan what every text may spend, before any noise is drawn: documents -> plans/MECHANISM/STRATEGY/EPSILON.parquet.

The file EPSILON.json beside a plan has the epsilon of the run: its base epsilon, or the one found for its level.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil import paths
from lexveil.accounting.budgets import SEGMENTATION_OF, Policy, document_budget, epsilon_per_token
from lexveil.artifacts.calibrations import LevelCalibration, PlannedEpsilon
from lexveil.artifacts.document_sets import load_documents
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.model import Model
from lexveil.artifacts.model_store import OWN
from lexveil.artifacts.text_rows import texts_of
from lexveil.config import Params, load_params
from lexveil.errors import RequestError
from lexveil.levels import Level
from lexveil.privatization.engine.plan import count_tokens
from lexveil.recovery.meaning import recovery_at
from lexveil.recovery.stored_curve import StoredCurve
from lexveil.runtime.stage import Progress, stage_main
from lexveil.runtime.tables import atomic_directory, write_json, write_table
from lexveil.types import Floats, Ids


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """What the budgets of n texts follow from, (n,) each.

    Attributes:
        n_perturbed_words: words of the tokens that are perturbed.
    """

    n_words: Ids
    n_tokens: Ids
    n_perturbed: Ids
    n_perturbed_words: Ids

    @classmethod
    def of(cls, texts: pa.Table, strategy: str, params: Params) -> TokenCounts:
        """Cut the texts as a strategy does, and count."""
        policy = params.policy
        resolved = Policy.of(strategy, policy.stopwords, policy.punctuation, policy.oov)
        lexicon = load_lexicon(SEGMENTATION_OF[strategy], Path(), params.model.language)
        return cls(*count_tokens(texts.column("text").to_pylist(), lexicon, resolved))

    def table(self, texts: pa.Table, budget: Floats, per_token: Floats) -> pa.Table:
        """The plan of the texts."""
        table = texts.drop_columns(["text"])
        for name, values in {
            "n_words": self.n_words,
            "n_tokens": self.n_tokens,
            "n_perturbed": self.n_perturbed,
            "budget": budget,
            "epsilon_per_token": per_token,
        }.items():
            table = table.append_column(name, pa.array(values))
        return table


def spread(counts: TokenCounts, dataset: npt.NDArray[np.str_], strategy: str, epsilon: float) -> tuple[Floats, Floats]:
    """Budgets (n,) and epsilons of a token (n,) of n texts: one budget for each data set.

    At a level every perturbed token gets its epsilon, however long its text is: a budget that is the same for all texts
    would be spread over more tokens in long ones, and of those an adversary would name less than the level says. The
    budget of a data set is there what its longest text spends.

    Args:
        epsilon: base epsilon, or a level with the epsilon that was found for it.
    """
    budget, per_token = np.zeros(len(dataset)), np.zeros(len(dataset))
    for name in np.unique(dataset):
        of_dataset = dataset == name
        n_perturbed, n_words = counts.n_perturbed[of_dataset], counts.n_perturbed_words[of_dataset]
        if isinstance(epsilon, Level):
            assert epsilon.epsilon is not None
            budget[of_dataset] = epsilon.epsilon * n_perturbed.max(initial=0)
            per_token[of_dataset] = np.where(n_perturbed > 0, epsilon.epsilon, 0.0)
        else:
            budget[of_dataset] = document_budget(epsilon, counts.n_words[of_dataset])
            per_token[of_dataset] = epsilon_per_token(
                strategy, budget[of_dataset].max(initial=0.0), n_perturbed, n_words
            )
    return budget, per_token


def calibrate(mechanism: str, strategy: str, level: Level, params: Params) -> LevelCalibration:
    """Find the epsilon of a level: from the model, its public word frequencies, mechanism, policy and a public seed.

    No document is read, so the same model has the same epsilon for whatever texts.

    Raises:
        MissingArtifact: if the embedding or the word orders were not made.
        ParameterError: if a parameter does not suit the mechanism or the words.
        RequestError: if no epsilon gives the level.
    """
    chosen, band = params.policy, params.grid.recovery_band
    policy = Policy.of(strategy, chosen.stopwords, chosen.punctuation, chosen.oov)
    curve = StoredCurve(
        Model.load(Path(), OWN), mechanism, strategy, policy, told=lambda epsilon: print(f"epsilon {epsilon:.4g}")
    )
    try:
        solution = curve.epsilon_for(level.share, band)
    except RequestError as error:
        raise RequestError(
            f"params.yaml: grid.epsilons, {level}, {mechanism} {strategy}: {error}; or take {mechanism} out of "
            "grid.mechanisms"
        ) from None
    return LevelCalibration(
        mechanism=mechanism,
        strategy=strategy,
        recovery=level.share,
        band=band,
        epsilon=solution.epsilon,
        achieved=recovery_at(curve.check(solution.epsilon)),
    )


def run(texts: pa.Table, params: Params, out: Path) -> int:
    """Write plan and epsilon of every run of the grid into folder ``out``, and return how many there are.

    Raises:
        MissingArtifact, ParameterError, RequestError: as ``calibrate``.
    """
    dataset = np.array(texts.column("dataset").to_pylist())
    counts: dict[str, TokenCounts] = {
        strategy: TokenCounts.of(texts, strategy, params) for strategy in params.grid.strategies
    }
    progress = Progress("plan budgets", len(params.grid.runs()), "runs")
    with atomic_directory(out) as folder:
        for mechanism, strategy, wanted in params.grid.runs():
            planned, epsilon = PlannedEpsilon(mechanism=mechanism, strategy=strategy, epsilon=wanted), wanted
            if isinstance(wanted, Level):
                planned = calibrate(mechanism, strategy, wanted, params)
                epsilon = Level(wanted.share, planned.epsilon)
                print(f"{mechanism} {strategy} {wanted}: epsilon {planned.epsilon:g} of each token")
            plans = folder / mechanism / strategy
            plans.mkdir(parents=True, exist_ok=True)
            table = counts[strategy].table(texts, *spread(counts[strategy], dataset, strategy, epsilon))
            write_table(table, plans / f"{epsilon}.parquet")
            write_json(planned.to_dict(), plans / f"{epsilon}.json")
            progress.advance(1)
    return len(params.grid.runs())


def main() -> None:
    """Run the stage."""
    texts = texts_of(load_documents())
    n_runs = run(texts, load_params(), paths.ARTIFACTS / "plans")
    print(f"planned {texts.num_rows:,} texts for {n_runs} runs")


if __name__ == "__main__":
    stage_main(main, pandas=False)
