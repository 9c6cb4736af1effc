"""Compare the share of words that each mechanism leaves unchanged at each ε.

    uv run python examples/compare_mechanisms.py --project . --epsilons 1 3 10 50

An ε is in units of a mechanism's own metric, so rows with different metrics cannot be compared at
the same number.
"""

from __future__ import annotations

import argparse

import pandas as pd

import lexveil

TEXTS = [
    "The fire near New South Wales was put out on Monday.",
    "The police said that the road to the airport will be closed.",
    "The prime minister has announced a new plan for the hospitals.",
    "The company has not paid its workers since September.",
    "The team won the second test in Melbourne by five wickets.",
    "The president said that the government will meet its allies.",
]
# the other mechanisms need word orders or refuse a small ε
DEFAULTS = ["madlib", "mahalanobis", "vickrey", "tem"]


def main() -> None:
    """Rewrite the same texts with each mechanism at each ε, seeded; print the share of unchanged
    tokens.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--project",
        default=".",
        help="folder of a project that `lexveil run` has run (default: this one)",
    )
    parser.add_argument(
        "--mechanisms", nargs="+", default=DEFAULTS, choices=list(lexveil.MECHANISMS), metavar="M"
    )
    parser.add_argument(
        "--epsilons", nargs="+", type=float, default=[1.0, 3.0, 10.0, 50.0], metavar="E"
    )
    parser.add_argument("--strategy", default="S3", choices=["S1", "S2", "S3", "S4"])
    options = parser.parse_args()

    model = lexveil.Model.load(options.project)  # read once
    rows = {}
    for mechanism in options.mechanisms:
        for epsilon in options.epsilons:
            done = lexveil.privatize(
                TEXTS,
                mechanism=mechanism,
                strategy=options.strategy,
                epsilon=epsilon,
                seed=7,
                project=model,
            )
            unchanged = done.operator.counts.share_unchanged
            metric = done.record.metric.partition(",")[0]
            rows.setdefault((mechanism, metric), {})[f"ε = {epsilon:g}"] = f"{unchanged:.0%}"
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["mechanism", "metric"])
    print(
        "share of perturbed tokens that stayed unchanged, strategy "
        f"{options.strategy}\n\n{table.to_string()}"
    )


if __name__ == "__main__":
    main()
