"""What may be claimed of a run: the proven bound and its conditions, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from lexveil.accounting.budgets import Policy
from lexveil.accounting.results import Result
from lexveil.mechanisms.registry import MECHANISMS


class Guarantee(Result):
    """What may be claimed of one output."""

    formula: str
    """The proven bound, or `none`."""
    statement: str
    """The same in words."""
    because: list[str]
    """Conditions of the bound, or why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the guarantee of a run depends on.

    Attributes:
        mode: release; in any other the seed is known, or nothing was done.
        no_proof: why the mechanism as configured has no guarantee, ``Mechanism.no_guarantee``.
        consistent: equal tokens of a document were replaced alike. Given where its tokens are equal, the first of
            each are perturbed independently and the others copied, which is post-processing; so the bound holds
            between documents whose tokens are equal at the same places. Between others none does: a copy never
            differs from what it was copied from, two draws do.
        n_columns: texts of a document, which share its budget.
        given_budget: the document budget was given, and does not follow from the texts.
    """

    mechanism: str
    strategy: str
    policy: Policy
    mode: str = "release"
    keep_layout: bool = False
    no_proof: str | None = None
    consistent: bool = False
    n_columns: int = 1
    given_budget: bool = False


def guarantee(claim: Claim) -> Guarantee:
    """State the guarantee of a run; "none" where the proof does not hold for what was actually run."""
    mode = claim.mode
    if claim.mechanism == "none":
        return Guarantee(formula="none", statement="The text is unchanged.", because=["no mechanism was applied"])
    if claim.no_proof is not None:
        because = [claim.no_proof] if mode == "release" else [claim.no_proof, f"mode is {mode}"]
        return Guarantee(formula="none", statement="Not private in any proven sense.", because=because)
    conditions = _conditions(claim)
    if mode != "release":
        return Guarantee(
            formula="none",
            statement="Not private: the seed of the noise is known, so whoever has it can subtract the noise.",
            because=[f"mode is {mode}", *(f"in release mode: {condition}" for condition in conditions)],
        )
    repeats = ", repeated at the same places," if claim.consistent else ","
    over = "the distinct perturbed tokens" if claim.consistent else "perturbed tokens"
    tells = "but which of them are equal" if claim.consistent else "of what stood there"
    return Guarantee(
        formula="Pr[M(D)=y] <= exp(Σ ε_i·d(w_i,w'_i))·Pr[M(D')=y]",
        statement=f"Two texts with the same number of tokens{repeats} which differ only in tokens that are perturbed "
        f"or sampled, are indistinguishable up to exp(Σ ε_i·d(w_i,w'_i)), the sum over {over}, d the "
        f"{MECHANISMS[claim.mechanism].metric}. Sampled tokens are uniform draws and tell nothing {tells}.",
        because=conditions,
    )


def _conditions(claim: Claim) -> list[str]:
    policy = claim.policy
    classes = {"stop words": policy.stopwords, "punctuation": policy.punctuation, "unknown words": policy.oov}
    kept = [name for name, action in classes.items() if action == "keep"]
    conditions = [
        "the number of tokens of each text, and which of them are perturbed, kept, dropped or sampled, is not hidden",
        *([f"what is kept ({', '.join(kept)}) leaves in clear and is the same in both texts"] if kept else []),
        "the document budget is public"
        + (": it tells nothing" if claim.given_budget else ": it follows from the average length of the data set"),
        MECHANISMS[claim.mechanism].exactness,
    ]
    if claim.n_columns > 1:
        conditions.append(
            f"a text is the {claim.n_columns} columns of a row; which column a token stands in is not hidden"
        )
    if claim.consistent:
        conditions.append(
            "both texts repeat their tokens at the same places: which tokens of a text are equal is not hidden, and "
            "nothing is claimed between texts that differ in it, also where only one token is another"
        )
    if claim.strategy == "S2":
        conditions.append("both texts have the same number of words in their perturbed tokens")
    if claim.keep_layout:
        conditions.append("layout is unprotected: white space and capitals are copied from the source")
    return conditions
