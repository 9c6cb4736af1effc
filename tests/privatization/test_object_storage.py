"""Object storage, by servers on loopback: of S3; other providers by their addresses and
listings."""

import gzip
import re
import threading
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import privatize_file
from pyarrow.fs import FileSelector, LocalFileSystem, SubTreeFileSystem

from lexveil import Ledger, LexveilError
from lexveil.base.runtime import objects
from lexveil.base.runtime.objects import as_path
from lexveil.io.request import FileRequest
from lexveil.release.looking.inspect import inspect

moto = pytest.importorskip("moto.server")
boto3 = pytest.importorskip("boto3")
make_server = pytest.importorskip("werkzeug.serving").make_server
TEXTS = [f"the government said fire services in new south wales were there {n}" for n in range(30)]
RELEASE = {"mechanism": "madlib", "strategy": "S1", "document_budget": 5.0}
EXPERIMENT = RELEASE | {"mode": "experiment", "seed": 1}
ENVIRONMENT = {
    "ACCESS_KEY_ID": "AKIATEST",
    "SECRET_ACCESS_KEY": "hush",
    "DEFAULT_REGION": "us-east-1",
}


class Storage(moto.DomainDispatcherApplication):
    """An S3 server that notes what it is asked, and refuses what ``refused`` matches."""

    refused = "-"

    def __call__(self, environ, start):
        self.asked.append(
            f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ['QUERY_STRING']}"
        )
        if not re.match(self.refused, self.asked[-1]):
            return super().__call__(environ, start)
        start("403 Forbidden", [])
        return [b"<Error><Code>AccessDenied</Code><Message>AKIATEST may not</Message></Error>"]

    def found(self, prefix=""):
        """All objects but those that stand for folders."""
        every = self.bucket.objects.filter(Prefix=prefix)
        return {
            one.key.removeprefix(prefix): one.get()["Body"].read()
            for one in every
            if one.key[-1] != "/"
        }


@pytest.fixture
def storage(ready, monkeypatch):
    made = Storage(moto.create_backend_app)
    made.asked, http = [], make_server("127.0.0.1", 0, made, threaded=True)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    for name, value in (ENVIRONMENT | {"ENDPOINT_URL": f"http://127.0.0.1:{http.port}"}).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    objects._filesystem.cache_clear()
    made.bucket = boto3.resource("s3").create_bucket(Bucket="bucket")
    made.bucket.objects.delete()  # what another test left
    rows = "".join(f'{{"text": "{text}"}}\n' for text in TEXTS).encode()
    Path("in/deep").mkdir(parents=True)
    Path("in/a.jsonl").write_bytes(rows)
    Path("in/deep/b.jsonl.gz").write_bytes(gzip.compress(rows))
    pq.write_table(pa.table({"text": TEXTS}), "in/deep/c.parquet")
    for name, content in files("in").items():
        made.bucket.put_object(Key=f"in/{name}", Body=content)
    yield made
    http.shutdown()


def files(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in Path(folder).rglob("*.*")}


@pytest.mark.parametrize("out", ["s3://bucket/x/out", "S3://bucket/x/out/", "x/out"])
@pytest.mark.parametrize("source", ["in", "s3://bucket/in/"])
def test_folders_are_the_same_everywhere(storage, source, out, capfd):
    Path("x").mkdir()
    privatize_file("in", "out", **EXPERIMENT)
    done = privatize_file(source, out, **EXPERIMENT)
    puts = [asked for asked in storage.asked if asked.startswith("PUT")]
    found = storage.found("x/") if "bucket" in out else files("x")
    wanted = files("out")
    assert {name: found[f"out/{name}"] for name in wanted} == wanted and len(found) == len(
        wanted
    ) + 4
    assert {
        name: sha256(content).hexdigest() for name, content in wanted.items()
    } == done.record.output.files
    assert (
        found["out.record.json"] == Path("out.record.json").read_bytes()
        and "out.tokens.parquet" in found
    )
    # it tells which objects there are
    assert "bucket" not in out or "/bucket/x/out.record.json" in puts[-1]
    assert not re.search("AKIA|hush", "".join(capfd.readouterr())) and not files(".lexveil/work")
    assert inspect(as_path(source), FileRequest.of(RELEASE)).documents == 90


