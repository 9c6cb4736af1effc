"""Pipeline stage that plans the privacy spending of every text, before any noise is drawn:
documents -> plans/MECHANISM/STRATEGY/EPSILON/plan.parquet.

The file planned.json beside a plan has the epsilon of the run: its base epsilon, or the epsilon
computed for its recovery level. A run whose level is out of reach has no plan; planned.json states
the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from lexveil.base import paths
from lexveil.base.levels import NoiseSetting, RecoveryTarget
from lexveil.base.runtime.run_events import SKIPPED_LINE
from lexveil.base.runtime.tables import atomic_directory, read_json, write_json, write_table
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.core.accounting.data_set_budgets import TokenCounts, divided, of_every_token
from lexveil.core.mechanisms.registry import MECHANISMS
from lexveil.core.mechanisms.variants import base_of
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.io.artifacts.levels import LevelCalibration, PlannedEpsilon, SkippedLevel
from lexveil.io.artifacts.lexicons import load_lexicon
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.text_rows import texts_of
from lexveil.io.config import Params, load_params
from lexveil.io.execution.stage import Progress, stage_main
from lexveil.readers.calibration import OutOfReachError
from lexveil.readers.counted_words import below_least
from lexveil.readers.meaning import recovery_at
from lexveil.readers.stored_curve import StoredCurve
from lexveil.release.engine.plan import count_tokens


def policy_of(strategy: str, params: Params) -> Policy:
    """Return the policy (which tokens are perturbed, kept or dropped) that params.yaml sets for a
    strategy.
    """
    return Policy.of(
        strategy, params.policy.stopwords, params.policy.punctuation, params.policy.oov
    )


def built_with(mechanism: str, params: Params) -> dict[str, JsonValue]:
    """Return the parameters of a run's mechanism, and those of rank_remap, a step that may follow
    the mechanism.

    A run depends on its plan, which contains these parameters, and on no other section of
    params.yaml. A change of one variant's parameters therefore makes no run of another variant
    stale.
    """
    sections = params.mechanisms.of_variant(mechanism)
    own: dict[str, JsonValue] = getattr(sections, base_of(mechanism)).model_dump(by_alias=True)
    return own | {"rank_remap": sections.rank_remap.model_dump(by_alias=True)}


def calibrate(
    mechanism: str, strategy: str, level: RecoveryTarget, params: Params
) -> LevelCalibration | SkippedLevel:
    """Compute the epsilon at which an adversary recovers the share of words that a recovery level
    allows; or return the reason why no epsilon reaches the level.

    The epsilon depends only on the model, its public counts, the mechanism, the policy and a public
    seed. No document is read, so a model has the same epsilon for all texts.

    Raises:
        MissingArtifactError: if the embedding or the word orders were not made.
        ParameterError: if a parameter does not suit the mechanism or the words.
        RequestError: if recovery cannot be computed for the mechanism.
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
    except OutOfReachError as error:
        return SkippedLevel(
            mechanism=mechanism,
            strategy=strategy,
            recovery=level.share,
            band=band,
            nearest=error.nearest,
            skipped=f"out of reach: {error}",
        )
    return LevelCalibration(
        mechanism=mechanism,
        strategy=strategy,
        parameters=built_with(mechanism, params),
        recovery=level.share,
        band=band,
        epsilon=solution.epsilon,
        achieved=recovery_at(curve.check(solution.epsilon)),
    )


def too_low(
    mechanism: str, strategy: str, level: RecoveryTarget, params: Params, least: Mapping[str, float]
) -> SkippedLevel | None:
    """Return the reason if no mechanism over all words of a strategy can reach a recovery level;
    None if the level may be reached.

    A mechanism may lack words of the strategy; its adversary then names another share of words.

    Args:
        least: the share of the words that an adversary names without any output, by frequency band.
    """
    band = params.grid.recovery_band
    if MECHANISMS[base_of(mechanism)].may_lack_words or level.share > least[band]:
        return None
    return SkippedLevel(
        mechanism=mechanism,
        strategy=strategy,
        recovery=level.share,
        band=band,
        nearest=least[band],
        skipped=below_least(least[band], band),
    )


