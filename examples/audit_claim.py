"""Audit the privacy that a mechanism claims, and show the findings.

    uv run python examples/audit_claim.py --project . --mechanism tem --epsilon 3

The audit is exact if the distribution has a closed form; otherwise it computes lower confidence
bounds from samples. Exit code 1 means that the claim is violated.
"""

from __future__ import annotations

import argparse

import lexveil


def main() -> int:
    """Audit one mechanism; print each finding, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--project",
        default=".",
        help="folder of a project that `lexveil run` has run (default: this one)",
    )
    parser.add_argument("--mechanism", default="tem", choices=list(lexveil.MECHANISMS), metavar="M")
    parser.add_argument(
        "--epsilon", type=float, default=3.0, help="the claimed epsilon per token (default: 3)"
    )
    parser.add_argument("--words", type=int, default=20, help="words to test (default: 20)")
    parser.add_argument(
        "--samples", type=int, default=2000, help="draws per word or text (default: 2000)"
    )
    options = parser.parse_args()

    result = lexveil.audit(
        options.mechanism,
        options.epsilon,
        words=options.words,
        samples=options.samples,
        project=options.project,
    )
    print(f"{result.mechanism} claims {result.guarantee}, d the {result.metric}\n")
    print("\n".join(result.as_text()))
    return int(result.violation)


if __name__ == "__main__":
    raise SystemExit(main())
