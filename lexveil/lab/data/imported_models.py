"""Import of external word vectors as a packaged model for strategies S1 to S4.

The words and their vectors come from the file. Collocations, PMI and counts come from an existing
model; a collocation is taken if the file has all of its words, and its vector is composed of theirs
(``lexveil.core.embeddings.composition``). If the file has its own collocations, their scores come
from tables beside the file, in the form that the authors of CLMLDP released. Everything is public
and fixed before any private text is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from lexveil.base.errors import RequestError, option
from lexveil.base.runtime.hashes import sha256, version
from lexveil.base.types import Counts, Floats, Orders
from lexveil.core.accounting.structure import Replacements
from lexveil.core.embeddings.composition import composable, composed
from lexveil.core.embeddings.word_orders import EXACT_BELOW, Search, greedy_orders
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.text.normal_forms import normal_form
from lexveil.io.artifacts.packaged_model import (
    CorpusSource,
    ModelContent,
    PackagedModel,
    lexicons_of,
    quantized,
    write_packaged,
)
from lexveil.io.artifacts.structure import MeasuredStructure, measured
from lexveil.io.config import parse_params
from lexveil.io.execution.stage import Progress
from lexveil.io.formats.messages import shown
from lexveil.lab.data.default import articles
from lexveil.lab.data.released_tables import read_scores
from lexveil.lab.data.word_vectors import JOINT, WordVectors, read_model

# default: the number of words of the model that ships; the orders are computed in a minute
MAX_WORDS = 50_000
# largest number of tokens with exact orders; more tokens use approximate neighbours
EXACT_UP_TO = 8 * EXACT_BELOW
# seed of the starts of the orders and of the replaced words: the same file gives the same model
PUBLIC_SEED = 0
ENGLISH = "en"
LEE_CORPUS = (
    "350 English news articles of 2000 and 2001 (the Lee corpus of gensim), not the texts from "
    "which the vectors were trained"
)


@dataclass(frozen=True, slots=True)
class Import:
    """Settings of an import of word vectors, including facts about the model that the file of
    vectors does not contain.

    Attributes:
        name, version: name and version of the new model.
        license: licence under which the vectors may be used.
        mixed_license: licence under which the whole model may be used, if its collocations have
            another licence than its vectors.
        language: language of the words, for example en.
        collocations: model from which the collocations are taken; None makes a model of single
            words, or of the file's own collocations.
        max_words: number of usable words to take, from the start of the file; files list frequent
            words first.
        tables: released tables of the scores of pairs and of triples, for the collocations of the
            file; None takes no collocation from the file.
        listed: public list of words to take from the file; None takes all words.
    """

    name: str
    license: str
    language: str
    collocations: PackagedModel | None
    version: str = "1"
    max_words: int = MAX_WORDS
    tables: tuple[Path, Path] | None = None
    listed: Path | None = None
    mixed_license: str | None = None


def import_vectors(file: Path, wanted: Import, folder: Path, progress: Progress) -> None:
    """Make a packaged model from a file of word vectors, and write it into ``folder``.

    Args:
        progress: advances by one for each token that is placed in an order.

    Raises:
        RequestError: if the file does not hold word vectors, has fewer than two words, or its
            numbers are too large.
    """
    scores = None if wanted.tables is None else read_scores(*wanted.tables)
    model = read_model(
        file,
        wanted.max_words,
        wanted.language,
        with_collocations=scores is not None,
        listed=None if wanted.listed is None else read_word_list(wanted.listed),
    )
    if len(model.space.tokens) < 2:
        raise RequestError(f"{shown(file)}: only one usable word; a model needs at least two")
    if scores is None:
        space, pmi = with_collocations(model.space, wanted.collocations)
    else:
        space, pmi = with_scores(model, scores, file)
    rows, scales = quantized(space.vectors)
    if not (np.isfinite(space.vectors).all() and (scales > 0).all()):
        raise RequestError(
            f"{shown(file)}: its numbers are too large or too small for single precision; "
            "rescale the vectors"
        )
    # The values that a reader of the model gets after the rounding to 8 bits.
    vectors = rows.astype(np.float32) * scales[:, None]
    search: Search = "exact" if len(vectors) <= EXACT_UP_TO else "pynndescent"
    orders = two_orders(
        WordSpace(space.tokens, vectors, space.counts), search, PUBLIC_SEED, "import", progress
    )
    structure = measured_on_news(space.tokens, pmi) if wanted.language == ENGLISH else {}
    card = _card(file, wanted, model, has_structure=bool(structure))
    write_packaged(folder, card, ModelContent(space, pmi, orders, structure, _notice(file, wanted)))


def with_collocations(words: WordSpace, source: PackagedModel | None) -> tuple[WordSpace, Floats]:
    """Add to a vocabulary the collocations of a model whose words are all in ``words``, and sort
    all tokens by falling count.

    A file without counts lists its words by falling frequency. Its r-th word gets the count of the
    r-th most frequent word of the model. Further words, and all words if there is no model, get
    counts by Zipf's law.

    Returns:
        V tokens with their vectors and counts, and (V,) PMI in bits, 0 for single words.
    """
    rows = {word: row for row, word in enumerate(words.tokens)}
    taken: list[str] = []
    taken_counts = np.empty(0, dtype=np.int64)
    taken_pmi = np.empty(0)
    of_words: Counts = np.empty(0, dtype=np.int64)
    if source is not None:
        counts = source.space("mst").counts
        of_words = counts[source.rows("word")]
        taken = composable([token for token in source.tokens if "_" in token], rows)
        number = {token: row for row, token in enumerate(source.tokens)}
        chosen = np.array([number[token] for token in taken], dtype=np.int64)
        taken_counts = counts[chosen]
        taken_pmi = source.pmi[chosen].astype(np.float64)
    own = words.counts if words.counts.any() else counts_by_rank(len(words.tokens), of_words)
    every = np.clip(np.concatenate([own, taken_counts]), 1, 2**32 - 1)
    order = np.argsort(-every, kind="stable")
    tokens = [*words.tokens, *taken]
    vectors = np.concatenate([words.vectors, composed(taken, rows, words.vectors)])
    pmi = np.concatenate([np.zeros(len(rows)), taken_pmi])
    return WordSpace([tokens[row] for row in order.tolist()], vectors[order], every[order]), pmi[
        order
    ]


def with_scores(
    model: WordVectors, scores: Mapping[str, float], file: Path
) -> tuple[WordSpace, Floats]:
    """Sort the words and collocations of a vector file by falling count, and give each collocation
    its score from a released table. Collocations without a score are left out.

    Returns:
        V tokens with their vectors and counts, and (V,) scores in bits, 0 for single words.

    Raises:
        RequestError: if a word of a collocation is not a word of the file, or no collocation has a
            score.
    """
    space = model.space
    words = {token for token in space.tokens if JOINT not in token}
    pairs = [token for token in space.tokens if JOINT in token]
    for token in pairs:
        if unknown := [word for word in token.split(JOINT) if word not in words]:
            raise RequestError(
                f"{shown(file)}: the collocation {shown(token)} contains the word "
                f"{shown(unknown[0])}, which has no vector of its own; list the words that have "
                f"a vector by {option('words')} FILE"
            )
    if not any(token in scores for token in pairs):
        raise RequestError(
            f"{shown(file)}: none of its {len(pairs):,} collocations is in the tables; use the "
            "tables that belong to this embedding"
        )
    taken = [JOINT not in token or token in scores for token in space.tokens]
    model.left_out["no_score"] = len(taken) - sum(taken)
    rows = np.flatnonzero(taken)
    tokens = [space.tokens[row] for row in rows.tolist()]
    counts = space.counts[rows]
    if not counts.any():
        counts = counts_by_rank(len(tokens), np.empty(0, dtype=np.int64))
    order = np.argsort(-np.clip(counts, 1, 2**32 - 1), kind="stable")
    ordered = [tokens[row] for row in order.tolist()]
    pmi = np.array([scores.get(token, 0.0) for token in ordered])
    every = np.clip(counts, 1, 2**32 - 1)[order]
    return WordSpace(ordered, space.vectors[rows][order], every), pmi


def read_word_list(file: Path) -> frozenset[str]:
    """Read a public list of words, one per line, and return the normal forms of the words.

    Raises:
        RequestError: if the file cannot be read or holds no word.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise RequestError(f"{shown(file)}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise RequestError(f"{shown(file)}: not in UTF-8; a list has one word per line") from None
    words = frozenset(normal_form(line.strip()) for line in lines if line.strip())
    if not words:
        raise RequestError(f"{shown(file)}: holds no word; a list has one word per line")
    return words


def counts_by_rank(n: int, known: Counts) -> Counts:
    """Estimate the counts (n,) of words that are listed by falling frequency: the counts of
    ``known``, sorted falling, continued in proportion to 1 / rank (Zipf's law).
    """
    ranks = np.arange(1, n + 1)
    last, of_last = (int(known[-1]), len(known)) if len(known) else (n, 1)
    counts = np.maximum(1, last * of_last // ranks)
    counts[: len(known)] = known[:n]
    return counts.astype(np.int64)


def two_orders(
    space: WordSpace, search: Search, seed: int, purpose: str, progress: Progress
) -> dict[str, Orders]:
    """Compute (2, n) one-dimensional orders of the vocabulary for the mechanism 1-Diffractor: one
    pair of orders of the single words and one pair of all tokens. The seed decides the two starting
    tokens of each pair.

    Args:
        purpose: name from which the random streams are derived.
    """
    parts = {
        "word": space.vectors[["_" not in token for token in space.tokens]],
        "all": space.vectors,
    }
    progress.total = 2 * sum(map(len, parts.values()))
    orders = {}
    for name, vectors in parts.items():
        starts = [int(stream(seed, purpose, name, str(i)).integers(len(vectors))) for i in range(2)]
        orders[name] = greedy_orders(vectors, starts, search, seed, progress.advance)
    return orders


def measured_on_news(tokens: Sequence[str], pmi: Floats) -> dict[str, MeasuredStructure]:
    """Measure how much the disclosed structure of a text (its segmentation into tokens) changes if
    one word is replaced, on public English texts that every installation has.

    The measurement of another model cannot be reused, because the sensitivity depends on the
    vocabulary and the collocations.
    """
    import pyarrow as pa

    from lexveil.core.text.tokenize import tokenize_texts

    texts = articles()
    tokens_of_texts = tokenize_texts(pa.array(texts, pa.large_string()))
    counts = np.bincount(tokens_of_texts.ids).tolist()
    words, frequencies = zip(
        *sorted(zip(tokens_of_texts.words.to_pylist(), counts, strict=True)), strict=True
    )
    replacements = Replacements(
        texts, words, np.array(frequencies), stream(PUBLIC_SEED, "import", "structure")
    )
    params = parse_params({"seed": PUBLIC_SEED})
    return {
        one.segmentation: measured(one, replacements, params, LEE_CORPUS)
        for one in lexicons_of(tokens, pmi, ENGLISH)
    }


def _card(
    file: Path, wanted: Import, model: WordVectors, *, has_structure: bool
) -> dict[str, object]:
    """Return the metadata card of the imported model, without the fields that are computed from the
    model's files.
    """
    source = wanted.collocations
    digest = sha256(file)
    has_counts = bool(model.space.counts.any())
    origin = f"{model.form}, sha256 {digest}"
    sources = [
        CorpusSource(name=file.name, documents=0, words=0, license=wanted.license, origin=origin)
    ]
    made_with = {"file": digest, "lexveil": version()}
    if source is not None:
        base_name = f"{source.card.name} {source.card.version}"
        origin = (
            f"collocations, PMI and counts of model {base_name}, sha256 of its card {source.hash}"
        )
        sources.append(
            CorpusSource(
                name=base_name, documents=0, words=0, license=source.card.license, origin=origin
            )
        )
        made_with["collocations"] = source.hash
    if wanted.tables is not None:
        named_tables = zip(("bigrams", "trigrams"), wanted.tables, strict=True)
        made_with |= {name: sha256(table) for name, table in named_tables}
    if wanted.listed is not None:
        made_with["words"] = sha256(wanted.listed)
    faults = {
        "The texts from which the vectors were trained are unknown; the importer stated the "
        "licence.": True,
        "The vector of a collocation is the mean of its words' vectors; any further meaning of "
        "the collocation is lost.": source,
        "Counts of words follow from their rank in the file.": not has_counts,
        "The sensitivity of the disclosed structure was not measured, because no public text "
        "of this language is installed.": not has_structure,
    }
    return {
        **{key: getattr(wanted, key) for key in ("name", "version", "language")},
        "license": wanted.mixed_license or wanted.license,
        "description": f"Word vectors of {file.name} with {_kind_of_collocations(wanted)} "
        "collocations",
        "built": datetime.now(UTC).date().isoformat(),
        "average_words": source.card.average_words if source else 0.0,
        "sources": sources,
        "cleaning": ["Words that the tokenizer never produces were left out."],
        "dropped": model.left_out,
        "parameters": {
            "max_words": wanted.max_words,
            "counts": "of the file" if has_counts else "by rank",
            "composition": "mean" if source else "none",
        },
        "made_with": made_with,
        "quality": {},
        "known_faults": [fault for fault, applies in faults.items() if applies],
    }


def _kind_of_collocations(wanted: Import) -> str:
    """Return one word that states where the collocations of an imported model come from."""
    if wanted.tables is not None:
        return "its own"
    return "composed" if wanted.collocations else "no"


def _notice(file: Path, wanted: Import) -> str:
    """Return the attribution text for the vectors, and for the model from which collocations were
    taken.
    """
    notice = f"# {wanted.name}\n\nWord vectors of {shown(file.name)}: {wanted.license}.\n"
    if wanted.mixed_license is not None:
        notice += f"The model as a whole: {wanted.mixed_license}, as stated by its importer.\n"
    if (source := wanted.collocations) is not None:
        notice += f"\nCollocations, PMI and counts of {source.card.name} {source.card.version}:\n\n"
        notice += (source.folder / "NOTICE.md").read_text(encoding="utf-8")
    return notice.rstrip("\n") + "\n"
