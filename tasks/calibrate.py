"""Find the epsilon of a run at a level of recovery: embedding, public counts -> plans/MECHANISM/STRATEGY/rLEVEL.json.

No document is read: the epsilon follows from the model, its public word frequencies, the mechanism, the policy and a
public seed, so that the same model has the same epsilon for whatever texts.
"""

from __future__ import annotations

from pathlib import Path

from lexveil import paths
from lexveil.accounting.budgets import STRATEGIES, Policy
from lexveil.artifacts.calibrations import LevelCalibration
from lexveil.artifacts.model import Model
from lexveil.artifacts.model_store import OWN
from lexveil.config import Params, load_params
from lexveil.errors import RequestError
from lexveil.levels import Level
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.recovery.meaning import recovery_at
from lexveil.recovery.stored_curve import StoredCurve
from lexveil.runtime.stage import named_level, stage_main
from lexveil.runtime.tables import write_json


def run(mechanism: str, strategy: str, level: Level, params: Params, out: Path) -> LevelCalibration:
    """Write the epsilon of a level to ``out`` and return it.

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
        found = curve.epsilon_for(level.share, band)
    except RequestError as error:
        raise RequestError(
            f"params.yaml: grid.recovery, {mechanism} {strategy}: {error}; or take {mechanism} out of grid.mechanisms"
        ) from None
    calibration = LevelCalibration(
        mechanism=mechanism,
        strategy=strategy,
        recovery=level.share,
        band=band,
        epsilon=found.epsilon,
        achieved=recovery_at(curve.check(found.epsilon)),
    )
    write_json(calibration.to_dict(), out)
    return calibration


def main() -> None:
    """Run the stage for the mechanism, strategy and level named on the command line."""
    usage = f"usage: python -m tasks.calibrate {'|'.join(MECHANISMS)} {'|'.join(STRATEGIES)} rLEVEL"
    mechanism, strategy, level = named_level(usage)
    if mechanism not in MECHANISMS or strategy not in STRATEGIES:
        raise RequestError(usage)
    found = run(mechanism, strategy, level, load_params(), paths.calibration(mechanism, strategy, level))
    print(f"recovery {level.share:g} of {found.band} words: epsilon {found.epsilon:g} of each token")


if __name__ == "__main__":
    stage_main(main, pandas=False)
