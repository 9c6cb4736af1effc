"""The verb `lexveil sentences`, which builds and shows sentence banks: sets of public sentences
that replace texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lexveil.core.screen_parts import DEFAULT
from lexveil.faces.cli.options import CHOSEN, ChosenModel, Count, Json, ModelName, Rows, actions
from lexveil.faces.cli.output import show

if TYPE_CHECKING:
    from lexveil.io.artifacts.sentence_banks import BankCard, BankLevel

sentences = actions(
    "sentences",
    """Banks of public sentences, which replace texts.

    A bank is made of public texts alone. Each text that is rewritten with the bank becomes
    sentences from these public texts.

        lexveil sentences build forum.jsonl news.jsonl.gz -o bank --public
        lexveil sentences show
        lexveil sentences show bank
        lexveil sentences show shipped "The parcel never came."
    """,
)


@sentences.command
def build(
    *sources: Annotated[Path, Parameter(name="PUBLIC")],
    output: Annotated[Path, Parameter(metavar="BANK", alias="-o")],
    model: ModelName = None,
    text_column: Annotated[str, Parameter(metavar="NAME")] = "text",
    size: Count = 100_000,
    seed: Annotated[int, Parameter(metavar="N")] = 1,
    public: bool = False,
    screen: Annotated[str, Parameter(metavar="PART,PART")] = DEFAULT,
    json: Json = False,
) -> None:
    """Make a sentence bank, a set of sentences that can replace texts, from public texts.

    Takes distinct sentences of 3 to 25 words if the model knows at least 95 % of the words, and if
    the sentence has no number, no address and no word of the public list of screened words. If
    there are more sentences than --size, those with the smallest hashes are taken.

    Args:
        sources: files or folders of public texts
        output: folder to write
        text_column: column of the texts
        size: largest number of sentences
        seed: seed of the choice of sentences
        screen: the parts of the public word list whose words occur in no sentence: vulgar, jargon,
            health, crime, religion, names; or none
        public: declare that no private text is among the sources; without this, releases refuse the
            bank
    """
    from lexveil.base.errors import RequestError
    from lexveil.lab.data.sentence_banks import BankOptions
    from lexveil.lab.data.sentence_banks import build as build_bank

    if not sources:
        raise RequestError("the following arguments are required: PUBLIC, a file of public texts")
    options = BankOptions(
        model=model,
        text_column=text_column,
        size=size,
        seed=seed,
        is_public=public,
        screen=screen,
    )
    card = build_bank(sources, output, options)
    levels = _levels_of(card)
    show(card.to_dict() if json else card, json, lambda made: _lines(made, str(output), levels))


@sentences.command(name="show")
def show_bank(
    bank: Annotated[str | None, Parameter(name="BANK")] = None,
    sentence: Annotated[str | None, Parameter(name="SENTENCE")] = None,
    /,
    *,
    nearest: Rows = 10,
    words: ChosenModel = CHOSEN,
    json: Json = False,
) -> None:
    """Show the metadata card of a sentence bank, or the sentences of the bank that are nearest to a
    sentence.

    Args:
        bank: folder of the bank, or shipped for the packaged bank (default: the bank of the
            project's run, else the packaged bank)
        sentence: any sentence
        nearest: number of sentences to show
    """
    from lexveil.io.artifacts.bank_neighbours import neighbours
    from lexveil.io.artifacts.default_bank import (
        SHIPPED,
        bank_named,
        levels_of_written,
        takes_written_bank,
    )
    from lexveil.io.artifacts.model import Model
    from lexveil.io.artifacts.sentence_banks import read_card

    model = Model.load(name=words.name)
    folder = bank_named(bank, model)
    if sentence is None:
        card = read_card(folder)
        called = bank or str(folder)
        levels = _levels_of(card)
        if takes_written_bank(bank, model):
            called = SHIPPED
            measured = levels_of_written(model)
            levels = [line for one in measured for line in _levels(one.levels, one.settings)]
        show(card.to_dict() if json else card, json, lambda made: _lines(made, called, levels))
        return
    found = neighbours(folder, sentence, nearest, model)
    show(
        [one.to_dict() for one in found] if json else found,
        json,
        lambda listed: [f"{one.distance:.3f}  {one.sentence}" for one in listed],
    )


def _lines(card: BankCard, called: str, levels: Sequence[str]) -> list[str]:
    said = "public" if card.public else "not declared public, so that releases refuse the bank"
    return [
        f"{called}: {card.sentences:,} sentences of {card.least_words} to {card.most_words} words, "
        f"{said}",
        f"sources: {', '.join(source.name for source in card.sources)}",
        "screened parts of the public word list, whose words occur in no sentence: "
        f"{', '.join(card.screen.parts) or 'none'}",
        f"vectors of model {card.model} ({card.model_sha256[:12]}), {card.dimensions} dimensions",
        *levels,
    ]


def _levels_of(card: BankCard) -> list[str]:
    """Return the protection levels in the metadata card of a sentence bank, one line of text per
    level.
    """
    if not card.levels:
        return ["no levels of protection, which need 1,000 public texts of about 40 words"]
    return _levels(card.levels, "4 for a text")


def _levels(levels: Sequence[BankLevel], settings: str) -> list[str]:
    """Return the protection levels that were measured with some settings, one line of text per
    level.
    """
    return [
        f"protection {level.level}, {settings}: epsilon {level.epsilon:g} of each sentence; an "
        f"adversary identifies {level.linkage:.1%} of 1,000 texts, and names "
        f"{level.content:.1%} of their content words ({level.rare:.1%} of the rare words)"
        + (f"; that is more than the level allows: {level.missed}" if level.missed else "")
        for level in levels
    ]
