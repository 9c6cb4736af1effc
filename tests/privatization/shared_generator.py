"""The mistake: a generator in the process that workers are forked from, so that all of them draw
the same."""

from lexveil.core.mechanisms.noise.streams import release_generator
from lexveil.release.engine import preload, worker  # noqa: F401

GENERATOR = release_generator()
worker.release_generator = lambda: GENERATOR
