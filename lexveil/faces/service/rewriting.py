"""Rewriting for the service, by one engine per worker process: complete the settings of a request,
charge the texts to the budget ledger, and rewrite them.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from lexveil.base import paths
from lexveil.base.errors import LexveilError, RequestError, option
from lexveil.base.logs import messages_to
from lexveil.base.runtime.crash import crash_report
from lexveil.base.runtime.user_data import is_of_user, make_user_data
from lexveil.faces.service.cautions import cautions_of_public_texts
from lexveil.faces.service.keys import read_keys
from lexveil.faces.service.masking import without_numbers
from lexveil.faces.service.refusals import Refusal
from lexveil.faces.service.terms import Terms
from lexveil.faces.service.warm_model import WarmModel
from lexveil.io.artifacts.model import Model
from lexveil.io.request import BUDGETS, SENTENCES, Request
from lexveil.release import preconditions
from lexveil.release.adapters.memory import Privatized, Texts, privatize_texts
from lexveil.release.charge import ChargeOptions, ledger_of
from lexveil.release.engine.sentences import engine_of
from lexveil.release.ledger.caps import cap_of
from lexveil.release.ledger.ledger import SALT, Ledger
from lexveil.release.ledger.reservation import ExhaustedError
from lexveil.release.ledger.stores import store_of
from lexveil.release.looking.inspect import TextsInspection, inspect_texts
from lexveil.release.preconditions import NoSpacesError
from lexveil.release.settings import document_budget, resolve_settings

LOG = logging.getLogger("lexveil.faces.service")
HEALTH_SECONDS = 5.0  # seconds to wait for a ledger that another process holds
WARM_UP = "The first text of a worker takes longer, because much is loaded for it."
DEFAULTS = {name: field.default for name, field in Request.model_fields.items()}
FIXED = f"{option('mechanism')}, {option('strategy')} and {option('epsilon')}"
REMEMBERED = 64  # log lines that were written


@dataclass(slots=True)
class TextRewriter:
    """The object of one worker process that answers requests, for one thread.

    Attributes:
        terms: the limits, fixed settings and keys that the service's operator chose.
        model: the model, which caches its results.
    """

    terms: Terms
    model: WarmModel
    _said: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED), repr=False)

    @property
    def _answering(self) -> WarmModel:
        """The model as it is used while a request is answered: it reads expected recoveries only
        from the cache, and prints no warning about the language of the texts.
        """
        return replace(self.model, cache_only=True, suppress_language_warning=True)

    def warm_up(self) -> None:
        """Load and compute everything that requests will need, if their settings are known in
        advance. If a recovery (share of guessed words) is fixed, compute its epsilon.

        Raises:
            LexveilError: if requests could not be served.
        """
        if self.terms.is_complete:
            settings = resolve_settings(Request.of(self.terms.fixed), self.model)
            engine = engine_of(settings, self.model)
            budget = document_budget(settings, self.model)
            # Compute all near-word lists before the first text, because lists made for one request
            # would make another request faster.
            if engine.prepared.keep_lists(min(budget.cap, budget.total), waits=True):
                self.model.forget_mechanisms()
            # Run an experiment on a fixed text, for which nothing is charged and which nobody sees.
            experiment = preconditions.check(replace(settings, seed=0), self.model)
            privatize_texts(Texts([WARM_UP]), experiment, workers=1)
            for caution in cautions_of_public_texts(experiment.engine):
                LOG.warning("%s", caution)
            preconditions.check(settings, self.model)

    def privatize(
        self,
        texts: Sequence[str | None],
        subjects: Sequence[str] | None,
        asked: Mapping[str, Any],
        on_exhausted: Literal["withhold", "refuse"] | None,
        client: str | None,
    ) -> Privatized:
        """Charge texts to the budget ledger, durably, and then rewrite them.

        Args:
            subjects: the subject of each text.
            asked: the settings of the request.
            client: the name of the client's API key.

        Raises:
            Refusal: if anything fails. The refusal states whether the texts were charged
                nevertheless.
        """
        charged: list[str] = []
        about = {} if client is None else {"client": client}
        charge = ChargeOptions(
            about,
            self.terms.ledger_seconds,
            single_commit=True,
            tells_operator=False,
            on_spent=charged.append,
            # The name of a key has no slash, so the subjects of two keys cannot be equal.
            client=client if self.terms.subjects == "by-key" else None,
        )
        with self._refusing(charged):
            checked = self._checked(asked)
            done = privatize_texts(
                Texts(texts, subjects),
                checked,
                workers=1,
                on_exhausted=on_exhausted,
                charge_options=charge,
            )
            # Without a transaction of the ledger no text is returned, whatever has happened to the
            # settings.
            costs = done.operator.ledger
            if (
                not charged
                or costs is None
                or done.record.release is None
                or done.record.release.id != charged[0]
            ):
                raise LexveilError(
                    "texts were rewritten without a charge, so they were not returned"
                )
            return done

    def inspect(self, texts: Sequence[str | None], asked: Mapping[str, Any]) -> TextsInspection:
        """Return the effects that rewriting texts would have. Nothing is charged.

        The operator's own lists are not used. A client that asks about many single words would
        otherwise learn, free of charge, which of them are listed.

        Raises:
            Refusal: if anything fails.
        """
        with self._refusing([]):
            checked = self._checked(asked)
            settings = checked.engine.settings
            public = None if settings.detection is None else settings.detection.without_lists()
            if public != settings.detection:
                checked = preconditions.check(replace(settings, detection=public), self._answering)
            return inspect_texts(texts, checked.engine)

    def ledger_state(self) -> Literal["ok", "failed"]:
        """Return the state of the budget ledger: ``ok`` if its salt exists and its tables can be
        read, and otherwise ``failed``.

        A service creates a missing ledger at its start, so a ledger that is missing later has been
        lost. A ledger that another process holds for a moment counts as readable.
        """
        params = ledger_of(self.model.project)
        store = store_of(params.folder, params.database)
        try:
            if not (Path(params.folder, SALT).exists() and store.exists()):
                return "failed"
            store.open(HEALTH_SECONDS, read_only=True).close()
        except (RequestError, OSError):
            return "failed"
        return "ok"

    def _checked(self, asked: Mapping[str, Any]) -> preconditions.Checked:
        allowed = self._allowed(asked)
        try:  # no text has been read yet, so this refusal follows from the settings alone
            return preconditions.check(Request.of(allowed), self._answering)
        except RequestError as error:
            LOG.warning("settings refused: %s", error)
            raise Refusal("refused") from None

    def _allowed(self, asked: Mapping[str, Any]) -> dict[str, object]:
        """Return the request's settings together with the settings that the operator fixed.

        Raises:
            Refusal: if the request has another value for a fixed setting, or names too few
                settings.
        """
        fixed = self.terms.fixed
        # If all necessary settings are fixed, omitted settings are fixed too, at their defaults.
        names = set(asked) if self.terms.is_complete else set(asked) & set(fixed)
        if any(name in fixed for name in BUDGETS):  # one of the three budgets determines the others
            names |= set(asked) & {*BUDGETS, "band", "average_words"}
        taken = {name for name in names if asked[name] != fixed.get(name, DEFAULTS.get(name))}
        if taken:
            raise Refusal(
                "fixed",
                fields=[
                    (f"settings.{name}", "the operator has fixed this setting")
                    for name in sorted(taken)
                ],
            )
        both = {**asked, **fixed}
        if self.terms.is_complete:
            return both
        if both.get("strategy") == SENTENCES:
            wrong = "the service accepts this setting only from its operator"
            raise Refusal("invalid", fields=[("settings.strategy", wrong)])
        if not {"mechanism", "strategy"} <= set(both) or sum(name in both for name in BUDGETS) != 1:
            raise Refusal("incomplete")
        return both

    @contextlib.contextmanager
    def _refusing(self, charged: Sequence[str]) -> Iterator[None]:
        """Convert every exception in the block to a refusal. Only errors of this library are logged
        with their message.
        """
        try:
            with messages_to(self._say):
                yield
        except Refusal:
            raise
        except Exception as error:
            if isinstance(error, ExhaustedError) and not charged:
                raise Refusal("exhausted") from None
            if isinstance(error, NoSpacesError) and not charged:
                LOG.warning("a text in a script without spaces between words was refused")
                wrong = f"the text has a script without spaces between words ({error.script})"
                raise Refusal("invalid", fields=[(f"texts.{error.row - 1}", wrong)]) from None
            LOG.error(
                "%s",
                self._masked(str(error))
                if isinstance(error, LexveilError)
                else crash_report(error),
            )
            if charged:
                raise Refusal("charged", charge=charged[0]) from None
            raise Refusal("unavailable", retry_after=1) from None

    def _say(self, record: logging.LogRecord) -> None:
        """Log a message of the rewriting engine, but each message only once."""
        line = record.getMessage()
        if not getattr(record, "is_public", False):
            line = self._masked(line)
        if line not in self._said:
            self._said.append(line)
            LOG.log(record.levelno, "%s", line)

    def _masked(self, line: str) -> str:
        """Return a log line in which numbers that may come from a request are masked."""
        project = self.model.project
        ledger = ledger_of(project)
        folders = (project.folder, Path(ledger.folder), Path(ledger.anchor).parent)
        absolute = [folder.absolute() for folder in folders]
        return without_numbers(line, [*absolute, paths.user_cache(), paths.LIBRARY])


def check_start(terms: Terms, model: Model) -> None:
    """Check that a service may start with these terms. Whether the service works is checked later
    by its workers, which stop it otherwise.

    Raises:
        LexveilError: if the service may not serve.
    """
    if terms.keys is not None and not read_keys(Path(terms.keys)):
        raise RequestError(
            f"{terms.keys}: the file has no key; add one by `lexveil service key add`"
        )
    params = ledger_of(model.project)
    if params.keys == "plain" and not terms.require_subjects:
        raise RequestError(
            "lexveil.toml: ledger.keys is plain, so the ledger would store each text "
            f"without a subject as its own key; add {option('require_subjects')}"
        )
    if model.configuration.release.without_guarantee:
        raise RequestError(
            "lexveil.toml: release.without_guarantee is set, but a service returns only "
            "texts with a guarantee; remove the key"
        )
    if not (terms.is_complete or "max_token_epsilon" in terms.fixed):
        raise RequestError(
            "requests may choose any epsilon, so a text could stay unchanged; add "
            f"{option('max_token_epsilon')} N, or fix {FIXED}"
        )
    if is_of_user(params.folder):
        make_user_data()
    opened = Ledger.open(
        params.folder,
        params.keys,
        anchor=params.anchor,
        patience=terms.ledger_seconds,
        address=params.database,
    )
    with opened as ledger:
        if ledger.refusal is not None:
            raise RequestError(ledger.refusal)
        with ledger.database.snapshot() as con:
            cap = cap_of(params.cap, con)
    if cap is None and not terms.is_complete:
        raise RequestError(
            f"{params.folder}: the ledger has no cap yet, and would take ten times the "
            "epsilon that the first request may spend; set a cap by `lexveil ledger cap N "
            f"--because TEXT` or lexveil.toml: ledger.cap, or fix {FIXED}"
        )
    amount = cap if isinstance(cap, str) else f"{cap or 0:g} epsilon"
    said = "no cap yet: the first release sets it" if cap is None else f"cap of a subject: {amount}"
    LOG.info(f"charging the ledger {ledger.name}, {said}")
