"""Works out what epsilons mean beside the service, once for a machine: an answer has no time for it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.context import SpawnProcess

from lexveil.errors import LexveilError
from lexveil.privatization.engine.engine import Engine
from lexveil.privatization.settings import resolve_settings
from lexveil.request import Request
from lexveil.runtime.crash import hide_messages
from lexveil.service.terms import Terms
from lexveil.service.warm_model import WarmModel

OCTAVES = 5  # below the largest epsilon of a token: of texts up to about 2^4 times the average length
STEPS = 4  # of an octave: points of the curve
IDLE = 19  # of nice: whatever else runs goes first


def start(terms: Terms) -> SpawnProcess | None:
    """Start a process that works them out, if requests cannot choose their settings; None if they can."""
    if not terms.is_complete:
        return None
    process = multiprocessing.get_context("spawn").Process(target=compute, args=(terms,), daemon=True)
    process.start()
    return process


def compute(terms: Terms) -> None:
    """Work out what is missing, from the largest epsilon of a token downwards: short texts come first."""
    hide_messages()
    os.nice(IDLE)
    try:
        model = WarmModel.find(terms.model)
        engine = Engine(resolve_settings(Request.of(terms.fixed), model), model)
        budget = engine.budget()
        most = min(budget.cap, budget.total)
        for step in range(OCTAVES * STEPS + 1):
            engine.meaning(most * 2.0 ** (-step / STEPS), most)
            if engine.settings.protection is not None:  # every token gets the largest
                return
    except LexveilError as error:
        print(f"what epsilon means is not worked out: {error}", file=sys.stderr)
