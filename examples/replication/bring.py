"""Convert a public data set to the form that the replication reads: one Parquet file.

    python -m examples.replication.bring stsb STS-B --into FOLDER
    python -m examples.replication.bring yelp reviews.csv --into FOLDER --attribute user_id

A GLUE task is read in the form of its archive: a folder with train.tsv and dev.tsv. Any other set
is a file of texts with column names: CSV, TSV, JSONL or Parquet. FOLDER/NAME.parquet then has the
columns split, text, text_b, label and attribute.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from lexveil.base.errors import RequestError

SEED = 42
TRAIN_SHARE = 0.9  # share of the training split, if a set has no split
SCHEMA = pa.schema([(name, pa.string()) for name in ("split", "text", "text_b", "label")])


@dataclass(frozen=True, slots=True)
class GlueTask:
    """Layout of the files of one GLUE task.

    Attributes:
        folder: name of the task's folder in the archive of GLUE.
        text, text_b, label: names of the columns; numbers if the files have no column names.
        dev: name of the file of the validation split.
    """

    folder: str
    text: str | int
    text_b: str | int | None
    label: str | int
    dev: str = "dev.tsv"


GLUE: Mapping[str, GlueTask] = {
    "cola": GlueTask("CoLA", 3, None, 1),
    "sst2": GlueTask("SST-2", "sentence", None, "label"),
    "mrpc": GlueTask("MRPC", "#1 String", "#2 String", "Quality"),
    "stsb": GlueTask("STS-B", "sentence1", "sentence2", "score"),
    "qqp": GlueTask("QQP", "question1", "question2", "is_duplicate"),
    "mnli": GlueTask("MNLI", "sentence1", "sentence2", "gold_label", "dev_matched.tsv"),
    "qnli": GlueTask("QNLI", "question", "sentence", "label"),
    "rte": GlueTask("RTE", "sentence1", "sentence2", "label"),
    "wnli": GlueTask("WNLI", "sentence1", "sentence2", "label"),
}

# Sources of the other sets, and the meaning of their columns.
OTHERS: Mapping[str, str] = {
    "imdb": "IMDb reviews (Maas et al. 2011): text, label 0 or 1, split train or test",
    "yelp": "Yelp reviews: text, label of 4 or 5 stars, attribute the author",
    "trustpilot": "Trustpilot reviews (Hovy et al. 2015): text, label, attribute M or F",
    "friends": "lines of the six main characters: text, attribute the speaker",
    "opinion_lexicon": "opinion words (Hu and Liu 2004): text one word, label 0 or 1",
    "tweets": "disaster tweets: text, label 0 or 1",
}


def command_for(name: str, folder: Path) -> str:
    """Return the command that converts a data set, for a message."""
    if name in GLUE:
        source = GLUE[name].folder
        return f"python -m examples.replication.bring {name} {source} --into {folder}"
    return f"python -m examples.replication.bring {name} FILE --into {folder}   # {OTHERS[name]}"


def read_glue(name: str, folder: Path) -> pa.Table:
    """Read the train and validation splits of one GLUE task.

    Raises:
        RequestError: if a file is missing, lacks a column, or has an invalid row.
    """
    task = GLUE[name]
    splits = {"train": folder / "train.tsv", "dev": folder / task.dev}
    missing = [file.name for file in splits.values() if not file.is_file()]
    if missing:
        raise RequestError(
            f"{folder} lacks {' and '.join(missing)}; name the folder {task.folder} of the archive"
        )
    rows = [row for split, file in splits.items() for row in _glue_rows(name, task, split, file)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _glue_rows(
    name: str, task: GlueTask, split: str, file: Path
) -> Iterator[dict[str, str | None]]:
    # No quoting: a field of GLUE may contain a single quote character.
    with file.open(encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        heading = next(reader, []) if isinstance(task.text, str) else []
        columns = [_column(heading, column, file) for column in (task.text, task.label)]
        second = None if task.text_b is None else _column(heading, task.text_b, file)
        last = max(*columns, second or 0)
        for number, fields in enumerate(reader, start=2 if heading else 1):
            if len(fields) <= last:
                raise RequestError(
                    f"{file}, line {number}: {len(fields)} fields; it needs {last + 1}"
                )
            label = fields[columns[1]]
            if name == "stsb":
                _check_score(label, f"{file}, line {number}")
            yield {
                "split": split,
                "text": fields[columns[0]],
                "text_b": None if second is None else fields[second],
                "label": label,
            }


def _column(heading: Sequence[str], column: str | int, file: Path) -> int:
    if isinstance(column, int):
        return column
    # the archive's heading of MRPC begins with a byte order mark
    names = [field.lstrip("\ufeff") for field in heading]
    if column not in names:
        raise RequestError(f"{file}: has no column {column}; it has {', '.join(names)}")
    return names.index(column)


def _check_score(score: str, where: str) -> None:
    try:
        is_score = 0 <= float(score) <= 5
    except ValueError:
        is_score = False
    if not is_score:
        raise RequestError(f"{where}: score {score!r} is not a number from 0 to 5")


def read_table(file: Path, columns: Mapping[str, str]) -> pa.Table:
    """Read a file of texts with column names, and rename its columns. Split the texts at random if
    the file has no split.

    Args:
        file: CSV, TSV, JSONL or Parquet.
        columns: name in the file of each column of the result.

    Raises:
        RequestError: if the file is missing, has another form, or lacks a named column.
    """
    if not file.is_file():
        raise RequestError(f"{file} does not exist; name a file of texts")
    suffix = file.suffix.lower()
    if suffix == ".parquet":
        table = pq.read_table(file)
    elif suffix in (".csv", ".tsv"):
        delimiter = "," if suffix == ".csv" else "\t"
        options = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        table = pyarrow.csv.read_csv(file, parse_options=options)
    elif suffix in (".jsonl", ".json"):
        table = pyarrow.json.read_json(file)
    else:
        raise RequestError(f"{file}: is not a CSV, TSV, JSONL or Parquet file; convert it")
    absent = [name for here, name in columns.items() if name != here]
    absent = [name for name in [*absent, columns["text"]] if name not in table.column_names]
    if absent:
        raise RequestError(
            f"{file}: has no column {absent[0]}; it has {', '.join(table.column_names)}"
        )
    there = {here: name for here, name in columns.items() if name in table.column_names}
    chosen = {here: table.column(name).cast(pa.string()) for here, name in there.items()}
    if "split" not in chosen:
        is_train = np.random.default_rng(SEED).random(len(table)) < TRAIN_SHARE
        chosen["split"] = pa.array(np.where(is_train, "train", "dev").tolist())
    return pa.table(chosen)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read one data set and write it as Parquet."""
    parser = argparse.ArgumentParser(prog="python -m examples.replication.bring")
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", choices=sorted({*GLUE, *OTHERS}))
    parser.add_argument("source", type=Path, help="folder of a GLUE task, or file of another set")
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    for column in ("text", "text_b", "label", "attribute", "split"):
        parser.add_argument(f"--{column}", default=column, metavar="COLUMN")
    options = parser.parse_args(arguments)
    columns = {
        name: getattr(options, name) for name in ("split", "text", "text_b", "label", "attribute")
    }
    try:
        if options.name in GLUE and options.source.is_dir():
            documents = read_glue(options.name, options.source)
        else:
            documents = read_table(options.source, columns)
    except RequestError as error:
        parser.error(str(error))
    options.into.mkdir(parents=True, exist_ok=True)
    out = options.into / f"{options.name}.parquet"
    pq.write_table(documents, out)
    print(f"{out}: {len(documents):,} texts", file=sys.stderr)


if __name__ == "__main__":
    main()
