"""Packaging of a project's trained embedding as a model folder: the tokens that passed the word
screens, their vectors, and the metadata card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.tables import read_table, require
from lexveil.base.types import Floats
from lexveil.core.accounting.structure import Replacements
from lexveil.core.embeddings.intrinsic_evaluation import (
    analogies,
    nearest,
    neighbour_samples,
    similarity,
)
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.io.artifacts.base_model import find_base
from lexveil.io.artifacts.packaged_model import (
    CorpusSource,
    ModelCard,
    ModelContent,
    lexicons_of,
    quantized,
    write_packaged,
)
from lexveil.io.artifacts.structure import MeasuredStructure, first_texts, measured
from lexveil.io.artifacts.training import SIMILARITY, load_analogies, load_similarity
from lexveil.io.config import MachineParams, ModelParams, Params
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.stage import Progress
from lexveil.io.execution.stage_code import code_hashes
from lexveil.lab.data.imported_models import two_orders
from lexveil.lab.modelling.screening import Screened

STREAM = "package_model"  # name of the random streams
N_TEXTS = 1000  # number of texts of the corpus on which the structure is measured
TEXTS = "texts of the corpus that the model was trained on"
LIBRARIES = ("duckdb", "gensim", "lexveil", "numpy", "pyarrow", "scipy")
UNKNOWN_ORIGIN = "given by the builder of the model"
SHOWN = 30  # number of sample collocations from the top, from the middle and near the threshold


def package(
    folder: Path,
    screened: Screened,
    trained: WordSpace,
    pmi: Mapping[str, float],
    params: Params,
    machine: MachineParams,
) -> ModelCard:
    """Write a packaged model of the tokens that passed the word screens into ``folder``.

    Args:
        trained: the embedding, which contains all of these tokens.
        pmi: PMI in bits, by collocation.
    """
    row_of = {token: row for row, token in enumerate(trained.tokens)}
    tokens = [one.token for one in screened.kept]
    rows, scales = quantized(np.asarray(trained.vectors)[[row_of[token] for token in tokens]])
    # Everything below uses the quantized vectors, as they will be loaded, with their trained
    # lengths.
    counts = np.array([one.count for one in screened.kept], dtype=np.int64)
    space = WordSpace(tokens, rows.astype(np.float32) * scales[:, None], counts)
    bits = np.array([pmi[token] if "_" in token else 0.0 for token in tokens])
    wanted = params.model
    sources = sources_of(wanted, machine)
    if (base := find_base(params.embeddings)) is not None:
        base_name = f"model {base.card.name} {base.card.version}"
        origin = f"the model that the training began with, sha256 of its card {base.hash}"
        sources.append(
            CorpusSource(
                name=base_name, documents=0, words=0, license=base.card.license, origin=origin
            )
        )
    n_documents = sum(one.documents for one in sources)
    n_words = sum(one.words for one in sources)
    said = (
        "name",
        "version",
        "language",
        "license",
        "description",
        "built",
        "cleaning",
        "known_faults",
    )
    card = {
        **{key: getattr(wanted, key) for key in said},
        "average_words": n_words / n_documents,
        "sources": sources,
        "dropped": screened.dropped,
        "parameters": _parameters(params),
        "made_with": {
            "corpus": sha256(paths.SAMPLE),
            "code": code_hashes()["package_model"],
            **{name: version(name) for name in LIBRARIES},
        },
        "quality": _quality(space, wanted.neighbours_of),
    }
    progress = Progress("orders", 0, "tokens")
    orders = two_orders(space, params.word_orders.search, params.seed, STREAM, progress)
    structure = _structure(space, bits, params)
    attribution = notice(wanted, sources)
    return write_packaged(
        folder, card, ModelContent(space, bits, orders, structure, attribution, wanted.scale)
    )


def sources_of(wanted: ModelParams, machine: MachineParams) -> list[CorpusSource]:
    """Return the numbers of documents and words of each corpus source, with the licence and origin
    that ``wanted`` states for the source.
    """
    kinds = read_table(paths.WORDS, "sample_corpus", ["word_id", "kind"])
    words = kinds.filter(pc.not_equal(kinds.column("kind"), "punctuation")).column("word_id")
    first = pc.min(words).as_py()
    with duckdb_session.session(machine) as con:
        con.register("sample", con.read_parquet(str(paths.SAMPLE)))
        con.register("tokens", con.read_parquet(str(require(paths.TOKENS, "sample_corpus"))))
        rows = duckdb_session.run(
            con, "model/sources", first_word=0 if first is None else first
        ).fetchall()
    sources = []
    for name, n_documents, n_words in rows:
        known = wanted.sources.get(name)
        license, origin = (
            (known.license, known.origin) if known else (wanted.license, UNKNOWN_ORIGIN)
        )
        sources.append(
            CorpusSource(
                name=name or "corpus",
                documents=n_documents,
                words=n_words,
                license=license,
                origin=origin,
            )
        )
    return sources


def notice(wanted: ModelParams, sources: Sequence[CorpusSource]) -> str:
    """Return the attribution text of the corpus sources, which is stored beside the model."""
    lines = [f"# {wanted.name} {wanted.version}", "", f"Licence of the model: {wanted.license}."]
    lines += ["", "It holds numbers, words and collocations, and no sentence of its sources:", ""]
    lines += [f"- {one.name}: {one.license}. From {one.origin}." for one in sources]
    return "\n".join(lines) + "\n"


def _parameters(params: Params) -> dict[str, object]:
    """Return the parameters that, together with corpus and code, determine the bytes of the
    model.
    """
    said = ("sources", "cleaning", "known_faults", "description", "neighbours_of")
    values = params.model_dump(
        mode="json", include={"seed", "sample", "count", "collocations", "embeddings", "model"}
    )
    values["model"] = {key: value for key, value in values["model"].items() if key not in said}
    return values


def _structure(space: WordSpace, pmi: Floats, params: Params) -> dict[str, MeasuredStructure]:
    """Measure how much the disclosed structure of a text (its segmentation into tokens) changes if
    one word is replaced, with the model's vocabulary.

    Raises:
        RequestError: if the corpus has fewer than two different words.
    """
    words = read_table(paths.WORDS, "sample_corpus", ["word", "count"])
    drawn = stream(params.seed, STREAM, "structure")
    language = params.model.language
    try:
        known = words.column("word").to_pylist()
        counts = words.column("count").to_numpy()
        replacements = Replacements(
            first_texts(paths.SAMPLE, N_TEXTS), known, counts, drawn, language
        )
    except ValueError as error:
        raise RequestError(f"{STREAM}: {error}; enlarge the corpus") from None
    return {
        one.segmentation: measured(one, replacements, params, TEXTS)
        for one in lexicons_of(space.tokens, pmi, language)
    }


def _quality(space: WordSpace, asked: Sequence[str]) -> dict[str, object]:
    return {
        "similarity": {name: similarity(space, load_similarity(name)) for name in SIMILARITY},
        "analogies": analogies(space, load_analogies()),
        "neighbours": neighbour_samples(space),
        "neighbours_of": nearest(space, asked),
        "collocations": _some_collocations(space),
    }


def _some_collocations(space: WordSpace) -> dict[str, list[str]]:
    """Return examples of the model's collocations: the most frequent, some from the middle, and
    some that just passed the threshold.
    """
    tokens = [token for token in space.tokens if "_" in token]
    middle = max(0, len(tokens) // 2 - SHOWN // 2)
    return {
        "top": tokens[:SHOWN],
        "middle": tokens[middle : middle + SHOWN],
        "threshold": tokens[-SHOWN:],
    }
