"""The conditions that must hold before anything is released: one function checks them, called by
the files, the API, the service and the page.

Further conditions concern the texts themselves, and are checked as the texts are counted: that they
can be cut into words, and are of the model's language.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.base.runtime.hashes import code_hash, sha256, version
from lexveil.core.accounting.budgets import DocumentBudget
from lexveil.core.accounting.operator_report import LanguageFinding
from lexveil.core.accounting.record import AuditReference, ModelReference
from lexveil.core.detectors.given import type_name
from lexveil.core.text.encode import Lexicon, tokenize
from lexveil.core.text.languages.detection import other_language
from lexveil.core.text.normal_forms import is_punctuation
from lexveil.io.artifacts.model import Model
from lexveil.io.config import LedgerParams
from lexveil.io.formats.chunks import Chunk
from lexveil.io.formats.messages import name
from lexveil.io.formats.registry import as_source
from lexveil.io.request import Request
from lexveil.readers.calibration import given_back, recovered, unchanged
from lexveil.readers.meaning import recovery_at
from lexveil.release.engine.batch import selected_texts, supported
from lexveil.release.engine.counts import BatchCounts
from lexveil.release.engine.engine import Engine
from lexveil.release.engine.sentences import engine_of
from lexveil.release.linkage import linkage_of
from lexveil.release.settings import (
    Settings,
    document_budget,
    require_uniform_shares,
    resolve_settings,
)

LOG = logger(__name__)

STAMP = "no-guarantee"
LOOKED_AT_WORDS = 10_000  # the first ones, which are enough to tell languages apart
LOOKED_AT_CHARACTERS = 8 * LOOKED_AT_WORDS
LEAST_WORDS = 5  # of which it is said that few are known
FEW_KNOWN = 0.6  # of the words: of texts in the model's language it knows nine tenths and more


@dataclass(frozen=True, slots=True)
class Checked:
    """A request that passed its checks, and the facts that the record states beside the run.

    Attributes:
        budget: the budget of each document, of sentences that of each column; 0 where it follows
            from the texts.
        no_guarantee: why no guarantee can be given; empty if one can.
        model: the model that the run uses.
        made_with: the sha256 of the artifacts that decide what comes out.
        audit: the audit that the record relies on; None without one.
        why_no_audit: why there is no audit.
    """

    engine: Engine
    budget: DocumentBudget
    no_guarantee: tuple[str, ...]
    model: ModelReference
    made_with: dict[str, str]
    audit: AuditReference | None
    why_no_audit: str


def check(request: Request | Settings, model: Model) -> Checked:
    """Check that texts may be rewritten as requested. No text is read, and no ledger is opened.

    Args:
        request: the request, or the settings that it was completed to.

    Raises:
        MissingArtifactError: if what an earlier stage makes is not there, or did not pass its
            checks.
        RequestError: if the request cannot be served; of a release, if a purpose is not public, if
            nothing is proven of it, if it would give back more words than ``release.max_recovery``,
            or if the last audit of the mechanism found a violation.
    """
    settings = settings_for(request, model)
    require_public_purposes(settings, model)
    engine = engine_of(settings, model)
    refusals = engine.measurement().refusals
    if settings.mode == "release" and refusals and not settings.without_guarantee:
        raise NoGuaranteeError("; ".join(refusals))
    budget = document_budget(settings, model)
    _require_little_recovery(settings, engine, budget)
    _require_little_linkage(settings, model)
    made_with = engine.made_with()
    reference = model.reference(settings.of_words)
    audit, why = find_valid_audit(engine, budget, reference, made_with)
    return Checked(engine, budget, refusals, reference, made_with, audit, why)


def settings_for(request: Request | Settings, model: Model) -> Settings:
    """Return the settings of a request to rewrite or preview texts, with a checked model.

    Raises:
        MissingArtifactError: if what an earlier stage makes is not there, or not as it must be.
        RequestError: if the request cannot be completed, or leaves texts as they are.
    """
    settings = request if isinstance(request, Settings) else resolve_settings(request, model)
    if settings.mechanism == "none":
        raise RequestError("mechanism 'none' keeps texts unchanged; there is nothing to do")
    model.require_checks(settings.of_words)
    return settings


def require_public_purposes(settings: Settings, model: Model) -> None:
    """Check that every scale that shapes a release is said to be public.

    Raises:
        RequestError: naming the first scale that is not.
        ParameterError: if what the vectors were made with is not what params.yaml names.
    """
    kept = model.kept_purposes(settings.of_words)
    private = [purpose.name for purpose in kept if not purpose.is_public]
    if private and settings.mode == "release":
        raise RequestError(
            f"nothing is released: the scale of purpose {private[0]} is not said to be "
            "public, and what follows from private texts must not shape what comes out; make it "
            "of public ones by `lexveil purpose build --public`, "
            f"or say {option('mode')} experiment"
        )


def is_without_guarantee(request: Request, model: Model) -> bool:
    """Whether the name of the output must say that it has no guarantee: the user allowed this, and
    there is no guarantee.
    """
    if not request.is_release or not (
        request.without_guarantee or model.configuration.release.without_guarantee
    ):
        return False
    return request.mechanism == "none" or bool(check(request, model).no_guarantee)


def _require_little_recovery(settings: Settings, engine: Engine, budget: DocumentBudget) -> None:
    """Refuse a release whose expected recovery exceeds ``release.max_recovery``.

    What counts is the largest epsilon that a token can get, and of the words of the limit's band
    the larger of what an adversary is expected to name and of what is expected to come out as it
    is.
    """
    limits = engine.model.configuration.release
    if settings.mode != "release" or limits.max_recovery is None:
        return
    require_uniform_shares(settings, "params.yaml: release.max_recovery")
    largest = min(budget.cap, budget.total)
    band = limits.max_recovery_band
    if not largest:
        return
    curve = engine.recovery_curve()
    if curve is None:
        raise RequestError(
            "nothing is released: what a reader is expected to name is not known of sentences; "
            "take params.yaml: release.max_recovery out, or rewrite words (strategy S1 to S4)"
        )
    expected = curve.at(largest)
    if given_back(expected, band) <= limits.max_recovery:
        return
    passes = curve.epsilon_for(limits.max_recovery, band, given_back).epsilon
    of = "words" if band == "all" else f"{band} words"
    raise RequestError(
        f"nothing is released: at epsilon {largest:.4g}, the largest of a token, a "
        "best-informed reader is expected to "
        f"name {recovered(expected, band):.1%} of the {of}{recovery_at(expected).aside}, and "
        f"{unchanged(expected, band):.1%} to come out unchanged; lexveil.toml: "
        "release.max_recovery allows "
        f"{limits.max_recovery:.1%}. {option('epsilon')} {passes:g} "
        f"{option('max_token_epsilon')} {passes:g} passes"
    )


def _require_little_linkage(settings: Settings, model: Model) -> None:
    """Refuse a release whose linkage exceeds ``release.max_linkage``.

    The largest share of any length counts, and what was not measured passes no limit.
    """
    limit = model.configuration.release.max_linkage
    if settings.mode != "release" or limit is None:
        return
    linkage = linkage_of(settings, model)
    if linkage.largest is not None and linkage.largest <= limit:
        return
    raise RequestError(
        f"nothing is released: {linkage.sentence}; lexveil.toml: release.max_linkage allows "
        f"{limit:.1%} (docs/reference/levels.md, Linkage)"
    )


def require_named_subjects(ledger: LedgerParams, has_subjects: bool) -> None:
    """Check that a release names subjects if its ledger stores names of subjects. Without subjects
    such a ledger would store the texts themselves as names.

    Raises:
        RequestError: if no subjects are given to such a ledger.
    """
    if ledger.keys == "plain" and not has_subjects:
        raise RequestError(
            "lexveil.toml: ledger.keys is plain, so the ledger would name texts by "
            "themselves; give "
            f"{option('subject_column')}, or keep keys hashed"
        )


def stamped(target: Path) -> Path:
    """Return the name of an output without a guarantee: NAME.no-guarantee.EXT. The name stays
    unchanged if the file or its folder already says so.
    """
    if STAMP in target.name or STAMP in target.parent.name:
        return target
    source = as_source(target)
    stem = source.stem if source else target.name
    return target.with_name(f"{stem}.{STAMP}{target.name[len(stem) :]}")


def find_valid_audit(
    engine: Engine, budget: DocumentBudget, model: ModelReference, made_with: Mapping[str, str]
) -> tuple[AuditReference | None, str]:
    """Return the result of an audit that matches, of the nearest epsilon; or None, and why.

    `lexveil schedule` makes audits every week.

    Args:
        model, made_with: the model and the artifacts of the run.

    Raises:
        RequestError: if an audit of this mechanism with these parameters found a violation, however
            old it is and whatever else it was of, and a release is asked for.
    """
    settings = engine.settings
    folder = engine.model.project.audits
    parameters = engine.prepared.parameters
    epsilon = settings.base_epsilon
    average = budget.average_words
    if epsilon is None:
        average = engine.model.average_words() if average is None else average
        epsilon = budget.total / average if average else 0.0
    audited = f"{settings.mechanism} {settings.strategy}"
    why = f"there is none of {audited} in {folder}"
    valid = list[tuple[float, AuditReference]]()
    for file in sorted(folder.glob(f"{settings.mechanism}-{settings.strategy}-*.json")):
        try:
            result = json.loads(file.read_text(encoding="utf-8"))
            if (
                result["violation"]
                and result["parameters"] == parameters
                and settings.mode == "release"
            ):
                raise RequestError(
                    f"{file}: the last audit of {audited} found a violation of the claimed "
                    "epsilon; nothing is "
                    "released on it. Mend the mechanism and audit again"
                )
            days = engine.model.configuration.operation.audit_days
            differs = {
                "of other parameters of the mechanism": result["parameters"] != parameters,
                "of another policy": result["policy"] != asdict(settings.policy),
                "of other shares of the budget": result["shares"]
                != (settings.shares and settings.shares.as_dict()),
                "of releases without detectors": settings.detection is not None,
                "of another model, or of another version of it": result["model"] != model.to_dict(),
                "of another embedding, other collocations or word orders": result["space"]
                != made_with,
                "of another version of the code": (result["lexveil"], result["code"])
                != (version(), code_hash()),
                "of an experiment's noise": result["mode"] != "release",
                "inconclusive": result["verdict"] not in ("no violation found", "violated"),
                f"of a base epsilon from {min(result['epsilons']):g} to "
                f"{max(result['epsilons']):g}": not (
                    min(result["epsilons"]) <= epsilon <= max(result["epsilons"])
                ),
                f"older than {days} days (lexveil.toml: operation.audit_days)": (
                    datetime.now(UTC) - datetime.fromisoformat(result["time"])
                    > timedelta(days=days)
                ),
            }
            mismatch = next((what for what, is_so in differs.items() if is_so), None)
            if mismatch is None:
                reference = AuditReference(
                    **{key: result[key] for key in ("epsilon", "mode", "factor", "time")},
                    result="violation found" if result["violation"] else "no violation found",
                    sha256=sha256(file),
                )
                valid.append((abs(result["epsilon"] - epsilon), reference))
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            mismatch = "truncated, or of an older version"
        why = f"{file.name}: it is {mismatch}"
    return (min(valid, key=lambda pair: pair[0])[1], "") if valid else (None, why)


class NoGuaranteeError(RequestError):
    """A release of which nothing is proven; ``why`` says the reasons."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"nothing is released: no guarantee can be given, {why}. Mend that; or say "
            f"{option('without_guarantee')} "
            "(lexveil.toml: release.without_guarantee = true), which names the output so; or "
            f"{option('mode')} experiment"
        )
        self.why = why


