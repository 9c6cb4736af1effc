"""What would happen to a file, said before anything does: what `lexveil inspect` calls. Nothing is written or paid."""

from __future__ import annotations

import resource
import time
from collections import Counter as Frequencies
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lexveil.accounting.budgets import ACTIONS, KEPT, PERTURBED, SAMPLED
from lexveil.accounting.record import MUCH_UNCHANGED
from lexveil.formats.readers import Reader
from lexveil.privatization.batches import FlatTexts
from lexveil.privatization.count import plan_tokens
from lexveil.privatization.engine import ChunkCounts, Engine, InputTotals
from lexveil.privatization.file_adapter import FileOptions
from lexveil.privatization.model import Model
from lexveil.privatization.outputs import find_readers
from lexveil.privatization.selected_chunk import SelectedChunk, batches_of
from lexveil.privatization.settings import make_settings
from lexveil.privatization.tally import Tally
from lexveil.privatization.two_passes import progress_on_stderr
from lexveil.runtime.checkpoints import size
from lexveil.text.encode import KINDS, encode

TRIED = 50_000  # tokens that are rewritten, and forgotten, to say what would come out
EXAMPLES = 15  # words of each class, if they are asked for


def inspect(
    source: Path | str, *, show_examples: bool = False, project: Path | Model | None = None, **options: Any
) -> dict[str, Any]:
    """Read a file or folder and say what `lexveil privatize` would do with it.

    Args:
        source, project, options: as of ``privatize_file``.
        show_examples: name the most frequent words that would stay unprotected or are unknown. They are source text.

    Returns:
        The result, as JSON values.

    Raises:
        RequestError: as ``privatize_file``.
    """
    chosen, model = FileOptions(**options), Model.load(project)
    settings, params = make_settings(chosen, model.params), model.params
    spool = model.path(params.machine.temp_directory)
    with find_readers(source, chosen.columns, chosen.subject_column, chosen.form, spool) as readers:
        n_bytes = sum(reader.size for reader in readers)
        workers = chosen.workers_for(n_bytes, model)
        model.require_checks(settings.strategy)
        engine = Engine(settings, model)
        survey, first, seconds, spread = _survey(engine, readers, workers)
        budget = engine.budget(survey)
        tried = _try(engine, first, budget)
        examples = _examples(engine, [held for held, _ in first]) if show_examples else None
    words = int(survey.by_class[[KINDS.index(kind) for kind in ("word", "stopword", "oov")]].sum())
    unknown = int(survey.by_class[KINDS.index("oov")].sum())
    tokens = int(survey.by_class.sum())
    by_action = survey.by_class.sum(axis=0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "files": len(readers),
        "bytes": n_bytes,
        "rows": survey.rows,
        "documents": survey.documents,
        "texts": survey.texts,
        "tokens": tokens,
        "coverage": 1 - unknown / words if words else None,
        "in_clear_share": int(by_action[KEPT]) / tokens if tokens else None,
        "by_class": {
            kind: dict(zip(ACTIONS, row, strict=True))
            for kind, row in zip(KINDS, survey.by_class.tolist(), strict=True)
        },
        "budget": {
            "mechanism": settings.mechanism,
            "strategy": settings.strategy,
            "mode": settings.mode,
            "metric": engine.prepared.mechanism.metric,
            "no_guarantee": engine.prepared.mechanism.no_guarantee,
            "document_budget": budget,
            "cap": params.release.cap,
            "epsilon_per_token": {name: None if per is None else budget * per for name, per in spread.items()},
        },
        "tried": tried,
        "estimate": {
            "workers": workers,
            "seconds": 2 * seconds + tokens / tried["tokens_per_second"] / workers if tried["tokens"] else seconds,
            # Each worker is a process like this one.
            "memory_bytes": memory * (1 if workers == 1 else 1 + workers),
        },
        "examples": examples,
    }


def _survey(
    engine: Engine, readers: Sequence[Reader], workers: int
) -> tuple[InputTotals, list[tuple[SelectedChunk, ChunkCounts]], float, dict[str, float | None]]:
    """What the input holds; its first chunks, counted; how long that took; epsilon per token as share of the budget."""
    survey, first, kept = InputTotals.empty(), list[tuple[SelectedChunk, ChunkCounts]](), 0
    least, most, paying, tokens = np.inf, 0.0, 0, 0

    def chunks() -> Iterator[SelectedChunk]:
        for reader in readers:
            for chunk in reader.chunks(for_writing=False):
                yield SelectedChunk.whole(chunk)

    progress = progress_on_stderr("inspect", 0, "rows")
    start = time.monotonic()
    for held, counted in engine.count(batches_of(chunks()), workers, progress):
        survey.add(counted)
        if kept < TRIED:
            first.append((held, counted))
            kept += int(counted.counts[1].sum())
        shares = counted.counts[3 if engine.settings.strategy == "S2" else 2]
        of = shares[shares > 0]
        if len(of):
            least, most = min(least, 1 / float(of.max())), max(most, 1 / float(of.min()))
            paying, tokens = paying + len(of), tokens + int(of.sum())
    spread: dict[str, float | None] = dict.fromkeys(("least", "mean", "most"))
    if paying:
        spread = {"least": float(least), "mean": paying / tokens, "most": most}
    return survey, first, time.monotonic() - start, spread


