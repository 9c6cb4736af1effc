"""The verbs `lexveil model` and `lexveil purpose`. A model has the words and vectors with which
texts are rewritten. A purpose is a scale of words, such as sentiment, that the model's metric
preserves.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lexveil.faces.cli.options import Count, Json, ModelName, actions
from lexveil.faces.cli.output import show

model = actions(
    "model",
    """Models for rewriting texts: words, collocations, vectors.

    Lexveil includes the model en, for general English. Other models are imported from a file that
    someone exported, or made from plain word vectors. No model contains code, and each model is
    checked before it is installed. The option --model NAME of privatize, inspect and audit chooses
    a model; own is the model that `lexveil run` made from a project's corpus.

        lexveil model list
        lexveil model show en
        lexveil model build legal --corpus opinions/ --license CC0-1.0
        lexveil model add legal-2.0.lexveil.zip
        lexveil model add glove.6B.100d.txt --name glove --license PDDL-1.0 --language en \
            --mixed-license 'PDDL-1.0 AND CC-BY-4.0'
        lexveil model export own -o ours.lexveil.zip
    """,
)
Name = Annotated[
    str,
    Parameter(
        name="NAME",
        help="name of a model, as `lexveil model list` shows it; own is the model of this project",
    ),
]
Text = Annotated[str | None, Parameter(metavar="TEXT")]
Force = Annotated[bool, Parameter(help="replace an existing model")]


@model.command(name="list")
def list_models(*, json: Json = False) -> None:
    """List the installed models as NAME@HASH, from the library and from your data folder."""
    from lexveil.lab.data import model_collection

    show(model_collection.listed(), json)


@model.command(name="show")
def show_card(name: Name, /, *, json: Json = False) -> None:
    """Show the metadata card of a model: description, licence, sources, quality and known
    faults.
    """
    from lexveil.lab.data import model_collection

    show(model_collection.card_of(name), json)


@model.command
def verify(
    what: Annotated[str, Parameter(name="NAME|FOLDER|FILE")], /, *, json: Json = False
) -> None:
    """Check the files of a model against their hashes, and every number and token of the model. The
    exit code is 1 if one is wrong.

    Nothing in the model is executed, and nothing is unpacked that is larger than its card says.

    Args:
        what: name of a model, its folder (./en), or an archive
    """
    from lexveil.base.errors import CheckFailedError
    from lexveil.lab.data import model_collection
    from lexveil.lab.data.model_verification import UnsoundModelError

    try:
        show(model_collection.verify(what), json)
    except UnsoundModelError as error:
        raise CheckFailedError(str(error)) from None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Vectors:
    """Facts about a model that a file of plain word vectors does not state.

    Attributes:
        name: for plain vectors: name of the model
        license: for plain vectors: licence of the vectors
        mixed_license: for plain vectors: licence of the model, if its collocations have another
            licence than the vectors
        language: for plain vectors: language of the words, such as en
        collocations: for plain vectors: the model whose collocations are added, or none (default:
            en)
        version: for plain vectors: version of the model (default: 1)
        max_words: for plain vectors: take the first N usable words (default: 50000)
        bigrams: for vectors that have collocations, such as new_york: file with the scores of
            pairs, a JSON object as CLMLDP published it
        trigrams: for vectors that have collocations: file with the scores of triples, a JSON object
        words: for plain vectors: a public list with one word per line; other words are left out
    """

    name: Text = None
    license: Text = None
    mixed_license: Text = None
    language: Text = None
    collocations: Text = None
    version: Text = None
    max_words: Count | None = None
    bigrams: Annotated[Path | None, Parameter(metavar="FILE")] = None
    trigrams: Annotated[Path | None, Parameter(metavar="FILE")] = None
    words: Annotated[Path | None, Parameter(metavar="FILE")] = None


@model.command
def add(
    source: Annotated[Path, Parameter(name="FILE|FOLDER")],
    /,
    *,
    vectors: Vectors = Vectors(),  # frozen
    force: Force = False,
    json: Json = False,
) -> None:
    """Import a model that `lexveil model export` wrote, or make one from plain word vectors.

    Plain vectors are GloVe text, word2vec text or binary, fastText .vec, gensim's KeyedVectors
    (.kv), or Parquet with columns word and vector (and count). The command takes the single words
    of these files and, with --bigrams and --trigrams, also their collocations. For S2 to S4 the
    command adds the collocations of another model if the file has all of their words; the vector of
    such a collocation is the mean of its words' vectors. It also computes orders for 1-Diffractor,
    which takes a minute for 50,000 words. Models are stored in your data folder (LEXVEIL_HOME sets
    another folder).

    Args:
        source: an exported model, its folder, or plain word vectors
    """
    from lexveil.lab.data.model_collection import ImportOptions
    from lexveil.lab.data.model_collection import add as add_model

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
    """Write a model to one file for `lexveil model add` on any machine. The file is a plain zip,
    and the same model always gives the same bytes.

    Args:
        output: file to write (default: NAME-VERSION.lexveil.zip)
    """
    from lexveil.lab.data.model_collection import export as export_model

    show(export_model(name, output, force), json)


@model.command
def remove(name: Name, /, *, json: Json = False) -> None:
    """Remove a model that you added."""
    from lexveil.lab.data.model_collection import remove as remove_model

    show(remove_model(name), json)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """Options of a model build.

    Attributes:
        parameters: file that determines what is selected, screened and trained (default: the file
            of the packaged model NAME, if there is one)
        license: licence of the model, if the parameter file does not state it
        language: language of the texts: de, en, es, fr, it, nl, pt (default: en)
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
    """Train a model on texts. This runs the graph of `lexveil run` up to package_model, in a
    separate folder.

    The model leaves out tokens that occur in fewer documents than the parameter file says, and
    tokens that look like numbers, addresses or user names; also slurs and full names if the file
    says so. With one worker the same texts and parameters give the same bytes. A build that was
    stopped resumes at its last finished stage or epoch.

    Args:
        name: name of the model: a-z, 0-9, _ and -
        corpus: texts to train on; can be given several times
        out: folder of the finished model (default: in your data folder)
        work: folder to work in; the same call resumes in this folder
        verbose: show what the stages print
    """
    import os
    import time

    from lexveil.base import paths
    from lexveil.base.runtime.graph_libraries import require
    from lexveil.base.runtime.project import build_lock, prepare
    from lexveil.faces.cli import project
    from lexveil.lab.modelling.build import (
        STAGE,
        check_target,
        deliver,
        load_recipe,
        prepare_project,
    )

    require("prefect", "dvc")
    started = time.monotonic()
    loaded = load_recipe(
        recipe.parameters, name, {"license": recipe.license, "language": recipe.language}
    )
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
    """Public scales of words that keep more utility for one purpose, at the same recovery.

    A purpose is a public scale, such as sentiment: a word is more often replaced by words on the
    same side of the scale. Texts are less protected on the scale, and the record says how much
    less. The scale of sentiment is part of Lexveil.

        lexveil purpose list
        lexveil purpose show sentiment
        lexveil privatize reviews.csv -o out.csv --purpose sentiment
        lexveil purpose build labelled.csv -o urgency.tsv --public
        lexveil privatize tickets.csv -o out.csv --purpose urgency.tsv=1
    """,
)


