"""A corpus that is read through from elsewhere: what is kept, what is read, and what breaks on the
way."""

import gzip
import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import fsspec
import httpx
import pytest
from far_files import Far, packed, put
from intake_files import parquet, tree

from lexveil.base.errors import LexveilError, RequestError
from lexveil.io.config import MachineParams, SampleParams, load_params
from lexveil.lab.collocations.sampling import sample
from lexveil.lab.data import corpus_sampling, data_store, remote
from lexveil.lab.data.corpus_sampling import SampleRequest, share_for, uniform
from lexveil.lab.data.remote import RemoteFile, RemoteShard, find_remote, shown_address

ROOT = Path(__file__).parents[2]
PARAMS = load_params(ROOT / "params.yaml")
SECRET = "Zanzibar"
# Digits of a hash, so that they do not shrink to nothing when packed.
SHARDS = [
    [
        f"Shard {s}, Dokument Nº {d}\n{SECRET}, {sha256(bytes([s, d])).hexdigest()}."
        for d in range(150)
    ]
    for s in range(4)
]
ALL = SampleRequest(share=1.0)


@pytest.fixture(autouse=True)
def far():
    Far.forget()
    fsspec.register_implementation("far", Far, clobber=True)
    yield
    Far.forget()


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """Nobody waits; how long they would have."""
    waited = []
    monkeypatch.setattr(remote.time, "sleep", waited.append)
    return waited


@pytest.fixture
def root(root):
    shutil.copy(ROOT / "params.yaml", root / "params.yaml")
    return root


def use(root, address="far://c4/en", wanted=ALL):
    return data_store.use(data_store.DataRequest(address, wanted=wanted), root)


def corpus(root):
    """Texts of each file of the corpus."""
    files = sorted((root / "data/corpus").rglob("*.json.gz"))
    return {
        file.name: [json.loads(line)["text"] for line in gzip.open(file, "rb")] for file in files
    }


def origin(root):
    return json.loads((root / "data/corpus/origin.json").read_text())


def test_a_folder_of_c4_is_its_train_shards(root):
    put("c4/en", *SHARDS)
    use(root)
    names = [f"corpus-train.{number:05d}-of-00004.json.gz" for number in range(4)]
    assert corpus(root) == dict(zip(names, SHARDS, strict=True))
    assert Far.read_of("validation.00000-of-00001.json.gz") == 0


def test_documents_keep_their_address_and_time(root):
    put("c4/en", *SHARDS)
    use(root)
    with gzip.open(root / "data/corpus/corpus-train.00000-of-00004.json.gz", "rb") as file:
        line = json.loads(file.readline())
    said = {"timestamp": "2019-04-25T12:57:54Z", "url": "https://x.example/a"}
    assert line == {"text": SHARDS[0][0]} | said


def test_what_was_read_and_kept_is_counted(root):
    put("c4/en", *SHARDS)
    expected = {"files": 4, "shards": 4, "read": 600, "documents": 600, "share": 1.0}
    found = use(root).corpus
    assert {name: getattr(found, name) for name in expected} == expected


def test_the_origin_of_a_corpus_names_its_shards_and_their_versions(root):
    paths = put("c4/en", *SHARDS)
    Far.etags = {path: f'"{number}"' for number, path in enumerate(paths)}
    use(root)
    record = origin(root)
    expected = {"address": "far://c4/en", "seed": PARAMS.seed, "share": 1.0}
    assert {name: record[name] for name in expected} == expected
    shards = [(one["name"], one["size"], one["etag"], one["read"]) for one in record["shards"]]
    assert shards == [
        (path, len(Far.files[path]), str(number), 150) for number, path in enumerate(paths)
    ]
    assert data_store.status(root).addresses == ["far://c4/en"]


def test_a_use_leaves_no_parts_and_tells_no_text(root, capsys):
    put("c4/en", *SHARDS)
    use(root)
    assert not list((root / ".lexveil/stream").glob("*"))
    assert SECRET not in capsys.readouterr().err