def test_a_failed_upload_leaves_nothing_and_what_is_paid_goes_on_later(storage):
    for how in (EXPERIMENT, RELEASE):
        storage.refused = "PUT /bucket/x/out.record"
        with pytest.raises(LexveilError, match=r"s3://bucket/x/out.*no permission") as told:
            privatize_file("in", "s3://bucket/x/out", **how)
        assert "AKIA" not in str(told.value) and not storage.found("x/")
    storage.refused = "-"
    with Ledger.open(".lexveil/ledger", anchor=".ledger-anchor.json") as ledger:
        assert [release.now for release in ledger.recovered] == ["committed"]
    assert {"out.record.json", "out.operator.json", "out/a.jsonl", "out/deep/c.parquet"} < {
        *storage.found("x/")
    }
    assert not files(".lexveil/work")


def test_a_large_object_appears_whole_or_not_at_all(storage, tmp_path):
    (tmp_path / "file").write_bytes(content := bytes(range(256)) * 200_000)
    storage.refused = "PUT /bucket/large.partNumber=3"
    with pytest.raises(OSError, match="no permission"):
        as_path("s3://bucket/large").upload(tmp_path / "file")
    as_path("s3://bucket/whole").upload(tmp_path / "file")
    assert not storage.found("large") and storage.found("whole") == {"": content}


@pytest.mark.parametrize(
    ("source", "out", "refused", "message"),
    [
        ("s3://bucket/none", "out", "-", "s3://bucket/none: there is no such file or folder"),
        (
            "s3://bucket/in",
            "out",
            "(HEAD|GET) /bucket",
            "s3://bucket/in: cannot be read .no permission",
        ),
        (
            "s3://bucket/in/a.jsonl",
            "out.jsonl",
            "GET /bucket/in/a",
            "a.jsonl: reading this object failed",
        ),
        ("in", "s3://nowhere/out", "-", "s3://nowhere/out: .*there is no such bucket"),
        ("in", "s3://bucket/out", "PUT", "s3://bucket/out: .*no permission"),
        ("in", "s3://bucket", "-", "s3://bucket: the address is a bucket"),
        ("s3://bucket/in", "s3://bucket/in/out", "-", "must not be inside the input folder"),
        (
            "in/a.jsonl",
            "s3://bucket/in/a.jsonl",
            "-",
            "s3://bucket/in/a.jsonl: the output exists already",
        ),
        ("s3://bucket/in/a.jsonl", "s3://bucket/in/a.jsonl", "-", "would replace the input"),
        ("s3://AKIATEST:hush@bucket/in", "out", "-", "the address of object storage has"),
        ("in", "s3://bucket/out?access_key=hush", "-", "the address of object storage has"),
    ],
)
def test_bad_requests(storage, source, out, refused, message):
    before = storage.found()
    storage.refused = refused
    with pytest.raises(LexveilError, match=message) as told:
        privatize_file(source, out, **RELEASE)
    storage.refused = "-"
    assert not re.search("\n|AKIA|hush", str(told.value)) and told.value.exit_code == 2
    assert storage.found() == before and not Path(out).exists()


class Flat:
    """Objects as Arrow lists those of Google: without folders."""

    type_name = "gcs"

    def __init__(self):
        Path("there/deep").mkdir(parents=True)
        self.files = SubTreeFileSystem("there", LocalFileSystem())

    def __getattr__(self, name):
        return getattr(self.files, name)

    def open_output_stream(self, key, **how):
        Path("there", key).parent.mkdir(parents=True, exist_ok=True)
        return self.files.open_output_stream(key, **how)

    def get_file_info(self, asked):
        found = self.files.get_file_info(asked)
        return (
            [each for each in found if each.is_file] if isinstance(asked, FileSelector) else found
        )


@pytest.mark.parametrize("address", ["gs://deep", "abfs://deep@own.dfs.core.windows.net"])
def test_other_providers(storage, monkeypatch, address):
    server = Flat()
    monkeypatch.setattr(objects, "_filesystem", lambda *_: server)
    for name in files("in"):
        as_path(f"{address}/in/{name}").upload(Path("in", name))
    privatize_file("in", "out", **EXPERIMENT)
    privatize_file(f"{address}/in/", f"{address}/x/out", **EXPERIMENT)
    for name, content in files("out").items():
        assert as_path(f"{address}/x/out/{name}").open().read() == content
    with pytest.raises(LexveilError, match=f"{address}/none: there is no such file or folder"):
        privatize_file(f"{address}/none", "other", **EXPERIMENT)