@purpose.command(name="list")
def list_purposes(*, json: Json = False) -> None:
    """List the installed scales, from the library and from your data folder."""
    from lexveil.io.artifacts.user_lists import installed_purposes

    show({name: str(file) for name, file in installed_purposes().items()}, json)


@purpose.command(name="show")
def show_scale(
    name: Annotated[str, Parameter(name="NAME|FILE")],
    /,
    *,
    model: ModelName = None,
    json: Json = False,
) -> None:
    """Show both ends of a scale, the number of words of a model that have a score, and their share
    of all tokens.

    Args:
        name: name of a purpose, as `lexveil purpose list` shows it, or a file
    """
    from lexveil.lab.modelling import scales

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
    """Make a scale from words with scores, or train one on texts with labels.

    For labelled texts, naive Bayes computes a score for each word. Words that IN lacks get a score
    by ridge regression in the embedding of the model.

        lexveil purpose build seeds.tsv -o sentiment.tsv --public
        lexveil purpose build labelled.jsonl -o urgency.tsv --label-column urgent --public

    Args:
        source: file with the columns word and score (-1 to 1), or text and label, with two
            different labels
        output: file to write, NAME.tsv for a purpose called NAME
        text_column: column of the texts
        label_column: column of the labels: 0 and 1, or two words, of which the second in
            alphabetical order means +1
        as_given: give no score to words that IN lacks
        public: declare that no private text was used; without this, releases refuse the scale
    """
    from lexveil.lab.modelling import scales

    scales.build(
        source, output, model, text_column, label_column, as_given=as_given, is_public=public
    )
    print(f"written: {output}")
    show(scales.shown(str(output), model), as_json=False, as_text=scales.as_text)
