"""Construction of the privacy record of any output: of a release, or of an experiment of the
pipeline.
"""

from __future__ import annotations

from typing import Any

from lexveil.base.runtime.hashes import version
from lexveil.core.accounting.measurements import unchanged
from lexveil.core.accounting.record import Counts, PrivacyRecord
from lexveil.release.engine.engine import Engine
from lexveil.release.settings import Settings


def record_of(
    settings: Settings, engine: Engine | None, counts: Counts, **facts: Any
) -> PrivacyRecord:
    """Return the privacy record of an output, which may come from a release, from an experiment of
    the pipeline, or from an unchanged copy.

    Args:
        engine: the rewriting engine; None for a copy, whose texts stay unchanged.
        facts: the fields of the record that only some outputs have.
    """
    made: dict[str, Any] = {"guarantee": unchanged()}
    if engine is not None:
        made = {
            "parameters": engine.prepared.parameters,
            "no_proof": engine.prepared.mechanism.no_guarantee,
            **engine.described(),
        }
    described = settings.described()
    return PrivacyRecord.of(**described, lexveil=version(), counts=counts, **(made | facts))
