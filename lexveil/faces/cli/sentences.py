"""The verb of banks of sentences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lexveil.core.screen_parts import DEFAULT
from lexveil.faces.cli.options import CHOSEN, ChosenModel, Count, Json, ModelName, Rows, actions
from lexveil.faces.cli.output import show

if TYPE_CHECKING:
    from lexveil.io.artifacts.sentence_banks import BankCard

sentences = actions(
    "sentences",
    """Banks of public sentences, to put in the place of texts.

    A bank is made of public texts alone: each text that is rewritten with it becomes sentences that
    people wrote there.

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
    """Make a bank of the sentences of public texts.

    Takes distinct sentences of 3 to 25 words, of which the model knows 95 % at least, without
    numbers, addresses and words of the public list of words that are never put out; of more than
    are wanted those of the smallest hash.

    Args:
        sources: files or folders of public texts
        output: folder to write
        text_column: column of the texts
        size: sentences at most
        seed: of the choice of sentences
        screen: the parts of the public list whose words stand in no sentence: vulgar, jargon,
            health, crime, religion, names; or none
        public: declare that no private text is among the sources; without it, releases refuse the
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
    show(card.to_dict() if json else card, json, lambda made: _lines(made, str(output)))


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
    """Show the card of a bank, or the sentences of it that are nearest to a sentence.

    Args:
        bank: folder of the bank, or shipped, the packaged one (default: that of the project's run,
            else the packaged one)
        sentence: any sentence
        nearest: number of sentences to show
    """
    from lexveil.io.artifacts.bank_neighbours import neighbours
    from lexveil.io.artifacts.default_bank import SHIPPED, bank_named, takes_written_bank
    from lexveil.io.artifacts.model import Model
    from lexveil.io.artifacts.sentence_banks import read_card

    model = Model.load(name=words.name)
    folder = bank_named(bank, model)
    if sentence is None:
        card = read_card(folder)
        called = SHIPPED if takes_written_bank(bank, model) else bank or str(folder)
        show(card.to_dict() if json else card, json, lambda made: _lines(made, called))
        return
    found = neighbours(folder, sentence, nearest, model)
    show(
        [one.to_dict() for one in found] if json else found,
        json,
        lambda listed: [f"{one.distance:.3f}  {one.sentence}" for one in listed],
    )


def _lines(card: object, called: str) -> list[str]:
    from lexveil.io.artifacts.sentence_banks import BankCard

    assert isinstance(card, BankCard)
    said = "public" if card.public else "not said to be public, so that releases refuse it"
    return [
        f"{called}: {card.sentences:,} sentences of {card.least_words} to {card.most_words} words, "
        f"{said}",
        f"of {', '.join(source.name for source in card.sources)}",
        f"no sentence has a word of these parts: {', '.join(card.screen.parts) or 'none'}",
        f"vectors of model {card.model} ({card.model_sha256[:12]}), {card.dimensions} dimensions",
        *_levels(card),
    ]


def _levels(card: BankCard) -> list[str]:
    """Return the levels of protection of a bank, a line each."""
    if not card.levels:
        return ["no levels of protection: they need 1,000 texts of about 40 words"]
    return [
        f"protection {level.level}: epsilon {level.epsilon:g} of each of 4 sentences; of 1,000 "
        f"texts {level.linkage:.1%} are found again, and {level.content:.1%} of their content "
        f"words named ({level.rare:.1%} of the rare ones)"
        for level in card.levels
    ]
