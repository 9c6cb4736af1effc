"""Plan the spending of every text, before any noise is drawn: documents ->
plans/MECHANISM/STRATEGY/EPSILON.parquet.

The file EPSILON.json beside a plan has the epsilon of the run: its base epsilon, or the epsilon
computed for its level.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from lexveil import paths
from lexveil.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.accounting.data_set_budgets import TokenCounts, divided, of_every_token
from lexveil.artifacts.calibrations import LevelCalibration, PlannedEpsilon
from lexveil.artifacts.document_sets import load_documents
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.model import Model
from lexveil.artifacts.model_store import OWN
from lexveil.artifacts.text_rows import texts_of
from lexveil.config import Params, load_params
from lexveil.errors import RequestError
from lexveil.levels import Level
from lexveil.mechanisms.variants import base_of
from lexveil.privatization.engine.plan import count_tokens
from lexveil.recovery.meaning import recovery_at
from lexveil.recovery.stored_curve import StoredCurve
from lexveil.runtime.stage import Progress, stage_main
from lexveil.runtime.tables import atomic_directory, write_json, write_table


def policy_of(strategy: str, params: Params) -> Policy:
    """Return the policy of params.yaml for a strategy."""
    return Policy.of(
        strategy, params.policy.stopwords, params.policy.punctuation, params.policy.oov
    )


def built_with(mechanism: str, params: Params) -> dict[str, JsonValue]:
    """Return the parameters of a run's mechanism, and those of rank_remap, which may follow it.

    Runs depend on their plan and on no other section of params.yaml, so that a change of one
    variant's parameters makes no run of another variant stale.
    """
    sections = params.mechanisms.of_variant(mechanism)
    own: dict[str, JsonValue] = getattr(sections, base_of(mechanism)).model_dump(by_alias=True)
    return own | {"rank_remap": sections.rank_remap.model_dump(by_alias=True)}


def calibrate(mechanism: str, strategy: str, level: Level, params: Params) -> LevelCalibration:
    """Compute the epsilon of a level from the model, its public counts, the mechanism, the policy
    and a public seed.

    No document is read, so a model has the same epsilon for all texts.

    Raises:
        MissingArtifactError: if the embedding or the word orders were not made.
        ParameterError: if a parameter does not suit the mechanism or the words.
        RequestError: if no epsilon gives the level.
    """
    band = params.grid.recovery_band
    policy = policy_of(strategy, params)
    curve = StoredCurve(
        Model.load(Path(), OWN).of_variant(mechanism),
        base_of(mechanism),
        strategy,
        policy,
        told=lambda epsilon: print(f"epsilon {epsilon:.4g}"),
    )
    try:
        solution = curve.epsilon_for(level.share, band)
    except RequestError as error:
        raise RequestError(
            f"params.yaml: grid.epsilons, {level}, {mechanism} {strategy}: {error}; or take "
            f"{mechanism} out of "
            "grid.mechanisms"
        ) from None
    return LevelCalibration(
        mechanism=mechanism,
        strategy=strategy,
        parameters=built_with(mechanism, params),
        recovery=level.share,
        band=band,
        epsilon=solution.epsilon,
        achieved=recovery_at(curve.check(solution.epsilon)),
    )


def run(texts: pa.Table, params: Params, out: Path) -> None:
    """Write plan and epsilon of every run of the grid into folder ``out``.

    Raises:
        MissingArtifactError, ParameterError, RequestError: see ``calibrate``.
    """
    dataset = np.array(texts.column("dataset").to_pylist())
    is_per_token = params.grid.is_per_token
    words = texts.column("text").to_pylist()
    named = texts.drop_columns(["text"])
    counts: dict[str, TokenCounts] = {}
    for name in params.grid.strategies:
        lexicon = load_lexicon(SEGMENTATION_OF[name], Path(), params.model.language)
        counts[name] = TokenCounts(*count_tokens(words, lexicon, policy_of(name, params)))
    progress = Progress("plan budgets", len(params.grid.runs()), "runs")
    with atomic_directory(out) as folder:
        for mechanism, strategy, wanted in params.grid.runs():
            parameters = built_with(mechanism, params)
            planned = PlannedEpsilon(
                mechanism=mechanism, strategy=strategy, epsilon=wanted, parameters=parameters
            )
            epsilon = wanted
            if isinstance(wanted, Level):
                planned = calibrate(mechanism, strategy, wanted, params)
                epsilon = Level(wanted.share, planned.epsilon)
                print(f"{mechanism} {strategy} {wanted}: epsilon {planned.epsilon:g} of each token")
            if is_per_token(wanted):
                budgets = of_every_token(counts[strategy], dataset, planned.epsilon)
            else:
                budgets = divided(counts[strategy], dataset, strategy, wanted)
            plan = named
            own = counts[strategy]._asdict()
            del own["n_word_parts"]
            for column, values in (own | budgets._asdict()).items():
                plan = plan.append_column(column, pa.array(values))
            file = folder / mechanism / strategy / f"{epsilon}.parquet"
            write_table(plan, file)
            write_json(planned.to_dict(), file.with_suffix(".json"))
            progress.advance(1)


def main() -> None:
    """Run the stage."""
    texts = texts_of(load_documents())
    run(texts, load_params(), paths.ARTIFACTS / "plans")
    print(f"planned {texts.num_rows:,} texts")


if __name__ == "__main__":
    stage_main(main, pandas=False)
