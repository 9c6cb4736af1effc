"""`lexveil purpose`: public scales of words that a metric keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lexveil.cli.options import Json, ModelName, actions
from lexveil.cli.output import show

purpose = actions(
    "purpose",
    """Scales of words that rewriting keeps: more use of a text for one purpose, at the same recovery of its words.

    A purpose is a public scale, as of sentiment: words of one side are more often replaced by words of that side. What
    a text says on the scale is hidden less; the record says by how much. One ships with Lexveil: sentiment.

        lexveil purpose list
        lexveil purpose show sentiment
        lexveil privatize reviews.csv -o out.csv --purpose sentiment
        lexveil purpose build labelled.csv -o urgency.tsv --public
        lexveil privatize tickets.csv -o out.csv --purpose urgency.tsv=1
    """,
)


@purpose.command(name="list")
def list_purposes(*, json: Json = False) -> int:
    """The scales that are there: those that ship, and those in your data folder."""
    from lexveil.artifacts.purpose_files import installed

    show({name: str(file) for name, file in installed().items()}, json)
    return 0


@purpose.command(name="show")
def show_scale(
    name: Annotated[str, Parameter(name="NAME|FILE")], /, *, model: ModelName = None, json: Json = False
) -> int:
    """The ends of a scale, and how much of it a model's words know: of which words, and what share of all tokens.

    Args:
        name: of a purpose, as `lexveil purpose list` shows it, or a file
    """
    from lexveil.modelling import scales

    scale = scales.shown(name, model)
    show(scale.to_dict() if json else scale, json, scales.as_text)
    return 0


@purpose.command
def build(
    source: Annotated[Path, Parameter(name="IN")],
    /,
    *,
    output: Annotated[Path, Parameter(metavar="FILE", alias="-o")],
    model: ModelName = None,
    text_column: Annotated[str, Parameter(metavar="NAME")] = "text",
    label_column: Annotated[str, Parameter(metavar="NAME")] = "label",
    as_given: bool = False,
    public: bool = False,
) -> int:
    """Make a scale of words with scores, or learn it from texts with labels.

    Of texts, naive Bayes finds what each word says of the label. Words that IN does not know get a score by
    where they stand in the space of the model.

        lexveil purpose build seeds.tsv -o sentiment.tsv --public
        lexveil purpose build labelled.jsonl -o urgency.tsv --label-column urgent --public

    Args:
        source: a file with columns word and score (-1 to 1), or text and label, of which there are two
        output: the scale, a .tsv file whose name names the purpose
        text_column: the column of texts
        label_column: their label: 0 and 1, or two words, the second in the alphabet is +1
        as_given: only the words of IN, and no others that stand near them in the space
        public: no private text has a part in IN: without it, the scale is refused in a release
    """
    from lexveil.modelling import scales

    scales.build(source, output, model, text_column, label_column, as_given=as_given, is_public=public)
    show(scales.shown(str(output), model), False, scales.as_text)
    return 0
