"""Measured linkage for given settings: how often rewritten texts are linked to their sources, by
the figures that ship.
"""

from __future__ import annotations

from lexveil.accounting.linkage import LinkageFigures
from lexveil.artifacts.measured_levels import measured_linkage
from lexveil.artifacts.model import Model
from lexveil.privatization.settings import Settings, is_usual


def linkage_of(settings: Settings, model: Model) -> LinkageFigures:
    """Return the measured linkage of a level of protection; for any other epsilon, the linkage by
    structure alone.

    Figures hold for the model, policy and parameters they were measured with. The disclosed
    structure depends on strategy and policy only, so that figures by structure hold for every
    mechanism and epsilon.
    """
    if settings.sentences is not None:
        level = settings.protection
        if level is None or level.linkage is None:
            return LinkageFigures.of([], at_level=False)
        return LinkageFigures.of_sentences(level.linkage)
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