def test_the_sample_of_what_is_kept_is_the_sample_of_the_whole(root, tmp_path):
    """Exactly, while enough is kept; the second size shows that the comparison can fail."""
    put("c4/en", *SHARDS)
    use(root)
    shutil.copytree(root / "data/corpus", tmp_path / "whole")
    kept = use(root, wanted=SampleRequest(share=0.3)).corpus.documents
    assert kept == sum(uniform(text, PARAMS.seed) < 0.3 for texts in SHARDS for text in texts) > 120

    def drawn(folder, n):
        sample(
            folder,
            tmp_path / "s.parquet",
            PARAMS.model_copy(update={"sample": SampleParams(max_documents=n)}),
            MachineParams(),
        )
        return (tmp_path / "s.parquet").read_bytes()

    for n, same in ((1, True), (kept // 2, True), (kept, True), (kept + 1, False)):
        assert (drawn(root / "data/corpus", n) == drawn(tmp_path / "whole", n)) == same


def test_workers_with_different_shards_keep_what_one_keeps(root):
    put("c4/en", *SHARDS)
    wanted = SampleRequest(share=0.4)
    use(root, wanted=wanted)
    one = tree(root / "data/corpus")
    parts = {}
    for shards in ((0, 0), (1, 3)):
        Far.reads = []
        use(root, wanted=replace(wanted, shards=shards))
        for n in range(4):
            name = f"c4-train.{n:05d}-of-00004.json.gz"
            asked = shards[0] <= n <= shards[1]
            assert Far.read_of(name) == (len(Far.files[f"c4/en/{name}"]) if asked else 0)
        parts |= tree(root / "data/corpus")
    assert one.pop("origin.json") != parts.pop("origin.json")  # it names the shards that were read
    assert parts == one


def test_a_number_of_documents_becomes_a_share(root):
    put("c4/en", *SHARDS)
    for n in (50, 200):
        summary = use(root, wanted=SampleRequest(max_documents=n)).corpus
        # The documents are counted right here: the probe reads the whole first shard, and all are
        # alike.
        assert summary.share == pytest.approx(share_for(n, 600), rel=0.02)
        assert n <= summary.documents < 2.5 * n
    assert use(root, wanted=SampleRequest()).corpus.share == 1.0  # params.yaml asks for a million


def test_a_share_by_hand():
    """1.1 · (10,000 + 4 · 100) / 1,000,000 = 0.01144; 1.1 · (100 + 40) / 3 is more than all."""
    assert share_for(10_000, 1e6) == 0.01144
    assert share_for(100, 3) == 1.0
    assert share_for(1_000_000, 364_868_892) == 0.003027  # 0.00302675…, rounded up


@pytest.mark.parametrize("moment", ["in the middle", "before the state is written"])
def test_an_interrupted_call_goes_on_with_the_next_shard(root, moment, monkeypatch):
    data_store.use_default(root)
    before = tree(root / "data")
    paths = put("c4/en", *SHARDS)
    wanted = SampleRequest(share=0.5)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        if moment == "before the state is written":
            write = corpus_sampling.write_json

            def interrupted(value, path):
                if path.name == "00002.json":
                    raise KeyboardInterrupt
                write(value, path)

            patched.setattr(corpus_sampling, "write_json", interrupted)
        else:
            patched.setattr(remote, "CHUNK", 256)
            Far.breaks[paths[2]] = [(700, KeyboardInterrupt())]
        use(root, wanted=wanted)
    assert tree(root / "data") == before
    assert not list((root / ".lexveil/stream").rglob(".*partial"))
    Far.reads = []
    use(root, wanted=wanted)
    assert [Far.read_of(path) for path in paths] == [
        0,
        0,
        *(len(Far.files[path]) for path in paths[2:]),
    ]
    again = tree(root / "data/corpus")
    use(root, wanted=wanted)
    assert tree(root / "data/corpus") == again


def test_a_shard_that_changed_is_read_again_and_another_request_starts_afresh(root):
    paths = put("c4/en", *SHARDS)
    Far.etags = dict.fromkeys(paths, "old")
    Far.breaks[paths[3]] = [(0, PermissionError())]
    with pytest.raises(RequestError):
        use(root)
    Far.etags[paths[1]] = "new"
    Far.reads, Far.breaks = [], {paths[3]: [(0, PermissionError())]}
    with pytest.raises(RequestError):
        use(root)
    assert [Far.read_of(path) > 0 for path in paths] == [False, True, False, False]
    Far.reads = []
    use(root, wanted=SampleRequest(share=0.5))
    assert all(Far.read_of(path) for path in paths)
    assert not any((root / ".lexveil/stream").iterdir())


def test_a_broken_connection_goes_on_at_the_same_byte(
    root,
    waits,
    monkeypatch,
    capsys,
):
    monkeypatch.setattr(remote, "CHUNK", 512)
    path = put("c4/en", SHARDS[0])[0]
    response = httpx.Response(503, request=httpx.Request("GET", f"https://h.example/{SECRET}"))
    Far.breaks[path] = [
        (0, ConnectionResetError()),
        (100, TimeoutError(SECRET)),
        (100, httpx.ReadTimeout(SECRET)),
        (900, None),
        (901, httpx.HTTPStatusError(SECRET, request=response.request, response=response)),
    ]
    use(root)
    assert list(corpus(root).values()) == [SHARDS[0]]
    assert Far.read_of(path) == len(Far.files[path])  # nothing twice
    # a wait grows while nothing comes, and begins anew when something did
    assert waits == [1, 1, 2, 1, 1]
    said = capsys.readouterr().err
    assert "HTTPStatusError, HTTP 503; try 2 of 6" in said and SECRET not in said


def test_a_place_that_stays_away_ends_the_call_and_keeps_what_is_finished(root, waits):
    paths = put("c4/en", *SHARDS)
    Far.breaks[paths[1]] = [(0, ConnectionResetError(SECRET)) for _ in range(6)]
    with pytest.raises(
        LexveilError, match=r"c4-train.00001-of-00004.json.gz: could not be read in 6 tries"
    ) as error:
        use(root)
    assert error.value.exit_code == 1 and SECRET not in str(error.value)
    assert waits == [1, 2, 4, 8, 16]
    Far.reads = []
    use(root)
    assert Far.read_of(paths[0]) == 0


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (PermissionError(), "log in"),
        (ValueError("no range requests"), "download it and give the file"),
        (httpx.HTTPStatusError("", request=None, response=httpx.Response(401)), "log in"),
    ],
)
def test_what_is_refused_is_not_asked_again(root, fault, said, waits):
    path = put("c4/en", SHARDS[0])[0]
    Far.breaks[path] = [(0, fault)]
    with pytest.raises(RequestError, match=f"{path}.*{said}"):
        use(root)
    assert waits == [] and not (root / "data").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (packed(SHARDS[0])[:-300], ".gz file is truncated after line"),
        (packed(SHARDS[0])[:-8] + bytes(8), "damaged"),
        (gzip.compress(b'{"body": "Zanzibar"}\n', mtime=0), "no column `text` among its 1"),
        (b"", "empty"),
    ],
)
def test_a_fault_in_a_shard_names_it(root, content, said, waits):
    paths = put("c4/en", *SHARDS)
    Far.files[paths[2]] = content
    with pytest.raises(RequestError) as error:
        use(root)
    message = str(error.value)
    assert "c4/en/c4-train.00002-of-00004.json.gz" in message and said in message
    assert SECRET not in message and "\n" not in message and waits == []