class NoSpacesError(RequestError):
    """A text is in a script without spaces between words.

    Attributes:
        row: the number of the row, from 1.
        script: the name of the script.
    """

    def __init__(self, message: str, row: int, script: str) -> None:
        super().__init__(message)
        self.row = row
        self.script = script


def tell_unmatched(request: Request, found: Iterable[tuple[str, str]]) -> None:
    """Tell the operator which types with an action have no match: the name of a type may be
    misspelt.

    Args:
        found: the types of matches, with what happens to them; what is perturbed as any word is
            among none.
    """
    types = {
        type_name(kind) for kind, action in (request.types or {}).items() if action != "perturb"
    }
    for kind in sorted(map(str, types - {kind for kind, _ in found})):
        LOG.warning(
            f"no match is of type {kind}, which --type (types=) names, so that the option "
            "changes nothing"
        )


class LanguageCheck:
    """Check of the first words of an input, which refuses or empties texts that cannot be cut into
    words.

    Args:
        columns: the names of the text columns.
        empties: whether such texts are emptied.
    """

    def __init__(
        self, model: Model, lexicon: Lexicon, columns: Sequence[str], *, empties: bool = False
    ) -> None:
        self.model = model
        self.lexicon = lexicon
        self.columns = columns
        self.n_emptied: int | None = 0 if empties else None
        self.counts: Counter[str] = Counter()
        self.n_words = 0

    def supported(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield the chunks of an input from its first row. If the user asked for it, texts that
        cannot be cut into words are emptied and counted.
        """
        if self.n_emptied is not None:
            self.n_emptied = 0
        for chunk in chunks:
            if self.n_emptied is None:
                yield chunk
                continue
            cut, n_emptied = supported(chunk)
            self.n_emptied += n_emptied
            yield cut

    def add(self, chunk: Chunk, counted: BatchCounts) -> None:
        """Examine the next chunk.

        Raises:
            NoSpacesError: if a text is in a script without spaces; it says which row.
        """
        if counted.without_spaces is not None:
            row, column, script = counted.without_spaces
            number = chunk.first + row
            place = f"{chunk.file + ', ' if chunk.file else ''}row {number:,}"
            raise NoSpacesError(
                f"{place}: {name(self.columns[column])} is in {script} script without spaces "
                "between words, so that a "
                "clause would be one unknown word; leave the row out, put spaces between "
                f"its words, or say {option('on_unsupported')} withhold",
                number,
                script,
            )
        if self.n_words < LOOKED_AT_WORDS:
            self._count(chunk)

    def _count(self, chunk: Chunk) -> None:
        texts = list[str]()
        left = LOOKED_AT_CHARACTERS
        for text in (
            text for row in selected_texts(chunk) for text in row if text is not None and left > 0
        ):
            texts.append(text[:left])
            left -= len(text)
        tokens = tokenize(texts, self.lexicon.language)
        forms = tokens.forms
        for form, count in zip(
            forms, np.bincount(tokens.ids, minlength=len(forms)).tolist(), strict=True
        ):
            if not is_punctuation(form):
                self.counts[form] += count
                self.n_words += count

    def tell(self) -> None:
        """Tell the operator the finding, if there is one."""
        if self.model.suppress_language_warning:
            return
        if (finding := self.finding()) is not None:
            LOG.warning(f"CAUTION: the input {finding.sentence}")
        if self.n_emptied:
            LOG.warning(
                f"private to the operator: {self.n_emptied:,} texts are in a script without spaces "
                "between words; each comes out empty"
            )

    def finding(self) -> LanguageFinding | None:
        """Return the finding that the operator is told; None if nothing speaks against the model's
        language.
        """
        if self.n_words < LEAST_WORDS:
            return None
        n_known = sum(count for form, count in self.counts.items() if form in self.lexicon.rows)
        found = other_language(self.counts, self.lexicon.language)
        if found is None and n_known >= FEW_KNOWN * self.n_words:
            return None
        looks_like, shares = found or (None, {})
        return LanguageFinding(
            model=self.model.name,
            language=self.lexicon.language,
            looks_like=looks_like,
            function_words=shares,
            known=n_known / self.n_words,
            words=self.n_words,
        )
