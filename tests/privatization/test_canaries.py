"""Unusual words in every place that a text, a name or a note can stand in come out nowhere they
should not.

Each verb runs in this process, served and refused; then everything that was said and written is
searched: standard output and error, every log, the exceptions, all files of the project with the
pages of the ledger's database, and what lies in the folder for temporary files.
"""

import gzip
import io
import json
import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import command

import lexveil
from lexveil.base.runtime.crash import crash_report
from lexveil.io.formats.readers import Reader
from tests.tasks.changing import change_params

TEXT = "zanzibarix"
SUBJECT = "quetzalonia"
OTHER = "xylopharra"
NOTE = "brobdingnagor"
FILE = "lilliputian"
SENTENCE = f"the government said fire services were there {TEXT}"
HOW = ("--mechanism", "madlib", "--strategy", "S1", "--document-budget", "5")
API = {"mechanism": "madlib", "strategy": "S1", "document_budget": 5.0}


class Watch:
    """Runs commands and calls, and keeps all that they say."""

    def __init__(self, capture, log, root):
        self.capture = capture
        self.log = log
        self.root = root
        self.said = ""

    def command(self, *arguments, code=0):
        try:
            ended = command(*arguments)
        except Exception as error:
            self.said += crash_report(error)
            ended = 1
        self.said += "".join(self.capture.readouterr())
        assert ended == code, self.said[-2000:]

    def refused(self, call):
        with pytest.raises(lexveil.LexveilError) as refused:
            call()
        self.said += repr(refused.value) + "".join(self.capture.readouterr())

    def places(self, but):
        """All that was said or written, but for some files."""
        yield "what was said", self.said.encode()
        yield "logs", self.log.text.encode()
        for where, _, names in os.walk(self.root):
            for file in (Path(where, name) for name in names):
                if file not in but and not file.is_symlink():
                    yield str(file), file.read_bytes()

    def check(self, *canaries, but):
        for place, content in self.places(but):
            is_table = content.startswith(b"PAR1")
            rows = (
                repr(pq.read_table(io.BytesIO(content)).to_pylist()).encode() if is_table else b""
            )
            for canary in canaries:
                assert canary.encode() not in (content + rows).lower(), f"{canary} is in {place}"