def test_texts_that_nothing_can_carry_are_left_out_and_counted(root):
    put("c4/en", ["a", "b\0c", "d\ud800", " ", "e"])
    summary = use(root)
    assert list(corpus(root).values()) == [["a", "e"]]
    assert (summary.corpus.skipped_unusable, summary.corpus.skipped_blank) == (2, 1)
    assert "corpus: 2 texts with NUL or an unpaired surrogate were skipped" in summary.notes


def test_a_shard_without_anything_kept_has_no_file(root):
    put("c4/en", *[[text] for text in SHARDS[0][:30]])
    use(root, wanted=SampleRequest(share=0.5))
    kept = corpus(root)
    assert 0 < len(kept) < 30 and all(kept.values())
    read = [one["documents"] for one in origin(root)["shards"]]
    assert (sum(read), len(read)) == (len(kept), 30)
    with pytest.raises(
        RequestError, match="none of its 30 documents was stored; take a larger share"
    ):
        use(root, wanted=SampleRequest(share=1e-9))


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("far://c4/en/c4-train.0000[12]-*", [f"c4-train.0000{n}-of-00004.json.gz" for n in (1, 2)]),
        ("far://c4/en/c4-validation.*.json.gz", ["c4-validation.00000-of-00001.json.gz"]),
        ("far://c4/en/c4-train.00003-of-00004.json.gz", ["c4-train.00003-of-00004.json.gz"]),
        ("far://c4/other/", ["x.jsonl", "y.txt"]),
    ],
)
def test_what_an_address_stands_for(address, names):
    put("c4/en", *SHARDS)
    Far.files |= {f"c4/other/{name}": b"a" for name in ("x.jsonl", "y.txt", "README.md", "z.bin")}
    found = find_remote(address)
    assert [Path(shard.path).name for shard in found.shards] == names
    assert [shard.number for shard in found.shards] == list(range(len(names)))


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("far://c4", "give one of the folders en"),
        ("far://nothing", "not found"),
        ("far://c4/en/*.bin", "known are"),
        ("nosuch://c4", "unknown kind of address"),
        ("hf://c4", "does not have the form hf://"),
    ],
)
def test_addresses_that_lead_nowhere(address, said):
    put("c4/en", *SHARDS)
    Far.files["c4/z.bin"] = b"a"
    with pytest.raises(RequestError, match=said):
        find_remote(address)


