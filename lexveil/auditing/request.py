"""What an audit is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lexveil.accounting.budgets import STRATEGIES
from lexveil.errors import RequestError, option
from lexveil.mechanisms.registry import MECHANISMS

MODES = ("experiment", "release")
CONFIDENCE = 0.999  # of a whole audit: a mechanism that keeps its claim is flagged once in a thousand audits


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What to audit, and how thoroughly.

    Attributes:
        epsilon: the claim: per token; in releases the base ε. A second ε, at which the claim has most power, is chosen.
        words: seeded words of the strategy's embedding whose law is compared pair by pair; all if there are fewer.
        samples: draws of a word of a toy; a release has a tenth as many of each document.
        mode: where the noise comes from: the operating system, as in a release, or the seed of params.yaml.
        confidence: of the whole audit; a mechanism that keeps its claim is flagged with at most 1 - confidence.
        workers: processes of the releases that are audited with more than one.
    """

    mechanism: str
    epsilon: float
    words: int = 300
    samples: int = 20_000
    strategy: str = "S1"
    mode: str = "release"
    confidence: float = CONFIDENCE
    workers: int = 2

    def check(self, out: Path | None) -> None:
        """See that the request is one that can be served.

        Raises:
            RequestError: if it is not.
        """
        mechanism, strategy, mode, epsilon = self.mechanism, self.strategy, self.mode, self.epsilon
        if mechanism not in MECHANISMS:
            raise RequestError(
                f"{option('mechanism')} {mechanism}: there is no such mechanism; there are {', '.join(MECHANISMS)}"
            )
        if strategy not in STRATEGIES:
            raise RequestError(f"{option('strategy')} {strategy}: must be one of {', '.join(STRATEGIES)}")
        if mode not in MODES:
            raise RequestError(f"{option('mode')} {mode}: must be one of {', '.join(MODES)}")
        if out is not None and not out.parent.is_dir():
            raise RequestError(f"{option('out')} {out}: there is no such folder")
        if not 0 < epsilon < float("inf"):
            raise RequestError(f"{option('epsilon')} {epsilon}: must be finite and greater than 0")
        if self.words < 2:
            raise RequestError(f"{option('words')} {self.words}: two words are the fewest that can be told apart")
        if self.samples < 200:
            raise RequestError(f"{option('samples')} {self.samples}: fewer than 200 show nothing")
        if not 0 < self.confidence < 1:
            raise RequestError(f"{option('confidence')} {self.confidence}: must lie between 0 and 1")
        if self.workers < 1:
            raise RequestError(f"{option('workers')} {self.workers}: must be at least 1")
