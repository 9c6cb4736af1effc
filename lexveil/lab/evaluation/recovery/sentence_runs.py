"""Measured recovery of source texts and words from one run with strategy S5, which replaces texts
by sentences of a sentence bank.

The documents are those on which similarity is measured. The adversary knows the exact probability
of each output given a source text. The adversary ranks texts of similar length as sources of each
output, and guesses words by their frequency in the other measured texts
(lexveil.readers.sentence_levels). The shares are functions of source texts, which are evaluation
data; they are for people who may see these texts. The file holds no word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.levels import NoiseSetting, stage_name
from lexveil.base.runtime.tables import read_table, require
from lexveil.base.types import Floats, Ids
from lexveil.core.embeddings.sentences import CutTexts
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.io.artifacts.default_bank import bank_of
from lexveil.io.artifacts.levels import PER_TEXT, named_in_record
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.sentence_banks import SentenceBank, open_bank
from lexveil.io.artifacts.sentence_banks import units_of_texts as units_of
from lexveil.io.artifacts.text_rows import FIELDS, texts_of
from lexveil.io.config import CLEAN, Params
from lexveil.lab.evaluation.metrics.base import STREAM, drawn
from lexveil.lab.evaluation.scores import DECIMALS
from lexveil.readers.bank_levels import BankCalibration
from lexveil.readers.linkage import SIZES, first_chance, like_length, naive_similarities
from lexveil.readers.sentence_levels import named_by
from lexveil.readers.sentences import Channel

LOGGED = ["dataset", "doc_id", "field", "position", "word_id"]


@dataclass(frozen=True, slots=True, repr=False)
class SentenceTexts:
    """Source texts of one data set, with the sentences of a sentence bank that replace some of
    them. This class holds source text.

    Attributes:
        candidates: P texts, among them the sources.
        sources: (m,) position of each output's source among the candidates.
        outputs: the m outputs.
        rows: (m, n) the sentences of each output, as row numbers of the sentence bank.
    """

    candidates: list[str]
    sources: Ids
    outputs: list[str]
    rows: Ids


def datasets(clean: pa.Table, run: Path, params: Params) -> Iterator[tuple[str, SentenceTexts]]:
    """Yield name and texts of every data set."""
    log = pq.read_table(run / "tokens.parquet", columns=LOGGED)
    private = pq.read_table(run / "documents.parquet", columns=["dataset", "doc_id", *FIELDS])
    for dataset in sorted(clean.column("dataset").unique().to_pylist()):
        own, rewritten, drawn_rows = (
            table.filter(pc.equal(table.column("dataset"), dataset))
            for table in (clean, private, log)
        )
        n_texts = 1 + own.column("text_b").is_valid().to_numpy().astype(np.int64)
        # The random stream of the similarity metric draws the same documents.
        rng = stream(params.seed, STREAM, dataset, "texts")
        chosen = drawn(n_texts.tolist(), params.evaluation.max_texts, rng)
        ids = own.column("doc_id").take(pa.array(chosen)).combine_chunks()
        texts = texts_of(own)
        is_measured = pc.is_in(texts.column("doc_id"), ids).to_numpy(zero_copy_only=False)
        others = np.flatnonzero(~is_measured)
        measured = np.flatnonzero(is_measured)
        numbers = np.sort(np.concatenate([measured, others[: max(SIZES[-1] - len(measured), 0)]]))
        written = texts_of(rewritten).column("text").take(pa.array(measured)).to_pylist()
        rows = drawn_rows.column("word_id").to_numpy().reshape(len(texts), PER_TEXT)
        yield (
            dataset,
            SentenceTexts(
                candidates=texts.column("text").take(pa.array(numbers)).to_pylist(),
                sources=np.searchsorted(numbers, measured),
                outputs=written,
                rows=rows[measured],
            ),
        )


def linkage_of_texts(texts: SentenceTexts, scores: Floats) -> dict[str, dict[str, float]]:
    """Return the share of outputs whose source text the adversary ranks first, by the number of
    candidates. An output discloses nothing about a text's form, so all candidates have the same
    structure.

    Args:
        scores: (m, P) log-likelihood of each output, given each candidate as its source.
    """
    n_candidates = len(texts.candidates)
    lengths = np.array([len(text.split()) for text in texts.candidates])
    naive = naive_similarities(texts.outputs, texts.candidates)
    linkage = {}
    for size in [*(size for size in SIZES if size < n_candidates), n_candidates]:
        likelihood = np.zeros(len(texts.sources))
        by_words = np.zeros((len(naive), len(texts.sources)))
        for number, source in enumerate(texts.sources.tolist()):
            among = like_length(lengths, source, size)
            place = int(np.searchsorted(among, source))
            likelihood[number] = first_chance(scores[number, among], place)
            for way, similarity in enumerate(naive):
                by_words[way, number] = first_chance(similarity.of(number)[among], place)
        shares = {
            "structure": 1 / size,
            "naive": float(by_words.mean(axis=1).max()),
            "likelihood": float(likelihood.mean()),
        }
        linkage[str(size)] = {name: round(share, DECIMALS) for name, share in shares.items()}
    return linkage


def measured(
    texts: SentenceTexts, bank: SentenceBank, model: Model, epsilon: float
) -> dict[str, Any]:
    """Measure which source texts and words an adversary recovers from the outputs of one data
    set.
    """
    beta = model.params.mechanisms.tem.beta
    mechanism = SentenceDraws(bank.vectors, bank.space.radius, beta)
    units = units_of(texts.candidates, model)
    channel = Channel.of(mechanism, bank.space.embed(units), texts.rows.ravel(), epsilon)
    places = np.array([channel.place[row] for row in texts.rows.ravel().tolist()])
    scores = channel.log_p.T[places.reshape(texts.rows.shape)].sum(axis=1)
    own = units_of([texts.candidates[source] for source in texts.sources.tolist()], model)
    public = CutTexts(own, own)
    sources = BankCalibration(model, bank.space, bank.vectors, public).sources(PER_TEXT)
    named_words = named_by(sources, scores[:, texts.sources])
    blind = named_by(sources, np.zeros((len(sources), len(sources))))
    return {
        "linkage": linkage_of_texts(texts, scores),
        "named": {
            "content": round(named_words.content, DECIMALS),
            "rare": round(named_words.rare, DECIMALS),
            "content_without_output": round(blind.content, DECIMALS),
            "n_texts": len(texts.sources),
        },
    }


def measure_sentences(
    mechanism: str, strategy: str, level: NoiseSetting, params: Params
) -> dict[str, Any]:
    """Measure the shares of source texts and words that an adversary recovers from one run with
    strategy S5, by data set.

    Raises:
        MissingArtifactError: if the run or the clean baseline does not exist yet.
    """
    run = require(
        paths.private(mechanism, strategy, level),
        stage_name("privatize", mechanism, strategy, level),
    )
    clean = read_table(
        paths.private(*CLEAN) / "documents.parquet", "baseline", ["dataset", "doc_id", *FIELDS]
    )
    model = Model.load(Path(), OWN).of_variant(mechanism)
    bank = open_bank(bank_of(model), model)
    about = named_in_record(mechanism, strategy, level)
    epsilon = float(str(about["epsilon"]))
    by_dataset = {
        dataset: measured(texts, bank, model, epsilon)
        for dataset, texts in datasets(clean, run, params)
    }
    return {
        **about,
        "sentences": PER_TEXT,
        "linkage": {name: found["linkage"] for name, found in by_dataset.items()},
        "named": {name: found["named"] for name, found in by_dataset.items()},
    }
