"""Rewrite a column of a pandas frame whose rows belong to customers.

    uv run python examples/privatize_dataframe.py --project .

With ``--seed`` the run is an experiment, which is repeatable and not private. Without a seed the
run is a release: the noise comes from the operating system, and the ledger charges the budget to
each customer.
"""

from __future__ import annotations

import argparse

import pandas as pd

import lexveil

TICKETS = pd.DataFrame(
    {
        "customer": ["ana", "ana", "ben", "ben", "eve", "eve"],
        "body": [
            "The fire near New South Wales was put out on Monday.",
            "The police said that the road to the airport will be closed.",
            "The prime minister has announced a new plan for the hospitals.",
            "I was told that the flight from Sydney is two hours late.",
            "The company has not paid its workers since September.",
            None,
        ],
    }
)


def main() -> None:
    """Rewrite the tickets; print them next to their sources, and print the record's main
    figures.
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
        "--budget", type=float, default=40.0, help="budget of each ticket (default: 40)"
    )
    parser.add_argument("--seed", type=int, help="make an experiment instead of a release")
    options = parser.parse_args()

    done = lexveil.privatize(
        TICKETS["body"],
        subjects=TICKETS["customer"],
        mechanism="tem",
        strategy="S3",
        document_budget=options.budget,
        seed=options.seed,
        project=options.project,
    )
    result = TICKETS.assign(private=done.values)
    for row in result.dropna().itertuples():  # a missing text stays missing
        print(f"{row.customer}: {row.body}\n  -> {row.private}")

    record = done.record
    print(f"\nmode {record.mode}, guarantee {record.guarantee.formula}")
    print(f"{record.counts.n_perturbed} tokens perturbed")
    print("private to you, never to be published:")
    print(f"{done.operator.counts.share_unchanged:.0%} of them unchanged")
    tokens = done.token_log.to_pandas()
    print(
        tokens.groupby(["class", "action"], observed=True).agg(
            tokens=("row", "size"), epsilon=("epsilon", "sum")
        )
    )


if __name__ == "__main__":
    main()
