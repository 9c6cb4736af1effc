"""The verbs of models: the words that texts are rewritten with, and the purposes that their metric keeps."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lexveil.cli.options import Count, Json, ModelName, actions
from lexveil.cli.output import show

model = actions(
    "model",
    """The models that texts are rewritten with: words, collocations, vectors.

    One ships with Lexveil: en, general English. Others come in as one file that someone exported, or are made
    of plain word vectors; no model holds code, and each is checked before it is kept. The name of a model goes
    behind --model of privatize, inspect and audit; own is what `lexveil run` made of a project's corpus.

        lexveil model list
        lexveil model show en
        lexveil model build legal --corpus opinions/ --license CC0-1.0
        lexveil model add legal-2.0.lexveil.zip
        lexveil model add glove.6B.100d.txt --name glove --license PDDL-1.0 --language en
        lexveil model export own -o ours.lexveil.zip
    """,
)
Name = Annotated[
    str, Parameter(name="NAME", help="of a model, as `lexveil model list` shows it; own is that of this project")
]
Text = Annotated[str | None, Parameter(metavar="TEXT")]
Force = Annotated[bool, Parameter(help="replace what is there")]


@model.command(name="list")
def list_models(*, json: Json = False) -> None:
    """The models that are there, as NAME@HASH: those that ship, and those in your data folder."""
    from lexveil.data import model_collection

    show(model_collection.listed(), json)


@model.command(name="show")
def show_card(name: Name, /, *, json: Json = False) -> None:
    """The card of a model: what it is, its licence, sources, quality and known faults."""
    from lexveil.data import model_collection

    show(model_collection.card_of(name), json)


@model.command
def verify(what: Annotated[str, Parameter(name="NAME|FOLDER|FILE")], /, *, json: Json = False) -> None:
    """Check a model: its files against their hashes, every number, every token. Exit code 1 if one is wrong.

    Nothing in it is executed, and nothing is unpacked that is larger than its card says.

    Args:
        what: a model by name, or a folder (./en), or an archive
    """
    from lexveil.data import model_collection
    from lexveil.data.model_verification import UnsoundModel
    from lexveil.errors import CheckFailed

    try:
        show(model_collection.verify(what), json)
    except UnsoundModel as error:
        raise CheckFailed(str(error)) from None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Vectors:
    """What plain word vectors do not say themselves.

    Attributes:
        name: of plain vectors: how the model is called
        license: of plain vectors: under which they may be used
        language: of plain vectors: of the words, such as en
        collocations: of plain vectors: the model whose collocations are taken, or none (default: en)
        version: of plain vectors: of the model that is made (default: 1)
        max_words: of plain vectors: the first N usable words (default: 50000)
    """

    name: Text = None
    license: Text = None
    language: Text = None
    collocations: Text = None
    version: Text = None
    max_words: Count | None = None


@model.command
def add(
    source: Annotated[Path, Parameter(name="FILE|FOLDER")],
    /,
    *,
    vectors: Vectors = Vectors(),  # frozen
    force: Force = False,
    json: Json = False,
) -> None:
    """Take a model in: one that `lexveil model export` wrote, or one made of plain word vectors.

    Plain vectors are GloVe text, word2vec text or binary, fastText .vec, or Parquet with columns word and vector
    (and count). They know single words only: the collocations of another model whose words are all there are added,
    each with the mean of its words' vectors, so that S2 to S4 work too. Orders for 1-Diffractor are computed,
    which takes a minute for 50,000 words. It goes into your data folder (LEXVEIL_HOME names another).

    Args:
        source: an exported model, its folder, or plain word vectors
    """
    from lexveil.data.model_collection import ImportOptions
    from lexveil.data.model_collection import add as add_model

    show(add_model(source, ImportOptions(**asdict(vectors)), force), json)


@model.command
def export(
    name: Name,
    /,
    *,
    output: Annotated[Path | None, Parameter(metavar="FILE", alias="-o")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a model as one file that `lexveil model add` takes on any machine: a plain zip, always the same bytes.

    Args:
        output: the file (default: NAME-VERSION.lexveil.zip)
    """
    from lexveil.data.model_collection import export as export_model

    show(export_model(name, output, force), json)


