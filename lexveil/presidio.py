"""Lexveil as an operator of presidio-anonymizer: what was found is rewritten word by word, with noise that is paid.

from presidio_anonymizer import AnonymizerEngine, OperatorConfig

from lexveil.presidio import LexveilOperator

engine = AnonymizerEngine()
engine.add_anonymizer(LexveilOperator)
records = []  # takes the privacy record of each span
how = {"mechanism": "tem", "epsilon": 5.0, "subject": "customer 17", "records": records}
engine.anonymize(text, results, {"PERSON": OperatorConfig("lexveil", how)})

Only the words inside of what was found are protected. That something was found, how many words it has and all of the
text around it are not. A span is a release of its own: its epsilon is spent in the ledger before its noise is drawn,
and where the ledger cannot be written or has nothing left, the text is not anonymized.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from functools import cache
from typing import Any, ClassVar

from lexveil.accounting.budgets import STRATEGIES
from lexveil.accounting.record import PrivacyRecord
from lexveil.artifacts.model import Model
from lexveil.errors import LexveilError, RequestError
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.privatization.adapters.memory import privatize
from lexveil.request import Request

try:
    from presidio_anonymizer.operators import Operator, OperatorType
except ImportError:
    raise RequestError("presidio-anonymizer is not installed; `pip install 'lexveil[presidio]'` brings it") from None

MOST_WORDS = 16  # of a span get the whole epsilon; those of a longer one share that of so many
KNOWN = ("mechanism", "strategy", "epsilon", "subject", "records", "model", "project", "entity_type")


class LexveilOperator(Operator):  # type: ignore[misc]  # of a library without types, where it is not installed
    """Rewrites the words of a span, as a release that the ledger is charged for.

    Parameters of its ``OperatorConfig``:
        mechanism: a name of ``lexveil.MECHANISMS``.
        epsilon: of each word (token) of the span, in 1 / units of the mechanism's metric.
        strategy: S1, words (the default), to S4.
        subject: whom the text is about, whose budget the ledger keeps; None: each span's text is a subject of its own.
        records: a list that takes the ``PrivacyRecord`` of each span; None: they are not kept.
        model, project: as of ``lexveil.privatize``.
    """

    known: ClassVar[tuple[str, ...]] = KNOWN

    def operate(self, text: str, params: dict[str, Any] | None = None) -> str:
        """The span's words, rewritten; what has no words is left out.

        Raises:
            LexveilError: if the span cannot be paid for or rewritten; its text is not anonymized then.
        """
        how = dict(params or {})
        self.validate(how)
        epsilon, subject = float(how["epsilon"]), how.get("subject")
        request = {
            "mechanism": how["mechanism"],
            "strategy": how.get("strategy", "S1"),
            "document_budget": epsilon * MOST_WORDS,
            "max_token_epsilon": epsilon,
            "detector": "none",
            "on_exhausted": "refuse",
            "workers": 1,
            **self.noise(how),
        }
        project = _loaded(how.get("project"), how.get("model"))
        done = privatize([text], Request.of(request), subjects=None if subject is None else [subject], project=project)
        (rewritten,) = done.values
        if not isinstance(rewritten, str):  # never: what is exhausted is refused
            raise LexveilError("a span was withheld; the text is not anonymized")
        records: MutableSequence[PrivacyRecord] | None = how.get("records")
        if records is not None:
            records.append(done.record)
        return rewritten

    def noise(self, params: dict[str, object]) -> dict[str, object]:  # noqa: ARG002
        """Where the noise comes from: the operating system."""
        return {"mode": "release"}

    def validate(self, params: dict[str, object] | None = None) -> None:
        """See that the parameters are there, and no others.

        Raises:
            RequestError: if not.
        """
        given = params or {}
        name = self.operator_name()
        if unknown := sorted(set(given) - set(self.known)):
            hint = "; a seed makes an experiment: operator lexveil-experiment" if unknown == ["seed"] else ""
            raise RequestError(f"operator {name}: unknown parameter {unknown[0]}{hint}")
        epsilon = given.get("epsilon")
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < float("inf"):
            raise RequestError(f"operator {name}: epsilon must be given, a finite number greater than 0")
        if given.get("mechanism") not in MECHANISMS:
            raise RequestError(f"operator {name}: mechanism must be given, one of {', '.join(MECHANISMS)}")
        if given.get("strategy", "S1") not in STRATEGIES:
            raise RequestError(f"operator {name}: strategy must be one of {', '.join(STRATEGIES)}")

    def operator_name(self) -> str:
        """Its name in an ``OperatorConfig``."""
        return "lexveil"

    def operator_type(self) -> OperatorType:
        """It anonymizes."""
        return OperatorType.Anonymize


class LexveilExperiment(LexveilOperator):
    """The same with a seed: repeatable, charged to no ledger, and not private.

    Every item of the result is stamped with its name, lexveil-experiment, and every record with its mode. A parameter
    ``seed`` must be given: equal spans get equal words.
    """

    known: ClassVar[tuple[str, ...]] = (*KNOWN, "seed")

    def noise(self, params: dict[str, object]) -> dict[str, object]:
        """Where the noise comes from: the seed."""
        return {"mode": "experiment", "seed": params["seed"]}

    def validate(self, params: dict[str, object] | None = None) -> None:
        """See that the parameters are there, a seed among them; raises as ``LexveilOperator.validate``."""
        super().validate(params)
        if (params or {}).get("seed") is None:
            raise RequestError("operator lexveil-experiment: seed must be given; operator lexveil makes releases")

    def operator_name(self) -> str:
        """Its name in an ``OperatorConfig``, and in the items of a result."""
        return "lexveil-experiment"


def _loaded(project: Any, model: str | None) -> Model:
    return project if isinstance(project, Model) else _model(project, model)


@cache
def _model(project: Any, model: str | None) -> Model:
    """What gives the words, loaded once."""
    return Model.load(project, model)
