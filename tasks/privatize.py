"""Pipeline stage that rewrites the documents by one mechanism, strategy and base epsilon ->
private/MECHANISM/STRATEGY/EPSILON/. A skipped run gets a file that states the reason, and no texts.
"""

from __future__ import annotations

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.runtime.tables import atomic_directory, write_json
from lexveil.core.accounting.budgets import STRATEGIES
from lexveil.core.mechanisms.registry import MECHANISMS
from lexveil.core.mechanisms.variants import base_of
from lexveil.io.artifacts.levels import SKIPPED, skipped_run
from lexveil.io.config import CLEAN
from lexveil.io.execution.stage import named_run, stage_main
from lexveil.io.request import SENTENCES
from lexveil.release.adapters.stage import privatize_documents
from lexveil.release.adapters.stage_sentences import privatize_as_sentences


def main() -> None:
    """Run this stage of the DVC pipeline for the mechanism, strategy and base epsilon named on the
    command line.
    """
    usage = (
        "usage: python -m tasks.privatize MECHANISM STRATEGY EPSILON, with rLEVEL for a level, "
        "or none none 0.0"
    )
    mechanism, strategy, noise = named_run(usage)
    known = base_of(mechanism) in MECHANISMS and strategy in (*STRATEGIES, SENTENCES)
    if not known and (mechanism, strategy, noise) != CLEAN:
        raise RequestError(usage)
    out = paths.private(mechanism, strategy, noise)
    if skipped := skipped_run(mechanism, strategy, noise):
        with atomic_directory(out) as folder:
            write_json(skipped.to_dict(), folder / SKIPPED)
        print(f"{skipped.name}: {skipped.skipped}")
        return
    if strategy == SENTENCES:
        counts = privatize_as_sentences(mechanism, noise, out)
    else:
        counts = privatize_documents(mechanism, strategy, noise, out)
    share = counts.share_unchanged
    print(
        f"rewrote {counts.n_documents:,} documents: {counts.n_perturbed:,} tokens perturbed"
        + ("" if share is None else f", {share:.1%} of them unchanged")
        + f"; {counts.unprotected_share:.1%} of all tokens unprotected"
    )


if __name__ == "__main__":
    stage_main(main, pandas=False)