@pytest.fixture
def watch(ready, tmp_path, monkeypatch, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return Watch(capsys, caplog, tmp_path)


def inputs(folder):
    """Write one table in every form, with canaries in texts, subjects, other columns, metadata and
    headers of compression."""
    rows = [{"id": f"{SUBJECT} {n}", "text": SENTENCE, "more": OTHER} for n in (1, 2, 1)]
    delimited = [",".join(row) for row in (("id", "text", "more"), *(row.values() for row in rows))]
    table = pa.Table.from_pylist(rows).replace_schema_metadata({NOTE: NOTE})
    table = table.set_column(
        1, pa.field("text", table.schema.types[1], metadata={NOTE: NOTE}), table.column("text")
    )
    made = {
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode(),
        "csv": "\n".join(delimited).encode(),
        "tsv": "\n".join(delimited).replace(",", "\t").encode(),
        "parquet": b"",
    }
    for ending, content in made.items():
        (folder / f"{FILE}.{ending}").write_bytes(content)
    pq.write_table(table, folder / f"{FILE}.parquet")
    packed = folder / f"{FILE}.csv.gz"
    with packed.open("wb") as raw, gzip.GzipFile(f"{NOTE}.csv", "wb", fileobj=raw) as stream:
        stream.write(made["csv"])
    files = [*(folder / f"{FILE}.{ending}" for ending in made), packed]
    for file in files:
        os.utime(file, (1, 1))
        with suppress(OSError):  # not every file system has them
            os.setxattr(file, f"user.{NOTE}", NOTE.encode())
    return files


def test_files_that_are_rewritten(watch, tmp_path):
    """Other columns come out in the output by contract, subjects too, and neither anywhere else."""
    sources = inputs(tmp_path)
    outs = []
    for number, source in enumerate(sources):
        outs.append(tmp_path / f"out-{number}{''.join(source.suffixes)}")
        watch.command("privatize", source, "-o", outs[-1], *HOW, "--subject-column", "id")
        watch.command("inspect", source, *HOW)
        assert outs[-1].stat().st_mtime > 1 and not os.listxattr(outs[-1])
    assert outs[-1].read_bytes()[3:8] == bytes(5)  # of gzip: neither a name nor a time
    watch.command("ledger", "show", "--top", "5")
    watch.command("ledger", "export", tmp_path / "balances.csv")
    watch.command("ledger", "verify", "--record", f"{outs[0]}.record.json")
    watch.check(TEXT, NOTE, FILE, but={*sources})
    watch.check(SUBJECT, OTHER, but={*sources, *outs})


def test_rows_that_are_withheld(watch, tmp_path):
    """Only the operator's list names withheld rows."""
    change_params(ledger={"cap": 0.5})
    rows = [{"id": f"{SUBJECT}", "text": SENTENCE, "more": OTHER}] * 2 + [
        {"id": "1", "text": "the", "more": ""}
    ]
    source = tmp_path / "in.parquet"
    out = tmp_path / "out.parquet"
    pq.write_table(pa.Table.from_pylist(rows), source)
    watch.command(
        "privatize", source, "-o", out, *HOW, "--subject-column", "id", "--max-token-epsilon", "5"
    )
    assert pq.read_table(out).num_rows == 1
    watch.check(TEXT, SUBJECT, OTHER, but={source, Path(f"{out}.withheld.csv")})


BROKEN = {
    "jsonl": json.dumps({"id": SUBJECT, "text": {TEXT: OTHER}}).encode(),
    "csv": f'id,text\n{SUBJECT},"{TEXT}"{OTHER}\n'.encode(),
    "tsv": f"{TEXT}\t{SUBJECT}\nc\td\te\n".encode(),
    "txt": f"{TEXT}\n{OTHER}".encode() + b"\xff\n",
    "parquet": b"PAR1" + TEXT.encode(),
}


@pytest.mark.parametrize("ending", BROKEN)
def test_files_that_are_refused(watch, tmp_path, ending):
    source = tmp_path / f"in.{ending}"
    source.write_bytes(BROKEN[ending])
    watch.command("privatize", source, "-o", tmp_path / f"out.{ending}", *HOW, code=2)
    watch.command("inspect", source, *HOW, code=2)
    watch.refused(lambda: lexveil.inspect(source, **API))
    watch.check(TEXT, SUBJECT, OTHER, but={source})


@pytest.mark.parametrize(
    "values",
    [
        [SENTENCE, 5],
        [SENTENCE, f"{TEXT}\0"],
        [SENTENCE, f"{TEXT}\ud800"],
        [SENTENCE, {TEXT: 1}],
        {TEXT: 1},
        TEXT,
    ],
)
def test_values_that_are_refused(watch, values):
    watch.refused(lambda: lexveil.privatize(values, **API))
    watch.refused(lambda: lexveil.privatize([SENTENCE] * 2, subjects=[SUBJECT, [SUBJECT]], **API))
    watch.refused(lambda: lexveil.privatize([SENTENCE] * 2, subjects=[SUBJECT, " \u200b"], **API))
    watch.refused(lambda: lexveil.privatize([SENTENCE], column=SUBJECT, **API))
    watch.check(TEXT, SUBJECT, but=set())


@pytest.mark.parametrize("at", ["count", "rewrite", "write"])
def test_faults_of_the_program(watch, tmp_path, monkeypatch, at):
    """An exception that says a text, wherever it is raised."""

    def breaks(*_, **__):
        raise KeyError(SENTENCE)

    targets = {
        "count": "lexveil.release.engine.worker.plan_tokens",
        "rewrite": "lexveil.release.engine.worker.BatchWorker.draw",
        "write": "lexveil.io.formats.json_lines.JsonLines.encode",
    }
    monkeypatch.setattr(targets[at], breaks)
    source, *_ = inputs(tmp_path)
    watch.command("privatize", source, "-o", tmp_path / "out.jsonl", *HOW, code=1)
    assert "KeyError" in watch.said
    watch.check(TEXT, SUBJECT, OTHER, but={*inputs(tmp_path)})


def test_what_a_traceback_with_values_shows(tmp_path):
    """Tools that print local variables print the type of what holds texts."""
    source = inputs(tmp_path)[0]
    from lexveil.io.formats.registry import as_source
    from lexveil.release.engine.batch import batch_of, unchanged

    form = as_source(source)
    assert form is not None
    (chunk,) = Reader(form, ("text",), "id").chunks()
    batch = batch_of(chunk)
    assert batch.texts
    held = [chunk, batch, unchanged([SENTENCE])]
    held.append(held[-1].encoded)
    assert not any(word in repr(one) for one in held for word in (TEXT, SUBJECT, OTHER))
