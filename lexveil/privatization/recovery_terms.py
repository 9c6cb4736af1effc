"""What a request says of recovery: the epsilon that it asks for by it, and the limit that a release keeps."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

from lexveil.accounting.budgets import DocumentBudget
from lexveil.accounting.expected_recovery import Meaning
from lexveil.artifacts.model import Model
from lexveil.errors import LexveilError, RequestError
from lexveil.privatization.engine.engine import Engine
from lexveil.privatization.settings import RewriteOptions, Settings, make_settings
from lexveil.recovery.calibration import given_back, recovered, unchanged
from lexveil.recovery.public_words import FEW
from lexveil.recovery.stored_curve import StoredCurve


def settled(options: RewriteOptions, model: Model) -> Settings:
    """Check a request and complete it; a recovery becomes a base epsilon, by public things alone.

    No text has been read by then. No token gets more than that epsilon unless the request says so: of a short text,
    too, a reader is to get back no more than was asked for.

    Raises:
        RequestError: as ``make_settings``, or if no epsilon gives the recovery.
    """
    settings = make_settings(options, model.params)
    if options.recovery is None:
        return settings
    require_even(settings, "--recovery")
    curve = StoredCurve(model, settings.mechanism, settings.strategy, settings.policy, told=_told)
    found = curve.epsilon_for(options.recovery, options.band)
    print(f"recovery {options.recovery:g} ({options.band}): base epsilon {found.epsilon:g}", file=sys.stderr)
    return replace(settings, epsilon=found.epsilon, max_token_epsilon=settings.max_token_epsilon or found.epsilon)


def require_little_recovery(settings: Settings, engine: Engine, budget: DocumentBudget) -> None:
    """Refuse to release what would give back more than ``release.max_recovery``.

    What counts is the largest epsilon that a token can get, and of the words of the limit's band the larger of what a
    reader is expected to name and of what is expected to come out as it is.

    Raises:
        RequestError: if so; it says which epsilon would pass.
    """
    terms = engine.model.params.release
    if settings.mode != "release" or terms.max_recovery is None:
        return
    require_even(settings, "params.yaml: release.max_recovery")
    largest, band = min(budget.cap, budget.total), terms.max_recovery_band
    if not largest:
        return
    curve = _curve_of_few(settings, engine)
    expected = curve.at(largest)
    if given_back(expected, band) <= terms.max_recovery:
        return
    passes = curve.epsilon_for(terms.max_recovery, band, given_back).epsilon
    of = "words" if band == "all" else f"{band} words"
    raise RequestError(
        f"nothing is released: at epsilon {largest:.4g}, the largest of a token, a best-informed reader is expected to "
        f"name {recovered(expected, band):.1%} of the {of}, and {unchanged(expected, band):.1%} to come out unchanged; "
        f"params.yaml: release.max_recovery allows {terms.max_recovery:.1%}. --epsilon {passes:g} --max-token-epsilon "
        f"{passes:g} passes"
    )


def meaning_of_run(settings: Settings, engine: Engine, least: float, most: float) -> Meaning | None:
    """What the epsilons of an output's tokens mean; None if no token got any, or the mechanism refuses one near them.

    Where classes of tokens have shares of the budget a reader knows the class, and nothing is worked out.

    Args:
        least, most: epsilon of a token.
    """
    if settings.shares is not None or not 0 < least <= most < math.inf:
        return None
    try:
        return _curve_of_few(settings, engine).meaning(least, most)
    except (LexveilError, OSError) as error:  # what is paid for is published, also where nothing can be said of it
        print(f"what epsilon means is not said: {error}", file=sys.stderr)
        return None


def _curve_of_few(settings: Settings, engine: Engine) -> StoredCurve:
    return StoredCurve(
        engine.model, settings.mechanism, settings.strategy, settings.policy, engine.prepared, _told, FEW
    )


def require_even(settings: Settings, what: str) -> None:
    """See that all tokens have the same share: where classes have their own a reader knows the class as well.

    Args:
        what: needs it, for the message.

    Raises:
        RequestError: if not.
    """
    if settings.shares is not None:
        raise RequestError(
            f"{what}: what a reader gets back is not worked out where classes of tokens have shares of the budget; "
            "leave --share and params.yaml: release.shares out, or name --epsilon or --document-budget and no limit"
        )


def _told(epsilon: float) -> None:
    print(f"expected recovery at epsilon {epsilon:.4g}", file=sys.stderr)
