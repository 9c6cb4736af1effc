"""Look-up of the measured linkage of given settings: how often an adversary with a list of
candidates identified the source of a rewritten text, according to figures that are packaged with
the model.
"""

from __future__ import annotations

from lexveil.core.accounting.linkage import LinkageFigures
from lexveil.io.artifacts.default_bank import measured_of_written, open_wanted, takes_written_bank
from lexveil.io.artifacts.levels import PER_TEXT, measured_linkage
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import has_usual_tem
from lexveil.release.settings import Sentences, Settings, is_usual


def linkage_of(settings: Settings, model: Model) -> LinkageFigures:
    """Return the measured linkage (how often an adversary identified the sources of rewritten
    texts) at a protection level. For any other epsilon, return the linkage by the disclosed
    structure alone, such as the number of tokens.

    Figures hold only for the model, policy and parameters with which they were measured. The
    disclosed structure depends on strategy and policy only, so figures by structure hold for every
    mechanism and epsilon.
    """
    if settings.sentences is not None:
        return _of_sentences(settings, settings.sentences, model)
    if not is_usual(settings, model):
        return LinkageFigures.of([], at_level=False)
    assert model.sha256 is not None
    figures = [
        figure for figure in measured_linkage(model.sha256) if figure.strategy == settings.strategy
    ]
    if settings.protection is not None:
        name = settings.protection.level
        own = [
            figure
            for figure in figures
            if figure.mechanism == settings.mechanism and figure.level == name
        ]
        return LinkageFigures.of(own, at_level=True)
    first = [
        figure for figure in figures if figure[:3] == figures[0][:3]
    ]  # any mechanism and level
    return LinkageFigures.of(first, at_level=False)


def _of_sentences(settings: Settings, wanted: Sentences, model: Model) -> LinkageFigures:
    """Return the measured linkage of texts that were replaced by sentences of a sentence bank.

    It is the linkage at the protection level or, without a level, the linkage that was measured for
    this bank with the same number of sentences, epsilon and purposes.
    """
    level = settings.protection
    if level is not None:
        return LinkageFigures.of_sentences(level.linkage)
    is_measured = settings.mechanism == "tem" and has_usual_tem(model)
    if wanted.per_text is None or not is_measured:
        return LinkageFigures.of_sentences(None)
    epsilon = settings.base_epsilon
    if takes_written_bank(wanted.bank, model):
        for one in measured_of_written(model):
            if (one.per_text, one.epsilon) == (wanted.per_text, epsilon):
                return LinkageFigures.of_sentences(one.found, one.high)
        return LinkageFigures.of_sentences(None)
    if model.purposes or wanted.per_text != PER_TEXT:
        return LinkageFigures.of_sentences(None)
    levels = open_wanted(wanted.bank, model).card.levels
    found = [one.linkage for one in levels if one.epsilon == epsilon]
    return LinkageFigures.of_sentences(found[0] if found else None)