def _try(engine: Engine, chunks: Sequence[tuple[SelectedChunk, ChunkCounts]], budget: float) -> dict[str, Any]:
    """Rewrite some rows and forget them: how much would change, and how fast it goes."""
    tally, done = Tally(), 0
    some = []
    for held, counted in chunks:
        n_tokens = counted.counts[1]
        some.append(replace(held, keep=done + np.cumsum(n_tokens) - n_tokens < TRIED))
        done += int(n_tokens.sum())
    columns = [str(number) for number in range(len(some[0].chunk.texts[0]))]
    progress = progress_on_stderr("try", sum(int(held.keep.sum()) for held in some), "rows")
    start = time.monotonic()
    for _, part in engine.rewrite(batches_of(some), columns, budget, 1, progress):
        tally.merge(part.tally)
    seconds = time.monotonic() - start
    metrics = tally.metrics()
    unchanged = metrics["share_unchanged"]
    return {
        "tokens": metrics["n_tokens_in"],
        "perturbed": metrics["n_perturbed"],
        "share_changed": None if unchanged is None else 1 - unchanged,
        "words_out_per_word_in": metrics["n_words_out"] / metrics["n_words_in"] if metrics["n_words_in"] else None,
        "tokens_per_second": metrics["n_tokens_in"] / seconds if metrics["n_tokens_in"] else 0.0,
    }


def _examples(engine: Engine, chunks: Sequence[SelectedChunk]) -> dict[str, list[tuple[str, int]]]:
    """The most frequent words that would leave in clear, and those that are unknown, of the first rows."""
    found: dict[str, Frequencies[str]] = {"in clear": Frequencies(), "unknown": Frequencies()}
    for held in chunks:
        encoded = encode(FlatTexts.of(held.texts).texts, engine.lexicon)
        plan = plan_tokens(encoded, engine.vocabulary.number, engine.settings.policy)
        for name, chosen in (
            ("in clear", plan.action == KEPT),
            ("unknown", (plan.action != PERTURBED) & (plan.known < 0) & (encoded.kind == KINDS.index("oov"))),
        ):
            found[name].update(encoded.words[at] for at in encoded.first_word[np.flatnonzero(chosen)].tolist())
    return {name: words.most_common(EXAMPLES) for name, words in found.items()}


def as_text(result: Mapping[str, Any]) -> list[str]:
    """The result as lines for people."""

    def share(value: float | None) -> str:
        return "-" if value is None else f"{value:.1%}"

    budget, tried, estimate, tokens = result["budget"], result["tried"], result["estimate"], result["tokens"]
    files = f" in {result['files']:,} files" if result["files"] > 1 else ""
    lines = [
        f"{result['rows']:,} rows{files} ({size(result['bytes'])}), {result['texts']:,} texts, {tokens:,} tokens",
        f"the vocabulary knows {share(result['coverage'])} of the words",
        "",
        f"{'class':<12}" + "".join(f"{action:>14}" for action in ("perturbed", "random word", "dropped", "IN CLEAR")),
    ]
    for kind, actions in result["by_class"].items():
        cells = (actions[ACTIONS[action]] for action in (PERTURBED, SAMPLED, 2, KEPT))
        lines.append(f"{kind:<12}" + "".join(f"{count:>14,}" for count in cells))
    lines.append(f"{share(result['in_clear_share'])} of all tokens would leave in clear")
    for name, words in (result["examples"] or {}).items():
        lines.append(f"most frequent {name}: " + ", ".join(f"{word} ({count:,})" for word, count in words))
    per = budget["epsilon_per_token"]
    lines += [
        "",
        f"{budget['mechanism']} {budget['strategy']}, {budget['mode']} mode; unit 1 / {budget['metric']}",
        f"budget of each document {budget['document_budget']:.4g}"
        + (
            ""
            if per["mean"] is None
            else f"; epsilon of a token {per['least']:.4g} to {per['most']:.4g}, mean {per['mean']:.4g}"
        ),
        f"lifetime cap of a subject: {'none (params.yaml: release.cap)' if budget['cap'] is None else budget['cap']}",
    ]
    if budget["cap"] is not None and budget["document_budget"] > budget["cap"]:
        lines.append("CAUTION: the budget of a document is above the cap: rows would be left out, perhaps all")
    if budget["no_guarantee"]:
        lines.append(f"CAUTION: no guarantee: {budget['no_guarantee']}")
    if tried["share_changed"] is not None:
        changed, n = share(tried["share_changed"]), tried["tokens"]
        lines.append(f"about {changed} of the perturbed tokens would change (tried on {n:,} tokens)")
        if 1 - tried["share_changed"] > MUCH_UNCHANGED:
            lines.append("CAUTION: hardly a word would change: this epsilon is so large that the bound means little")
    lines.append(
        f"takes about {_duration(estimate['seconds'])} and at most {size(estimate['memory_bytes'])} of memory with "
        f"{estimate['workers']} process{'es' if estimate['workers'] > 1 else ''}"
    )
    return lines


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
