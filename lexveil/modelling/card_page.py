"""The card of a shipped model as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lexveil.artifacts.packaged_model import ModelCard


def card_page(card: ModelCard, coverage: Mapping[str, Any] | None) -> str:
    """The page, in Markdown; ``coverage`` is which of the words of public texts it knows, by set."""
    quality = card.quality
    blocks = [
        f"# The model {card.name}",
        f"Written by `python .ci/reference.py --write` from `lexveil/models/{card.name}/model.json`; do not edit.",
        f"{card.description}. Version {card.version}, {card.built}; language {card.language}.",
        f"**{card.n_tokens:,} tokens** in one space of {card.dimensions} dimensions: {card.n_words:,} words, "
        f"{card.n_bigrams:,} collocations of two words and {card.n_trigrams:,} of three. "
        f"A document of its corpus has {card.average_words:.1f} words on average.",
        f"**Licence: {card.license}.** Attribution stands in `NOTICE.md` beside the model. It holds numbers, words and "
        "collocations, and no sentence of its sources.",
        "## Sources",
        _table(
            ("source", "documents", "words", "licence, and who states it", "from"),
            ((one.name, f"{one.documents:,}", f"{one.words:,}", one.license, one.origin) for one in card.sources),
        ),
        "## Cleaning and screens",
        _list(card.cleaning),
        "Left out of the vocabulary, after everything of too few documents:",
        _table(("because of", "tokens"), ((name, f"{n:,}") for name, n in card.dropped.items())),
        "## Known faults",
        _list(card.known_faults),
        "## Quality",
        _table(
            ("set", "known", "of", "result"),
            [
                *(
                    (name, f"{one['pairs_known']:,}", f"{one['pairs']:,}", f"Spearman {one['spearman']}")
                    for name, one in quality["similarity"].items()
                ),
                (
                    "analogies of gensim",
                    f"{quality['analogies']['questions_known']:,}",
                    f"{quality['analogies']['questions']:,}",
                    f"accuracy {quality['analogies']['accuracy']}",
                ),
            ],
        ),
    ]
    if coverage is not None:
        blocks += [
            "Share of the words that it knows as single words, of texts evenly spaced in public sets: of all, numbers, "
            "handles and hyphenated words among them, and of those of letters and apostrophes alone "
            "(measured once; the sets are not part of the project):",
            _table(
                ("set", "texts", "words", "known", "of letters alone"),
                (
                    (
                        name,
                        f"{one['texts']:,}",
                        f"{one['words']:,}",
                        f"{one['coverage']:.1%}",
                        f"{one['coverage_of_letters']:.1%}",
                    )
                    for name, one in coverage["of"].items()
                ),
            ),
        ]
    blocks += [
        "Nearest tokens:",
        _table(("token", "count", "nearest"), map(_neighbours, quality["neighbours_of"])),
        "The same of frequent, middle and rare tokens of each length:",
        _table(
            ("length", "frequency", "token", "count", "nearest"),
            (
                (length, place, *_neighbours(one))
                for length, places in quality["neighbours"].items()
                for place, several in places.items()
                for one in several
            ),
        ),
        "Collocations:",
        _table(("by count", "collocations"), ((k, ", ".join(v)) for k, v in quality["collocations"].items())),
        "## Parameters and hashes",
        "Made by `lexveil model build`; the same texts, parameters and versions give the same bytes.",
        _table(("made with", ""), ((name, f"`{value}`") for name, value in card.made_with.items())),
        _table(
            ("parameter", "value"),
            (
                (f"{section}.{key}", f"`{value}`")
                for section, values in card.parameters.items()
                if isinstance(values, dict)
                for key, value in values.items()
            ),
        ),
        _table(("file", "sha256"), ((name, f"`{digest}`") for name, digest in card.files.items())),
    ]
    return "\n\n".join(blocks) + "\n"


def _neighbours(one: Mapping[str, Any]) -> tuple[str, str, str]:
    return one["token"], f"{one['count']:,}", ", ".join(near["token"] for near in one["neighbours"])


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