def planned_run(
    mechanism: str,
    strategy: str,
    wanted: NoiseSetting,
    params: Params,
    limits: Mapping[str, Mapping[str, float]],
) -> PlannedEpsilon | SkippedLevel:
    """Return the epsilon of a run of the grid, or the reason why the run is skipped.

    Args:
        limits: the limits that stage bound_levels computed, by strategy.

    Raises:
        MissingArtifactError, ParameterError, RequestError: as in ``calibrate``.
    """
    if not wanted.is_level:
        parameters = built_with(mechanism, params)
        return PlannedEpsilon(
            mechanism=mechanism,
            strategy=strategy,
            epsilon=wanted.epsilon,
            parameters=parameters,
        )
    found = too_low(mechanism, strategy, wanted, params, limits[strategy])
    planned = found or calibrate(mechanism, strategy, wanted, params)
    if isinstance(planned, SkippedLevel):
        # stage bound_levels has logged the other skipped runs
        start = "" if found else SKIPPED_LINE
        print(f"{start}{planned.name}: {planned.skipped}")
    else:
        print(f"{mechanism} {strategy} {wanted}: epsilon {planned.epsilon:g} per token")
    return planned


def plan_of(
    named: pa.Table,
    counts: TokenCounts,
    planned: PlannedEpsilon,
    *,
    is_per_token: bool,
) -> pa.Table:
    """Compute the privacy budget plan of a run.

    Args:
        named: the ids of the texts, without their content.
        counts: the token counts of each text.
        planned: the epsilon of the run.
        is_per_token: whether every token gets the epsilon.
    """
    dataset = np.array(named.column("dataset").to_pylist())
    budgets = (
        of_every_token(counts, dataset, planned.epsilon)
        if is_per_token
        else divided(counts, dataset, planned.strategy, planned.epsilon)
    )
    own = counts._asdict()
    del own["n_word_parts"]
    plan = named
    for column, values in (own | budgets._asdict()).items():
        plan = plan.append_column(column, pa.array(values))
    return plan


def run(texts: pa.Table, params: Params, out: Path) -> None:
    """Write the budget plan and epsilon of every run of the grid into folder ``out``; for a skipped
    run, write the reason only.

    Raises:
        MissingArtifactError, ParameterError, RequestError: as in ``calibrate``.
    """
    grid = params.grid
    limits = read_json(paths.LIMITS, "bound_levels") if grid.levels else {}
    words = texts.column("text").to_pylist()
    named = texts.drop_columns(["text"])
    counts: dict[str, TokenCounts] = {}
    for name in grid.strategies:
        lexicon = load_lexicon(SEGMENTATION_OF[name], Path(), params.model.language)
        counts[name] = TokenCounts(*count_tokens(words, lexicon, policy_of(name, params)))
    progress = Progress("plan budgets", len(grid.runs()), "runs")
    with atomic_directory(out) as folder:
        for mechanism, strategy, wanted in grid.runs():
            own = folder / mechanism / strategy / str(wanted)
            planned = planned_run(mechanism, strategy, wanted, params, limits)
            write_json(planned.to_dict(), own / paths.PLANNED)
            if isinstance(planned, PlannedEpsilon):
                is_per_token = grid.is_per_token(wanted)
                plan = plan_of(named, counts[strategy], planned, is_per_token=is_per_token)
                write_table(plan, own / paths.PLAN)
            progress.advance(1)


def main() -> None:
    """Run this stage of the DVC pipeline: write the budget plans."""
    texts = texts_of(load_documents())
    run(texts, load_params(), paths.PLANS)
    print(f"planned {texts.num_rows:,} texts")


if __name__ == "__main__":
    stage_main(main, pandas=False)
