"""Measures the levels of protection of the packaged bank on several kinds of public text.

    python -m benchmarks.written_bank.levels      # the table of docs/reference/levels.md

prints what was measured.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.protection import read_texts
from benchmarks.table import markdown
from lexveil.base.runtime.tables import write_json
from lexveil.core.embeddings.sentences import CutTexts
from lexveil.io.artifacts.default_bank import (
    WRITTEN,
    WRITTEN_LEVELS,
    MeasuredWritten,
    WrittenLevels,
    bank_of,
    read_written_card,
)
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import (
    STRATEGY,
    open_bank,
    vectors_sha256,
)
from lexveil.lab.data.default import DRUG_PACKAGE, write_default_documents
from lexveil.lab.data.public_sentences import TextSample
from lexveil.readers.bank_levels import BankCalibration, found_levels

COLUMNS = {
    "settings": "sentences, purpose",
    "level": "level",
    "epsilon": "ε",
    "linkage": "found among 1,000",
    "content": "content words named (without output)",
    "rare": "rare words named (without output)",
}
# of each: the purposes of the model, and the sentences that are written for a text
SETTINGS = (
    ("en", 4),
    ("en+sentiment=3", 4),
    ("en", 8),
    ("en+sentiment=3", 8),
    ("en", None),
    ("en+sentiment=3", None),
)


def write_levels(files: Sequence[Path], work: Path) -> None:
    """Measure the levels, and write them to the folder of the packaged bank.

    Args:
        files: public texts, a kind in each file, beside the reviews of medicines.
        work: a folder for the reviews.
    """
    reviews = work / DRUG_PACKAGE
    if not reviews.exists():
        write_default_documents(reviews)
    lexicon = Model.load(name="en").lexicon(STRATEGY)
    kinds = {
        file.stem: TextSample.of(read_texts(file)).pieces(lexicon)
        for file in (*sorted(reviews.iterdir()), *files)
    }
    measured = list[WrittenLevels]()
    for name, per_text in SETTINGS:
        measured.append(levels_of(kinds, Model.load(name=name), per_text))
        print(measured[-1].to_dict(), file=sys.stderr, flush=True)
    table = MeasuredWritten(sentences=read_written_card().sha256, texts=[*kinds], measured=measured)
    write_json(table.to_dict(), WRITTEN / WRITTEN_LEVELS)
    print(page(table))


def levels_of(kinds: Mapping[str, CutTexts], model: Model, per_text: int | None) -> WrittenLevels:
    """Return the levels of one setting, which hold for each kind of text."""
    bank = open_bank(bank_of(model), model)
    searches = [
        BankCalibration(model, bank.space, bank.vectors, texts).search(per_text)
        for texts in kinds.values()
    ]
    return WrittenLevels(
        model=vectors_sha256(model),
        purposes=model.weighted_purposes,
        per_text=per_text,
        levels=found_levels(searches),
    )


def page(table: MeasuredWritten) -> str:
    """Return the table in Markdown."""
    rows = [
        {
            "settings": one.settings,
            "level": f"`{level.level}`",
            "epsilon": f"{level.epsilon:g}",
            "linkage": f"{level.linkage:.1%}",
            "content": f"{level.content:.1%} ({level.content_without:.1%})",
            "rare": f"{level.rare:.1%} ({level.rare_without:.1%})",
        }
        for one in table.measured
        for level in one.levels
    ]
    return markdown(COLUMNS, rows)


if __name__ == "__main__":
    print(page(MeasuredWritten.model_validate_json((WRITTEN / WRITTEN_LEVELS).read_bytes())))
