"""A request to rewrite texts, checked and completed with the defaults of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Literal

from lexveil.accounting.budgets import STRATEGIES, Policy
from lexveil.accounting.measurements import BudgetSource
from lexveil.accounting.record import Configuration
from lexveil.accounting.shares import CLASSES, WHOLE, Shares, parts_of
from lexveil.artifacts.word_list import load_words
from lexveil.config import Params
from lexveil.detectors.detection import Detection
from lexveil.errors import RequestError
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.privatization.detection_terms import detection_of, detection_record
from lexveil.recovery.bands import ALL, BANDS_OF
from lexveil.runtime.hashes import sha256

CHOICES: dict[str, tuple[str | None, ...]] = {
    "mode": ("release", "experiment"),
    "stopwords": (None, "paper", "perturb", "keep", "drop", "sample"),
    "punctuation": (None, "perturb", "keep", "drop", "sample"),
    "oov": (None, "keep", "drop", "sample"),
    "band": tuple(BANDS_OF),
    "detector": (None, "none", "presidio"),
}
LARGEST = 2**53  # of whole numbers: all up to it are numbers of the engine
SMALLEST_EPSILON = 1e-9  # with much less, noise is beyond what a number can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions:
    """What a caller asks for; None is the project's default.

    Attributes:
        epsilon: base epsilon per word; or ``document_budget``: of each document; or ``recovery``.
        recovery: the share of perturbed words, of a frequency ``band`` or of all, that a best-informed reader is
            expected to name: it becomes a base epsilon, and the largest epsilon of a token, by public
            word frequencies alone.
        average_words: words of a document by which a base epsilon becomes its budget; ``data`` is the data set's own
            average, which is private, so only for experiments.
        max_token_epsilon: largest epsilon of a token; ``none`` is no limit, only for experiments.
        mode: release, or experiment, which a seed implies.
        consistent: replace equal tokens of a document alike, on one payment.
        without_guarantee: release also what no guarantee can be given of; the output is named so.
        stopwords, punctuation, oov: what happens to tokens of the class.
        shares: what a token of a class gets of the budget, where another token gets 1: of stopwords, numbers, listed.
        share_list: FILE@HASH, the public list of the class listed, a word a line.
        detector, protect, allow, types, pseudonyms: what is looked for in texts, and what happens to it; None as in
            params.yaml: policy. Of types, those not named are as there.
        spans_column: spans come with the texts, in this column.
    """

    mechanism: str
    strategy: str
    epsilon: float | None = None
    document_budget: float | None = None
    recovery: float | None = None
    band: str = ALL
    average_words: float | Literal["data"] | None = None
    max_token_epsilon: float | Literal["none"] | None = None
    mode: str = "release"
    seed: int | None = None
    keep_layout: bool = False
    stopwords: str | None = None
    punctuation: str | None = None
    oov: str | None = None
    consistent: bool = False
    without_guarantee: bool = False
    shares: Mapping[str, float] | None = None
    share_list: str | None = None
    detector: str | None = None
    protect: str | None = None
    allow: str | None = None
    types: Mapping[str, str] | None = None
    pseudonyms: str | None = None
    spans_column: str | None = None

    def check(self) -> None:
        """See that the request is one that can be served.

        Raises:
            RequestError: if it contradicts itself or is out of range.
        """
        self._check_values()
        mechanism, strategy = self.mechanism, self.strategy
        budgets = {"--epsilon": self.epsilon, "--document-budget": self.document_budget}
        n_budgets = sum(value is not None for value in (*budgets.values(), self.recovery))
        if mechanism not in MECHANISMS and mechanism != "none":
            raise RequestError(
                f"--mechanism {mechanism}: there is no such mechanism; there are none, {', '.join(MECHANISMS)}"
            )
        if (mechanism == "none") != (strategy == "none"):
            raise RequestError(
                f"--mechanism {mechanism} --strategy {strategy}: give none for both to leave texts unchanged"
            )
        if mechanism == "none" and n_budgets:
            raise RequestError("--mechanism none spends nothing; leave --epsilon, --document-budget and --recovery out")
        if mechanism != "none" and n_budgets != 1:
            raise RequestError(
                "give one of --epsilon (base epsilon per word), --document-budget (budget of each text) and --recovery "
                "(share of words that a reader is to name)"
            )
        if self.recovery is not None and not 0 < self.recovery < 1:
            raise RequestError(f"--recovery {self.recovery:g}: must lie between 0 and 1, both excluded")
        if strategy != "none" and strategy not in STRATEGIES:
            raise RequestError(
                f"--strategy {strategy}: there is no such strategy; there are none, {', '.join(STRATEGIES)}"
            )
        if self.mode == "release" and self.seed is not None:
            raise RequestError("a seed makes an experiment; leave --mode release or --seed out")
        self._check_limits()
        for name, value in {**budgets, "--max-token-epsilon": self.max_token_epsilon}.items():
            if isinstance(value, str):
                continue
            if value is not None and not 0 < value < float("inf"):
                raise RequestError(f"{name} {value}: must be finite and greater than 0")
            if value is not None and value < SMALLEST_EPSILON:
                raise RequestError(
                    f"{name} {value}: must be at least {SMALLEST_EPSILON:g}, the unit in which the ledger counts"
                )

    def _check_limits(self) -> None:
        average, cap = self.average_words, self.max_token_epsilon
        if average not in (None, "data") and not (isinstance(average, int | float) and 0 < average < float("inf")):
            raise RequestError(f"--average-words {average}: must be data, or finite and greater than 0")
        if isinstance(cap, str) and cap != "none":
            raise RequestError(f"--max-token-epsilon {cap}: must be none, or finite and greater than 0")
        if self.mode != "release":
            return
        if average == "data":
            raise RequestError(
                "--average-words data: the data set's own average follows from private texts, and every epsilon from "
                "it; give a public number of words, leave it out for that of the corpus, or add --mode experiment"
            )
        if cap == "none":
            raise RequestError(
                "--max-token-epsilon none: without a limit short texts get so large an epsilon that they come out as "
                "they are; give a number, leave it out for twice the base epsilon, or add --mode experiment"
            )

    def _check_values(self) -> None:
        """See that values are of their kinds; what a command line gives has been seen to."""
        for name in ("mechanism", "strategy"):
            if not isinstance(getattr(self, name), str):
                raise RequestError(f"{name}: must be a name")
        words = {
            "epsilon": None,
            "document_budget": None,
            "recovery": None,
            "average_words": "data",
            "max_token_epsilon": "none",
        }
        for name, word in words.items():
            value = getattr(self, name)
            if value is not None and value != word and (isinstance(value, bool) or not isinstance(value, Real)):
                raise RequestError(f"{name}: must be a number")
            if isinstance(value, Integral) and int(value) > LARGEST:
                raise RequestError(f"{name}: must be at most 2^53")
        for name in ("keep_layout", "consistent", "without_guarantee"):
            if not isinstance(getattr(self, name), bool):
                raise RequestError(f"{name}: must be true or false")
        seed = self.seed
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed < 2**63):
            raise RequestError("seed: must be a whole number from 0 to 2^63 - 1")
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise RequestError(f"{name}: must be one of {', '.join(filter(None, choices))}")


@dataclass(frozen=True, slots=True)
class Settings:
    """How texts are rewritten. The texts of a document share one budget.

    Attributes:
        epsilon: base epsilon per word; None if ``budget`` is given, and until ``settled`` finds it for a recovery.
        budget: document budget B; None if ``epsilon`` is given.
        seed: None in release mode.
        consistent: replace equal tokens of a document alike, on one payment.
        average_words: as in ``RewriteOptions``; None is that of the corpus.
        max_token_epsilon: as in ``RewriteOptions``; None is twice the base epsilon.
        without_guarantee: as in ``RewriteOptions``.
        shares: classes of tokens that get another share of the budget than others; None if all get the same.
        detection: what is looked for in texts, and what happens to it; None if nothing is.
    """

    mechanism: str
    strategy: str
    epsilon: float | None
    budget: float | None
    seed: int | None
    policy: Policy
    keep_layout: bool
    consistent: bool = False
    average_words: float | Literal["data"] | None = None
    max_token_epsilon: float | Literal["none"] | None = None
    without_guarantee: bool = False
    shares: Shares | None = None
    detection: Detection | None = None

    @property
    def mode(self) -> Literal["none", "release", "experiment"]:
        """A run whose seed is known is an experiment: the noise can be replayed."""
        if self.mechanism == "none":
            return "none"
        return "release" if self.seed is None else "experiment"

    @property
    def budget_source(self) -> BudgetSource:
        """Where the number comes from that every epsilon follows from."""
        if self.average_words == "data":
            return "data"
        if self.epsilon is None:
            return "given"
        return "corpus" if self.average_words is None else "given words"

    def configuration(self, no_proof: str | None = None) -> Configuration:
        """What the record says of it."""
        return Configuration(
            self.mechanism,
            self.strategy,
            self.policy,
            self.mode,
            self.consistent,
            self.keep_layout,
            no_proof,
            self.shares,
            None if self.detection is None else detection_record(self.detection),
        )


UNCHANGED = Settings("none", "none", None, None, None, Policy("keep", "keep", "keep"), keep_layout=True)


def make_settings(options: RewriteOptions, params: Params) -> Settings:
    """Check a request and complete it.

    Raises:
        RequestError: as ``RewriteOptions.check``.
    """
    options.check()
    without_guarantee = options.without_guarantee or params.release.without_guarantee
    if options.mechanism == "none":
        if options.mode == "release" and not without_guarantee:
            raise RequestError(
                "--mechanism none leaves texts as they are, so no guarantee can be given; add --mode experiment, or "
                "--without-guarantee, which names the output so"
            )
        return replace(UNCHANGED, without_guarantee=without_guarantee and options.mode == "release")
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
        options.average_words or params.release.average_words,
        options.max_token_epsilon or params.release.max_token_epsilon,
        without_guarantee,
        _shares(options, params),
        detection_of(options, params.policy),
    )


def _shares(options: RewriteOptions, params: Params) -> Shares | None:
    """The classes of tokens with shares of their own; None if all have the same.

    Raises:
        RequestError: if a share is out of range, or there is no list of words for the share of listed ones.
    """
    terms = params.release.shares
    given = {name: getattr(terms, name) for name in CLASSES[1:]} | dict(options.shares or {})
    parts = {}
    for name, share in given.items():
        if name not in CLASSES[1:]:
            raise RequestError(f"--share {name}: there is no such class; there are {', '.join(CLASSES[1:])}")
        try:
            parts[name] = parts_of(share)
        except ValueError as error:
            raise RequestError(f"--share {name}={share}: {error}") from None
    named = options.share_list or terms.list
    if parts["listed"] != WHOLE and named is None:
        raise RequestError(
            "the share of listed words needs their list: --share-list, or params.yaml: release.shares.list"
        )
    words, digest = frozenset[str](), None
    if named is not None and parts["listed"] != WHOLE:
        key = "params.yaml: release.shares.list" if options.share_list is None else "--share-list"
        words, digest = load_words(named, key), sha256(Path(named.rpartition("@")[0]))
    made = Shares(**parts, words=words, list_sha256=digest)
    return made if made.differing else None
