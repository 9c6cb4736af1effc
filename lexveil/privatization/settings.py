"""A request to rewrite texts, checked and completed with the defaults of a project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lexveil.accounting.budgets import STRATEGIES, Policy
from lexveil.accounting.guarantee import Claim
from lexveil.config import Params
from lexveil.errors import RequestError
from lexveil.mechanisms.registry import MECHANISMS

SMALLEST_EPSILON = 1e-9  # with much less, noise is beyond what a number can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions:
    """What a caller asks for; None is the project's default.

    Attributes:
        epsilon: base epsilon per word; or ``document_budget``: of each document.
        mode: release, or experiment, which a seed implies.
        consistent: replace equal tokens of a document alike, on one payment.
        stopwords, punctuation, oov: what happens to tokens of the class.
    """

    mechanism: str
    strategy: str
    epsilon: float | None = None
    document_budget: float | None = None
    mode: str = "release"
    seed: int | None = None
    keep_layout: bool = False
    stopwords: str | None = None
    punctuation: str | None = None
    oov: str | None = None
    consistent: bool = False

    def check(self) -> None:
        """See that the request is one that can be served.

        Raises:
            RequestError: if it contradicts itself or is out of range.
        """
        mechanism, strategy = self.mechanism, self.strategy
        budgets = {"--epsilon": self.epsilon, "--document-budget": self.document_budget}
        n_budgets = sum(value is not None for value in budgets.values())
        if mechanism not in MECHANISMS and mechanism != "none":
            raise RequestError(
                f"--mechanism {mechanism}: there is no such mechanism; there are none, {', '.join(MECHANISMS)}"
            )
        if (mechanism == "none") != (strategy == "none"):
            raise RequestError(
                f"--mechanism {mechanism} --strategy {strategy}: give none for both to leave texts unchanged"
            )
        if mechanism == "none" and n_budgets:
            raise RequestError("--mechanism none spends nothing; leave --epsilon and --document-budget out")
        if mechanism != "none" and n_budgets != 1:
            raise RequestError(
                "give one of --epsilon (base epsilon per word) and --document-budget (budget of each text)"
            )
        if strategy != "none" and strategy not in STRATEGIES:
            raise RequestError(
                f"--strategy {strategy}: there is no such strategy; there are none, {', '.join(STRATEGIES)}"
            )
        if self.mode == "release" and self.seed is not None:
            raise RequestError("a seed makes an experiment; leave --mode release or --seed out")
        for name, value in budgets.items():
            if value is not None and not 0 < value < float("inf"):
                raise RequestError(f"{name} {value}: must be finite and greater than 0")
            if value is not None and value < SMALLEST_EPSILON:
                raise RequestError(
                    f"{name} {value}: must be at least {SMALLEST_EPSILON:g}, the unit in which the ledger counts"
                )


@dataclass(frozen=True, slots=True)
class Settings:
    """How texts are rewritten. The texts of a document share one budget.

    Attributes:
        epsilon: base epsilon per word; None if ``budget`` is given.
        budget: document budget B; None if ``epsilon`` is given.
        seed: None in release mode.
        consistent: replace equal tokens of a document alike, on one payment.
    """

    mechanism: str
    strategy: str
    epsilon: float | None
    budget: float | None
    seed: int | None
    policy: Policy
    keep_layout: bool
    consistent: bool = False

    @property
    def mode(self) -> Literal["none", "release", "experiment"]:
        """A run whose seed is known is an experiment: the noise can be replayed."""
        if self.mechanism == "none":
            return "none"
        return "release" if self.seed is None else "experiment"

    def claim(self, no_proof: str | None = None, n_columns: int = 1) -> Claim:
        """What the guarantee of such a run depends on."""
        return Claim(
            mechanism=self.mechanism,
            strategy=self.strategy,
            policy=self.policy,
            mode=self.mode,
            keep_layout=self.keep_layout,
            no_proof=no_proof,
            consistent=self.consistent,
            n_columns=n_columns,
            given_budget=self.epsilon is None,
        )


UNCHANGED = Settings("none", "none", None, None, None, Policy("keep", "keep", "keep"), keep_layout=True)


def make_settings(options: RewriteOptions, params: Params) -> Settings:
    """Check a request and complete it.

    Raises:
        RequestError: as ``RewriteOptions.check``.
    """
    options.check()
    if options.mechanism == "none":
        return UNCHANGED
    policy = Policy.of(
        options.strategy,
        options.stopwords or params.policy.stopwords,
        options.punctuation or params.policy.punctuation,
        options.oov or params.policy.oov,
    )
    return Settings(
        options.mechanism,
        options.strategy,
        options.epsilon,
        options.document_budget,
        None if options.mode == "release" else params.seed if options.seed is None else options.seed,
        policy,
        options.keep_layout,
        options.consistent,
    )
