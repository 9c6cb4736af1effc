"""The statement that travels with each output: what was done, what is guaranteed, and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lexveil.accounting.budgets import Policy
from lexveil.mechanisms.registry import MECHANISMS

SCHEMA = 3

# From here on a statement warns: shares of all tokens, and of the perturbed ones.
MUCH_IN_CLEAR = 0.3
MUCH_UNCHANGED = 0.8


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What may be claimed of one output.

    Attributes:
        formula: the proven bound, or "none".
        statement: the same in words.
        because: why there is none, or under which conditions it holds.
    """

    formula: str
    statement: str
    because: list[str]


def guarantee(
    mechanism: str,
    strategy: str,
    policy: Policy,
    mode: str,
    keep_layout: bool,
    no_proof: str | None = None,
    consistent: bool = False,
    n_columns: int = 1,
    given_budget: bool = False,
) -> Guarantee:
    """State the guarantee of a run; "none" where the proof does not hold for what was actually run.

    Args:
        consistent: equal tokens of a document were replaced alike. Given where its tokens are equal, the first of
            each are perturbed independently and the others copied, which is post-processing; so the bound holds
            between documents whose tokens are equal at the same places. Between others none does: a copy never
            differs from what it was copied from, two draws do.
        n_columns: texts of a document, which share its budget.
        no_proof: why the mechanism as configured has no guarantee, ``Mechanism.no_guarantee``.
        given_budget: the document budget was given, and does not follow from the texts.
    """
    if mechanism == "none":
        return Guarantee("none", "The text is unchanged.", ["no mechanism was applied"])
    classes = {"stop words": policy.stopwords, "punctuation": policy.punctuation, "unknown words": policy.oov}
    kept = [name for name, action in classes.items() if action == "keep"]
    conditions = [
        "the number of tokens of each text, and which of them are perturbed, kept, dropped or sampled, is not hidden",
        *([f"what is kept ({', '.join(kept)}) leaves in clear and is the same in both texts"] if kept else []),
        "the document budget is public"
        + (": it tells nothing" if given_budget else ": it follows from the average length of the data set"),
        MECHANISMS[mechanism].exactness,
    ]
    if n_columns > 1:
        conditions.append(f"a text is the {n_columns} columns of a row; which column a token stands in is not hidden")
    if consistent:
        conditions.append(
            "both texts repeat their tokens at the same places: which tokens of a text are equal is not hidden, and "
            "nothing is claimed between texts that differ in it, also where only one token is another"
        )
    if strategy == "S2":
        conditions.append("both texts have the same number of words in their perturbed tokens")
    if keep_layout:
        conditions.append("layout is unprotected: white space and capitals are copied from the source")
    metric = MECHANISMS[mechanism].metric
    if no_proof is not None:
        because = [no_proof] if mode == "release" else [no_proof, f"mode is {mode}"]
        return Guarantee("none", "Not private in any proven sense.", because)
    if mode != "release":
        return Guarantee(
            "none",
            "Not private: the seed of the noise is known, so whoever has it can subtract the noise.",
            [f"mode is {mode}", *(f"in release mode: {condition}" for condition in conditions)],
        )
    repeats = ", repeated at the same places," if consistent else ","
    over = "the distinct perturbed tokens" if consistent else "perturbed tokens"
    tells = "but which of them are equal" if consistent else "of what stood there"
    return Guarantee(
        "Pr[M(D)=y] <= exp(Σ ε_i·d(w_i,w'_i))·Pr[M(D')=y]",
        f"Two texts with the same number of tokens{repeats} which differ only in tokens that are perturbed or sampled, "
        f"are indistinguishable up to exp(Σ ε_i·d(w_i,w'_i)), the sum over {over}, d the {metric}. "
        f"Sampled tokens are uniform draws and tell nothing {tells}.",
        conditions,
    )


def record(
    *,
    mechanism: str,
    strategy: str,
    segmentation: str | None,
    base_epsilon: float | None,
    policy: Policy,
    mode: str,
    keep_layout: bool,
    budgets: Mapping[str, float],
    counts: Mapping[str, Any],
    hashes: Mapping[str, str],
    version: str,
    parameters: Mapping[str, Any] | None = None,
    no_proof: str | None = None,
    consistent: bool = False,
    n_columns: int = 1,
) -> dict[str, Any]:
    """Build the privacy record. It never holds source words, nor a key or seed of the noise.

    Args:
        budgets: document budget B by data set, in 1 / units of the metric.
        counts: tokens by class and action, and the epsilon spent.
        hashes: sha256 of what the run was made with.
        parameters: of the mechanism.
        no_proof: why the mechanism as configured has no guarantee.
        consistent: whether equal tokens of a document were replaced alike.
        n_columns: texts of a document.
    """
    known = MECHANISMS.get(mechanism)
    return {
        "schema": SCHEMA,
        "lexveil": version,
        "mechanism": mechanism,
        "metric": known.metric if known else None,
        "parameters": dict(parameters or {}),
        "no_proof": no_proof,
        "strategy": strategy,
        "segmentation": segmentation,
        "base_epsilon": base_epsilon,
        "document_budget": dict(budgets),
        "policy": asdict(policy),
        "consistent": "document" if consistent else None,
        "layout": "copied, unprotected" if keep_layout else "ordinary English spacing, lower case",
        "mode": mode,
        "guarantee": asdict(
            guarantee(
                mechanism,
                strategy,
                policy,
                mode,
                keep_layout,
                no_proof,
                consistent,
                n_columns,
                given_budget=base_epsilon is None,
            )
        ),
        "counts": dict(counts),
        "made_with": dict(hashes),
    }


def statement(made: Mapping[str, Any]) -> list[str]:
    """A record as a few lines for people."""
    counts = made["counts"]
    lines = [f"mechanism {made['mechanism']}, strategy {made['strategy']}, mode {made['mode']}"]
    if "n_tokens_in" in counts:
        unchanged = (
            "" if counts["share_unchanged"] is None else f" ({counts['share_unchanged']:.1%} came out unchanged)"
        )
        budgets = ", ".join(f"{budget:.4g}" for budget in made["document_budget"].values())
        lines += [
            f"{counts['n_texts']:,} texts, {counts['n_tokens_in']:,} tokens: "
            f"{counts['n_perturbed']:,} perturbed{unchanged}, "
            f"{counts['n_sampled']:,} replaced by random words, {counts['n_dropped']:,} dropped, "
            f"{counts['n_kept']:,} left in clear",
            f"budget of each text: {budgets} (1 / {made['metric']})",
        ]
        lines += [f"CAUTION: {warning}" for warning in _cautions(counts)]
    guaranteed = made["guarantee"]
    lines += [f"guarantee: {guaranteed['formula']}", guaranteed["statement"]]
    return lines + [f"  - {reason}" for reason in guaranteed["because"]]


def _cautions(counts: Mapping[str, Any]) -> list[str]:
    """What a guarantee does not say and a person would want to know."""
    cautions = []
    clear = counts["n_kept"] / counts["n_tokens_in"] if counts["n_tokens_in"] else 0.0
    if clear > MUCH_IN_CLEAR:
        cautions.append(
            f"{clear:.0%} of all tokens leave in clear, which no epsilon protects (see the conditions below)"
        )
    if (counts["share_unchanged"] or 0.0) > MUCH_UNCHANGED:
        cautions.append(
            f"{counts['share_unchanged']:.0%} of the perturbed tokens came out unchanged: this epsilon is so large "
            "that the bound below means little"
        )
    return cautions
