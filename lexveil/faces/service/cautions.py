"""Warnings that the service prints at its start if its settings protect little. `lexveil inspect`
prints the same warnings about a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from lexveil.core.accounting.budgets import STRATEGIES
from lexveil.core.accounting.expected_recovery import Meaning
from lexveil.core.accounting.statement import MUCH_UNCHANGED
from lexveil.core.mechanisms.registry import MECHANISMS
from lexveil.core.protection import LEVELS
from lexveil.faces.service.page.form import SAMPLES
from lexveil.faces.service.terms import Terms
from lexveil.io.artifacts.model import Model
from lexveil.io.request import Request
from lexveil.readers.bands import BANDS_OF, CONTENT
from lexveil.release.engine.engine import Engine
from lexveil.release.looking.inspect import inspect_texts
from lexveil.release.settings import beyond_light, document_budget, resolve_settings, settings_of


def caution_of_terms(terms: Terms, model: Model) -> str | None:
    """Return the warning that follows from the service's fixed settings and from figures packaged
    with the model, before anything is loaded. The result is None if there is nothing to warn of, or
    if the warning is computed later.
    """
    if terms.is_complete:
        if terms.fixed.keys() & {"protection", "recovery"}:  # not more than the requested value
            return None
        settings = resolve_settings(Request.of(terms.fixed), model)
        budget = document_budget(settings, model)
        return beyond_light(settings, model, min(budget.cap, budget.total))
    most = terms.fixed.get("max_token_epsilon")
    if not isinstance(most, float):
        return None
    beyond = [name for name in _choices(terms) if _is_beyond(name, most, terms, model)]
    if not beyond:
        return None
    named = ", ".join(" ".join(name) for name in beyond)
    return (
        f"CAUTION: requests may choose epsilon {most:g} for a token, by which an adversary "
        f"names more words than at the level light with {named}; fix a level of protection, "
        "or a smaller epsilon"
    )


def _choices(terms: Terms) -> Iterator[tuple[str, str]]:
    """Yield each pair of mechanism and strategy that requests can choose."""
    mechanism = terms.fixed.get("mechanism")
    strategy = terms.fixed.get("strategy")
    return product(
        [str(mechanism)] if mechanism else MECHANISMS, [str(strategy)] if strategy else STRATEGIES
    )


def _is_beyond(name: tuple[str, str], most: float, terms: Terms, model: Model) -> bool:
    mechanism, strategy = name
    asked = {**terms.fixed, "mechanism": mechanism, "strategy": strategy, "epsilon": most}
    return beyond_light(settings_of(Request.of(asked), model.project), model, most) is not None


def cautions_of_public_texts(engine: Engine) -> list[str]:
    """Return the warnings that `lexveil inspect` would print about a few public texts, by the share
    of words that stay unchanged. The rewritten texts are discarded.
    """
    tried = inspect_texts(list(SAMPLES.values()), engine).tried
    cautions = list[str]()
    if tried.share_changed is not None and 1 - tried.share_changed > MUCH_UNCHANGED:
        cautions.append(
            "CAUTION: hardly a word of public texts changes, because epsilon is "
            "too large; choose a level of protection, or a smaller epsilon"
        )
    if tried.documents is not None and (caution := tried.documents.caution("public text")):
        cautions.append(caution)
    return cautions


def caution_of_meaning(meaning: Meaning | None) -> str | None:
    """Return a warning if an adversary is expected to guess more words than at the weakest
    protection level, light. The result is None if this is not the case, or if the expected share
    has not been computed.
    """
    if meaning is None:
        return None
    bands = meaning.at[-1].bands
    content = [band for name, band in bands.items() if name in BANDS_OF[CONTENT]]
    words = sum(band.share_of_words for band in content)
    named = sum(band.share_of_words * band.recovered for band in content) / (words or 1.0)
    light = LEVELS["light"].content
    if named <= light:
        return None
    return (
        f"CAUTION: an adversary is expected to name {100 * named:.0f} of 100 content words, "
        f"more than the {100 * light:.0f} of the level light; choose a level of protection, "
        "or a smaller epsilon"
    )