@pytest.mark.parametrize(
    ("address", "asked", "read"),
    [
        ("hf://allenai/c4/en", ("allenai/c4", None), "datasets/allenai/c4@abc/en"),
        ("hf://datasets/allenai/c4@v1/en", ("allenai/c4", "v1"), "datasets/allenai/c4@abc/en"),
        ("hf://a/b@refs/convert/parquet/x", ("a/b", "refs/convert/parquet"), "datasets/a/b@abc/x"),
        ("hf://a/b@refs/pr/7/en/x*", ("a/b", "refs/pr/7"), "datasets/a/b@abc/en/x*"),
    ],
)
def test_the_hub_is_read_at_the_commit_of_the_revision(address, asked, read, monkeypatch):
    commit = Mock(return_value="abc")
    monkeypatch.setattr(remote, "hub_commit", commit)
    assert remote._hub_url(address) == (f"hf://{read}", "abc")
    commit.assert_called_once_with(*asked)


def test_a_commit_that_leaves_the_shards_alone_costs_nothing(root, monkeypatch):
    monkeypatch.setattr(remote, "url_to_fs", lambda url: (Far(), Far._strip_protocol(url)))
    for commit in ("one", "two"):
        monkeypatch.setattr(remote, "hub_commit", lambda repo, revision, commit=commit: commit)
        Far.forget()
        paths = put(f"datasets/allenai/c4@{commit}/en", *SHARDS)
        Far.etags = {path: str(n) for n, path in enumerate(paths)}
        if commit == "one":
            Far.breaks[paths[2]] = [(0, KeyboardInterrupt())]
            with pytest.raises(KeyboardInterrupt):
                use(root, "hf://allenai/c4/en")
    use(root, "hf://allenai/c4/en")
    assert [Far.read_of(path) > 0 for path in paths] == [False, False, True, True]
    assert origin(root)["commit"] == "two"


def test_no_secret_of_an_address_is_shown():
    assert (
        shown_address("https://me:key@h.example/a/b.json.gz?token=key")
        == "https://h.example/a/b.json.gz"
    )
    assert shown_address("hf://allenai/c4@v1/en/*") == "hf://allenai/c4@v1/en/*"
    assert shown_address("simplecache::s3://me:key@b/c") == "simplecache::s3://b/c"
    # Over HTTP the path of a file is its whole address.
    shard = RemoteShard(0, "https://me:key@h.example/a.json.gz?token=key", 1, None)
    assert shard.name == "https://h.example/a.json.gz"
    assert "key" not in str(shard.source())
    refusing = Mock(open=Mock(side_effect=OSError(shard.path)))
    with pytest.raises(LexveilError) as error, RemoteFile(refusing, shard) as file:
        file.read(1)
    assert "key" not in str(error.value)


def test_parquet_shards(root):
    Far.files = {
        f"p/train-{n}.parquet": parquet([{"text": text, "id": 1} for text in SHARDS[n]])
        for n in range(2)
    }
    path = "p/train-1.parquet"
    Far.breaks[path] = [(len(Far.files[path]) // 2, ConnectionResetError())]
    summary = use(root, "far://p", SampleRequest(max_documents=1000))
    assert list(corpus(root).values()) == SHARDS[:2]
    assert "corpus: columns dropped: `id`" in summary.notes


def test_files_and_addresses_side_by_side(root, tmp_path):
    put("c4/en", *SHARDS)
    (tmp_path / "t.txt").write_text("ticket\n")
    summary = data_store.use(
        data_store.DataRequest({"web": "far://c4/en", "tickets": tmp_path / "t.txt"}, wanted=ALL),
        root,
    )
    assert (
        set(summary.corpus) == {"web", "tickets"}
        and (root / "data/corpus/web/origin.json").exists()
    )
    # The other side's documents can change without the corpus, and it stays with where it came
    # from.
    kept = tree(root / "data/corpus")
    data_store.use(data_store.DataRequest(None, [tmp_path / "t.txt"]), root)
    assert tree(root / "data/corpus") == kept
    drawn = sample(root / "data/corpus", tmp_path / "s.parquet", PARAMS, MachineParams())
    assert drawn == {"tickets": 1, "web": 600}


def test_requests_that_make_no_sense(root, tmp_path, monkeypatch):
    put("c4/en", *SHARDS)
    (tmp_path / "t.txt").write_text("ticket\n")
    with pytest.raises(RequestError, match="has 4 shards, numbered from 0"):
        use(root, wanted=SampleRequest(shards=(2, 4)))
    with pytest.raises(RequestError, match="need an address"):
        data_store.use(data_store.DataRequest(tmp_path / "t.txt", wanted=ALL), root)
    monkeypatch.setattr(corpus_sampling.shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(RequestError, match=r"100 bytes are free\. Free some space"):
        use(root)
    assert Far.reads == []