@model.command
def remove(name: Name, /, *, json: Json = False) -> None:
    """Remove a model that you added."""
    from lexveil.data.model_collection import remove as remove_model

    show(remove_model(name), json)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """How a model is made.

    Attributes:
        parameters: what is taken, screened and trained (default: NAME's own, if it ships)
        license: under which the model may be used; the file may say it
        language: of the texts: de, en, es, fr, it, nl, pt (default: en)
    """

    parameters: Annotated[Path | None, Parameter(metavar="FILE")] = None
    license: Text = None
    language: Text = None


@model.command
def build(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    corpus: Annotated[tuple[Path, ...], Parameter(metavar="FILE|FOLDER")],
    recipe: BuildOptions = BuildOptions(),  # frozen
    out: Annotated[Path | None, Parameter(metavar="DIR")] = None,
    work: Annotated[Path | None, Parameter(metavar="DIR")] = None,
    verbose: Annotated[bool, Parameter(alias="-v")] = False,
) -> int:
    """Make a model of texts: the graph of `lexveil run` up to package_model, in a folder of its own.

    Tokens seen in fewer documents than the parameter file says are left out, as is what looks like a number, an
    address or a user name; slurs and full names too where it asks for that. With one worker the same texts and
    parameters give the same bytes. What was stopped goes on at its last finished stage, or epoch.

    Args:
        name: how it is called: a-z, 0-9, _ and -
        corpus: its texts; may be given several times
        out: the folder that becomes the model (default: among yours)
        work: where it is made; the same call goes on there
        verbose: show what the stages print
    """
    import os
    import time

    from lexveil import paths
    from lexveil.cli import project
    from lexveil.modelling.build import STAGE, check_target, deliver, load_recipe, prepare_project
    from lexveil.runtime.graph_libraries import require
    from lexveil.runtime.project import build_lock, prepare

    require("prefect", "dvc")
    started = time.monotonic()
    loaded = load_recipe(recipe.parameters, name, {"license": recipe.license, "language": recipe.language})
    target = (out or paths.user_data() / "models" / name).absolute()
    place = (work or paths.user_data() / "build" / name).absolute()
    texts = [path.absolute() for path in corpus]
    check_target(target, name, chosen=out is not None)
    prepare_project(place, loaded, texts, print)
    prepare(place)
    with build_lock():
        code = project.bring_up_to_date(verbose, keep_going=False, started=started, until=STAGE)
        if code == 0:
            card = deliver(place, target)
            print(f"{card.name} {card.version}: {card.n_tokens:,} tokens, in {os.fspath(target)}")
    return code


purpose = actions(
    "purpose",
    """Scales of words that rewriting keeps: more use of a text for one purpose, at the same recovery of its words.

    A purpose is a public scale, as of sentiment: words of one side are more often replaced by words of that side. What
    a text says on the scale is hidden less; the record says by how much. Two ship with Lexveil: sentiment, and
    emergency (reports of danger against everyday life).

        lexveil purpose list
        lexveil purpose show sentiment
        lexveil privatize reviews.csv -o out.csv --purpose sentiment
        lexveil purpose build labelled.csv -o urgency.tsv --public
        lexveil privatize tickets.csv -o out.csv --purpose urgency.tsv=1
    """,
)


@purpose.command(name="list")
def list_purposes(*, json: Json = False) -> None:
    """The scales that are there: those that ship, and those in your data folder."""
    from lexveil.artifacts.purpose_files import installed

    show({name: str(file) for name, file in installed().items()}, json)


@purpose.command(name="show")
def show_scale(
    name: Annotated[str, Parameter(name="NAME|FILE")], /, *, model: ModelName = None, json: Json = False
) -> None:
    """The ends of a scale, and how much of it a model's words know: of which words, and what share of all tokens.

    Args:
        name: of a purpose, as `lexveil purpose list` shows it, or a file
    """
    from lexveil.modelling import scales

    scale = scales.shown(name, model)
    show(scale.to_dict() if json else scale, json, scales.as_text)


@purpose.command(name="build")
def build_scale(
    source: Annotated[Path, Parameter(name="IN")],
    /,
    *,
    output: Annotated[Path, Parameter(metavar="FILE", alias="-o")],
    model: ModelName = None,
    text_column: Annotated[str, Parameter(metavar="NAME")] = "text",
    label_column: Annotated[str, Parameter(metavar="NAME")] = "label",
    as_given: bool = False,
    public: bool = False,
) -> None:
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
    print(f"written: {os.fspath(output)}")
    show(scales.shown(str(output), model), False, scales.as_text)
