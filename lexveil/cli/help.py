"""`--help` in plain text, from the signatures and docstrings of the verbs."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from cyclopts import App, Argument, Parameter

WIDTH = 110
COLUMN = 26  # where the text of an option begins

TOP = """\
Rewrites text under metric differential privacy, word by word or collocation by collocation, with a record of
what is guaranteed and a ledger of what each person has spent. A model of English is in the box.

First steps, anywhere:   lexveil inspect tickets.csv --text-column body
                         lexveil privatize tickets.csv -o out.csv --text-column body --mechanism tem \\
                             --strategy S3 --epsilon 10 --average-words 40
With a corpus of yours:  lexveil init DIR, and in it  lexveil run,  lexveil report --open"""
END = "Exit codes: 0 done, 1 it ran and failed, 2 the request was wrong, 130 interrupted."


def text_of(app: App, chain: Sequence[str], defaults: Parameter | None) -> str:
    """Return the help of the command that ``chain`` names; of all commands if it is empty.

    Args:
        app: that command.
        chain: its names, such as ("data", "use").
        defaults: what holds for every parameter of every command.
    """
    command = app.default_command
    usage = f"usage: {' '.join(('lexveil', *chain))}"
    if command is None:
        word = "ACTION" if chain else "COMMAND"
        about = inspect.cleandoc(app.help) if chain else TOP
        blocks = [f"{usage} {word} …", about, _table(f"{word.lower()}s", _commands(app))]
        if not chain:
            blocks += [
                _table(
                    "options",
                    [("--version [-v]", "print the version and exit; with -v also what it uses of this machine"), HELP],
                ),
                END,
            ]
        return "\n\n".join(blocks)
    arguments = [each for each in app.assemble_argument_collection(default_parameter=defaults) if each.show]
    places = [each for each in arguments if not each.name.startswith("-")]
    options = [each for each in arguments if each.name.startswith("-")]
    usage = " ".join([usage, *(each.name if each.required else f"[{each.name}]" for each in places), "[OPTIONS]"])
    blocks = [usage, _filled(inspect.getdoc(command) or "")]
    if places:
        blocks.append(_table("arguments", [(each.name, _about(each)) for each in places]))
    titles = dict.fromkeys(["options", *map(_title, options)])
    for title in titles:
        rows = [(_names(each), _about(each)) for each in options if _title(each) == title]
        blocks.append(_table(title, [*rows, HELP] if title == "options" else rows))
    if actions := _commands(app):
        blocks.append(_table("actions", actions))
    return "\n\n".join(blocks)


HELP = ("-h, --help", "print this and exit")


def _commands(app: App) -> list[tuple[str, str]]:
    """The commands below a command, with what each does."""
    return [(name, _summary(app[name])) for name in app if not name.startswith("-")]


def _summary(app: App) -> str:
    """The first line of a command's help, without its full stop."""
    about = inspect.getdoc(app.default_command) if app.default_command else app.help
    return _filled((about or "").partition("\n")[0].rstrip("."))


def _filled(text: str) -> str:
    """Replace {formats} and {mechanisms} by their names; registries are loaded only where a help text asks."""
    if "{formats}" in text:
        from lexveil.formats.registry import known_names

        text = text.replace("{formats}", known_names())
    if "{mechanisms}" in text:
        from lexveil.mechanisms import mechanism_names

        text = text.replace("{mechanisms}", ", ".join(mechanism_names()))
    return text


def _title(argument: Argument) -> str:
    """The group that the help shows a parameter in."""
    groups: Any = argument.parameter.group or ()  # cyclopts has made a Group of each name
    return next((group.name for group in groups if group.show and group.name != "Parameters"), "options")


def _names(argument: Argument) -> str:
    names = ", ".join(sorted(argument.names, key=len))
    return names if argument.is_flag() else f"{names} {_value(argument)}"


def _value(argument: Argument) -> str:
    choices = argument.get_choices()
    if choices:
        return "{" + ",".join(choices) + "}"
    return argument.parameter.metavar or argument.name.lstrip("-").replace("-", "_").upper()


def _about(argument: Argument) -> str:
    text = _filled(argument.parameter.help or "")
    if argument.required and argument.name.startswith("-"):
        return f"{text} (required)"
    default = argument.field_info.default
    if not argument.required and default not in (None, False, "", (), argument.field_info.empty):
        return f"{text} (default: {', '.join(default) if isinstance(default, tuple) else default})"
    return text


def _table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"{title}:"]
    for name, about in rows:
        indent = " " * COLUMN
        body = textwrap.wrap(about, WIDTH, initial_indent=indent, subsequent_indent=indent) or [indent]
        if len(name) + 4 > COLUMN:
            lines += [f"  {name}", *body]
        else:
            lines += [f"  {name}".ljust(COLUMN) + body[0][COLUMN:], *body[1:]]
    return "\n".join(lines)
