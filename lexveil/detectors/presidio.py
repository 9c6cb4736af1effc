"""Presidio as a detector (extra ``presidio``): its pattern recognizers, which need no model; NER by
a model of yours.

Nothing is fetched: neither a model, nor the list of internet domains that its recognizer of e-mail
addresses looks up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lexveil.errors import RequestError
from lexveil.text.spans import Span

INSTALL = "`pip install 'lexveil[presidio]'` brings it"


@dataclass(frozen=True, slots=True)
class Presidio:
    """Presidio's recognizers. Each process makes its own, when it first looks for something.

    Attributes:
        language: of the texts, by its code.
        entities: what to look for; empty for all that there is.
        countries: codes of those whose numbers are looked for; empty for all.
        threshold: the least score of a finding.
        spacy_model: the name or folder of an installed model of spaCy, which finds names; None for
            patterns alone.
        spacy_key: what messages call that.
    """

    language: str = "en"
    entities: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    threshold: float = 0.3
    spacy_model: str | None = None
    spacy_key: str = field(default="policy.presidio.spacy_model", compare=False)

    @property
    def name(self) -> str:
        """As records call it."""
        import importlib.metadata

        patterns = (
            "patterns" if self.spacy_model is None else f"patterns and {_last(self.spacy_model)}"
        )
        return f"presidio-analyzer {importlib.metadata.version('presidio-analyzer')} ({patterns})"

    def check(self) -> None:
        """See that it can begin.

        Raises:
            RequestError: if it is not installed, or has no such model, language or entities.
        """
        engine = _engine(self)
        known = set(engine.get_supported_entities(self.language))
        if unknown := sorted(set(self.entities) - known):
            raise RequestError(
                f"policy.presidio.entities: presidio finds no {unknown[0]} here; there are "
                f"{', '.join(sorted(known))}"
            )

    def find(self, texts: Sequence[str]) -> Iterator[list[Span]]:
        """What it finds in each text."""
        engine = _engine(self)
        entities = list(self.entities) or None
        for text in texts:
            results = engine.analyze(
                text, self.language, entities=entities, score_threshold=self.threshold
            )
            yield [Span(result.start, result.end, result.entity_type) for result in results]


def _last(model: str) -> str:
    """The name of a model without its folder, which is nobody's business."""
    return Path(model).name


@cache
def _engine(settings: Presidio) -> Any:
    """The analyzer of this process.

    Raises:
        RequestError: as ``Presidio.check``.
    """
    try:
        from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
        from presidio_analyzer.nlp_engine import NoOpNlpEngine
    except ImportError:
        raise RequestError(f"the detector presidio is not installed; {INSTALL}") from None
    languages, countries = [settings.language], list(settings.countries) or None
    nlp: Any = NoOpNlpEngine(models=[{"lang_code": settings.language, "model_name": "none"}])
    if settings.spacy_model is not None:
        nlp = _spacy(settings)
    registry = RecognizerRegistry(supported_languages=languages)
    registry.load_predefined_recognizers(languages=languages, nlp_engine=nlp, countries=countries)
    _keep_offline(registry.recognizers)
    if not registry.recognizers:
        raise RequestError(
            f"policy.presidio.language: presidio has no recognizer of {settings.language}"
        )
    return AnalyzerEngine(registry=registry, nlp_engine=nlp, supported_languages=languages)


def _spacy(settings: Presidio) -> Any:
    import spacy
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    model = str(settings.spacy_model)
    named = f"{settings.spacy_key}: {_last(model)}"
    # Presidio would fetch a model that is not there.
    if not spacy.util.is_package(model) and not (Path(model) / "config.cfg").is_file():
        raise RequestError(
            f"{named} is neither an installed model of spaCy nor a folder of one; `python -m "
            "spacy download NAME` "
            "installs one of spaCy's, or leave it out for patterns alone. No model is "
            "fetched by itself"
        )
    try:
        loaded = spacy.load(model)
    except (OSError, ValueError):
        raise RequestError(f"{named} is no model that spaCy can load") from None
    if not any("doc.ents" in loaded.get_pipe_meta(pipe).assigns for pipe in loaded.pipe_names):
        raise RequestError(
            f"{named} has no component that finds names (ner); take another model, or leave "
            "it out for patterns alone"
        )
    engine = SpacyNlpEngine(models=[{"lang_code": settings.language, "model_name": _last(model)}])
    engine.nlp = {settings.language: loaded}
    return engine


def _keep_offline(recognizers: Sequence[Any]) -> None:
    """Let the recognizer of e-mail addresses use the list of domains that is installed, and fetch
    none.
    """
    import tldextract
    from presidio_analyzer.predefined_recognizers import EmailRecognizer

    extract = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())
    for recognizer in recognizers:
        if isinstance(recognizer, EmailRecognizer):
            recognizer.validate_result = lambda found: extract(found).fqdn != ""
