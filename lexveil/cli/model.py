"""`lexveil model`: the models that texts are rewritten with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from lexveil.cli.options import Count, Json, actions, option
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
Name = Annotated[str, option("of a model, as `lexveil model list` shows it", name="NAME")]
Force = Annotated[bool, option("replace what is there")]


@model.command(name="list")
def list_models(*, json: Json = False) -> int:
    """The models that are there, as NAME@HASH: those that ship, and those in your data folder."""
    from lexveil.data import model_collection

    show(model_collection.listed(), json)
    return 0


@model.command(name="show")
def show_card(
    name: Annotated[str, option("of a model; own is that of this project", name="NAME")], /, *, json: Json = False
) -> int:
    """The card of a model: what it is, its licence, sources, quality and known faults."""
    from lexveil.data import model_collection

    show(model_collection.card_of(name), json)
    return 0


@model.command
def verify(
    what: Annotated[str, option("a model by name, or a folder (./en), or an archive", name="NAME|FOLDER|FILE")],
    /,
    *,
    json: Json = False,
) -> int:
    """Check a model: its files against their hashes, every number, every token. Exit code 1 if one is wrong.

    Nothing in it is executed, and nothing is unpacked that is larger than its card says.
    """
    from lexveil.data import model_collection
    from lexveil.data.model_verification import UnsoundModel
    from lexveil.errors import CheckFailed

    try:
        show(model_collection.verify(what), json)
    except UnsoundModel as error:
        raise CheckFailed(str(error)) from None
    return 0


@model.command
def add(
    source: Annotated[Path, option("an exported model, its folder, or plain word vectors", name="FILE|FOLDER")],
    /,
    *,
    name: Annotated[str | None, option("of plain vectors: how the model is called", "NAME")] = None,
    license: Annotated[str | None, option("of plain vectors: under which they may be used", "TEXT")] = None,
    language: Annotated[str | None, option("of plain vectors: of the words, such as en", "CODE")] = None,
    collocations: Annotated[
        str | None,
        option("of plain vectors: the model whose collocations are taken, or none (default: en)", "NAME"),
    ] = None,
    version: Annotated[str | None, option("of plain vectors: of the model that is made (default: 1)", "N.N")] = None,
    max_words: Annotated[Count | None, option("of plain vectors: the first N usable words (default: 50000)")] = None,
    force: Force = False,
    json: Json = False,
) -> int:
    """Take a model in: one that `lexveil model export` wrote, or one made of plain word vectors.

    Plain vectors are GloVe text, word2vec text or binary, fastText .vec, or Parquet with columns word and vector
    (and count). They know single words only: the collocations of another model whose words are all there are added,
    each with the mean of its words' vectors, so that S2 to S4 work too. Orders for 1-Diffractor are computed,
    which takes a minute for 50,000 words. It goes into your data folder (LEXVEIL_HOME names another).
    """
    from lexveil.data.model_collection import ImportOptions
    from lexveil.data.model_collection import add as add_model

    given = ImportOptions(name, license, language, collocations, version, max_words)
    show(add_model(source, given, force), json)
    return 0


@model.command
def export(
    name: Annotated[str, option("of a model; own is that of this project", name="NAME")],
    /,
    *,
    output: Annotated[Path | None, option("the file (default: NAME-VERSION.lexveil.zip)", "FILE", alias="-o")] = None,
    force: Force = False,
    json: Json = False,
) -> int:
    """Write a model as one file that `lexveil model add` takes on any machine: a plain zip, always the same bytes."""
    from lexveil.data.model_collection import export as export_model

    show(export_model(name, output, force), json)
    return 0


@model.command
def remove(name: Name, /, *, json: Json = False) -> int:
    """Remove a model that you added."""
    from lexveil.data.model_collection import remove as remove_model

    show(remove_model(name), json)
    return 0


@model.command
def build(
    name: Annotated[str, option("how it is called: a-z, 0-9, _ and -", name="NAME")],
    /,
    *,
    corpus: Annotated[tuple[Path, ...], option("its texts; may be given several times", "FILE|FOLDER")],
    parameters: Annotated[
        Path | None, option("what is taken, screened and trained (default: NAME's own, if it ships)", "FILE")
    ] = None,
    license: Annotated[str | None, option("under which the model may be used; the file may say it", "TEXT")] = None,
    language: Annotated[str | None, option("of the texts: de, en, es, fr, it, nl, pt (default: en)", "CODE")] = None,
    out: Annotated[Path | None, option("the folder that becomes the model (default: among yours)", "DIR")] = None,
    work: Annotated[Path | None, option("where it is made; the same call goes on there", "DIR")] = None,
    verbose: Annotated[bool, option("show what the stages print", alias="-v")] = False,
) -> int:
    """Make a model of texts: the graph of `lexveil run` up to package_model, in a folder of its own.

    Tokens seen in fewer documents than the parameter file says are left out, as is what looks like a number, an
    address or a user name; slurs and full names too where it asks for that. With one worker the same texts and
    parameters give the same bytes. What was stopped goes on at its last finished stage, or epoch.
    """
    import os
    import time

    from lexveil import paths
    from lexveil.cli.run import bring_up_to_date
    from lexveil.modelling.build import STAGE, check_target, deliver, load_recipe, prepare_project
    from lexveil.runtime.graph_libraries import require
    from lexveil.runtime.project import build_lock, prepare

    require("prefect", "dvc")
    started = time.monotonic()
    recipe = load_recipe(parameters, name, {"license": license, "language": language})
    target = (out or paths.user_data() / "models" / name).absolute()
    place = (work or paths.user_data() / "build" / name).absolute()
    texts = [path.absolute() for path in corpus]
    check_target(target, name, chosen=out is not None)
    prepare_project(place, recipe, texts, print)
    prepare(place)
    with build_lock():
        code = bring_up_to_date(verbose, keep_going=False, started=started, until=STAGE)
        if code == 0:
            card = deliver(place, target)
            print(f"{card.name} {card.version}: {card.n_tokens:,} tokens, in {os.fspath(target)}")
    return code
