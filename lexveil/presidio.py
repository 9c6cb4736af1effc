"""Operator for presidio-anonymizer: Lexveil rewrites the spans that Presidio found, word by word,
with noise whose epsilon is charged to the ledger of privacy budgets.

    from presidio_anonymizer import AnonymizerEngine, OperatorConfig

    from lexveil.presidio import LexveilOperator

    engine = AnonymizerEngine()
    engine.add_anonymizer(LexveilOperator)
    records = []  # takes the privacy record of each span
    how = {"mechanism": "tem", "epsilon": 5.0, "subject": "customer 17", "records": records}
    engine.anonymize(text, results, {"PERSON": OperatorConfig("lexveil", how)})

Only the words inside the spans are protected. The existence of a span, its number of words, and all
text around it are not protected. Each span is a release of its own: its epsilon is spent in the
ledger before its noise is drawn. If the ledger cannot be written, or the subject has no budget
left, the text is not anonymized.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from functools import cache
from random import Random
from typing import Any, ClassVar

from lexveil.base.errors import LexveilError, RequestError
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.io.artifacts.model import Model
from lexveil.io.request import SENTENCES, Request
from lexveil.release.adapters.memory import privatize
from lexveil.release.preconditions import NoGuaranteeError

try:
    from presidio_anonymizer.operators import Operator, OperatorType
except ImportError:
    raise RequestError(
        "presidio-anonymizer is not installed; run `pip install 'lexveil[presidio]'`"
    ) from None

# Up to 16 words of a span get the whole epsilon each; the words of a longer span share the sum.
MOST_WORDS = 16
# Parameters that are no fields of a request.
OWN = ("subject", "records", "model", "project", "entity_type")


# Where Presidio is not installed, mypy knows no type of its class.
class LexveilOperator(Operator):  # type: ignore[misc]
    """Presidio operator that rewrites the words of a detected span with noise, as a release that is
    charged to the ledger of privacy budgets.

    Parameters of its ``OperatorConfig``:
        mechanism: a name of ``lexveil.MECHANISMS``.
        epsilon: epsilon of each word (token) of the span, in 1 / units of the mechanism's metric.
        strategy: S1, words (the default), to S4.
        subject: person whom the text is about, whose budget the ledger keeps; if None, each span is
            a subject of its own.
        records: a list to which the ``PrivacyRecord`` of each span is appended; if None, the
            records are discarded.
        model, project: as in ``lexveil.privatize``.
    """

    needs: ClassVar[tuple[str, ...]] = ()

    def operate(self, text: str, params: dict[str, Any] | None = None) -> str:
        """Rewrite the words of a detected span; parts without words are left out.

        Raises:
            LexveilError: if the span cannot be charged or rewritten; its text is not anonymized
                then.
        """
        how = dict(params or {})
        request = self.request(how)
        if request.seed is not None:
            request = request.model_copy(update={"seed": _seed_of(how["seed"], text)})
        model = _loaded(how.get("project"), how.get("model"))
        subject = how.get("subject")
        try:
            done = privatize(
                [text], request, model, subjects=None if subject is None else [subject]
            )
        except NoGuaranteeError as error:
            raise RequestError(
                f"operator {self.operator_name()}: nothing is released, because no guarantee "
                f"can be given: {error.why}; take another mechanism, or operator "
                "lexveil-experiment"
            ) from None
        (rewritten,) = done.values
        if not isinstance(rewritten, str):  # never: a span without budget is refused before
            raise LexveilError("a span was withheld; the text is not anonymized")
        records: MutableSequence[PrivacyRecord] | None = how.get("records")
        if records is not None:
            records.append(done.record)
        return rewritten

    def request(self, params: dict[str, Any]) -> Request:
        """Convert the operator's parameters to the request that rewrites a span.

        Raises:
            RequestError: if a parameter is missing, unknown or out of range.
        """
        asked = {"strategy": "S1"} | {key: value for key, value in params.items() if key not in OWN}
        if isinstance(asked.get("seed"), Random):
            asked["seed"] = 0  # a placeholder: no number is drawn from the generator yet
        try:
            known = ("mechanism", "strategy", "epsilon", *self.needs)
            if unknown := sorted(set(asked) - set(known)):
                experiment = "a seed makes an experiment; use operator lexveil-experiment"
                hint = (
                    experiment
                    if unknown == ["seed"]
                    else f"there are {', '.join(known + OWN[:-1])}"
                )
                raise RequestError(f"unknown parameter {unknown[0]}; {hint}")
            if asked["strategy"] == SENTENCES:
                raise RequestError(
                    f"strategy {SENTENCES} writes whole sentences, but a span is not a sentence; "
                    "take S1"
                )
            if not isinstance(params.get("records", []), MutableSequence | None):
                raise RequestError("records must be a list")
            if missing := [
                key for key in ("mechanism", "epsilon", *self.needs) if asked.get(key) is None
            ]:
                raise RequestError(f"{missing[0]} must be given")
            epsilon = Request.of(asked).epsilon or 0.0
            budget = {
                "epsilon": None,
                "document_budget": epsilon * MOST_WORDS,
                "max_token_epsilon": epsilon,
            }
            return Request.of(
                asked | budget | {"detector": "none", "on_exhausted": "refuse", "workers": 1}
            )
        except RequestError as error:
            raise RequestError(f"operator {self.operator_name()}: {error}") from None

    def validate(self, params: dict[str, Any] | None = None) -> None:
        """Check that all required parameters and no unknown ones are given; raise the same errors
        as ``request``.
        """
        self.request(dict(params or {}))

    def operator_name(self) -> str:
        """Return the name of the operator for an ``OperatorConfig``."""
        return "lexveil"

    def operator_type(self) -> OperatorType:
        """Return the type of the operator, which is always Anonymize."""
        return OperatorType.Anonymize


class LexveilExperiment(LexveilOperator):
    """Presidio operator for experiments: ``LexveilOperator`` with a seed. Its output is repeatable,
    charged to no ledger, and not private.

    Every item of the result has the operator's name, lexveil-experiment, and every record has the
    mode experiment. The parameter ``seed`` is required. With a generator such as
    ``random.Random(7)`` every span gets its own noise. With a whole number, equal spans get equal
    words, because Presidio does not tell an operator which span of a text it rewrites.
    """

    needs: ClassVar[tuple[str, ...]] = ("seed",)

    def operator_name(self) -> str:
        """Return the operator's name in an ``OperatorConfig``, and in the items of a result."""
        return "lexveil-experiment"


def _seed_of(seed: Random | int, text: str) -> int:
    """Return the random seed of a span. With a generator the seed is the generator's next number;
    otherwise the seed is derived from the request's seed and the span's text.
    """
    return (
        seed.getrandbits(63)
        if isinstance(seed, Random)
        else int(stream(seed, "presidio", text).integers(2**63))
    )


def _loaded(project: Any, model: str | None) -> Model:
    return project if isinstance(project, Model) else _model(project, model)


@cache
def _model(project: Any, model: str | None) -> Model:
    """Load a model with its words and vectors; loaded models are cached."""
    return Model.load(project, model)
