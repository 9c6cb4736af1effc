"""How long the page of `lexveil explore` takes to answer when a slider is moved.

    uv run python -m benchmarks.explore [--moves N] [--model NAME] [--words N]

The answer is the whole one, three draws of a public sample (or of its words repeated) as HTML, at another epsilon each
time, without browser and socket, once compiled code is loaded, as it is while the page is opened. The first answer of
a mechanism, which makes it, stands beside the median of the others.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import cycle, islice

from starlette.testclient import TestClient

from lexveil.explore.app import create_app
from lexveil.explore.background import Background
from lexveil.explore.drawing import Desk, load_kernels
from lexveil.explore.gate import HEADER
from lexveil.explore.samples import SAMPLES

MECHANISMS = ("tem", "madlib", "diffractor_tem", "diffractor_geometric")
TOKEN = "benchmark"
POINTS = 4  # of the slider, in each doubling of epsilon


def moves(client: TestClient, text: str, mechanism: str, strategy: str, n: int) -> list[tuple[float, float]]:
    """Wall and processor seconds of n answers, each at another place of the slider."""
    taken = []
    for number in range(n):
        fields = {"text": text, "mechanism": mechanism, "strategy": strategy, "epsilon": 2.0 ** (number / POINTS)}
        wall, cpu = time.perf_counter(), time.process_time()
        answer = client.post("/api/draws", data=fields)
        taken.append((time.perf_counter() - wall, time.process_time() - cpu))
        assert answer.status_code == 200
    return taken


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=12, help="of the slider, the first one included")
    parser.add_argument("--model", default="en")
    parser.add_argument("--words", type=int, help="of the text (default: those of the sample)")
    options = parser.parse_args()
    words = next(iter(SAMPLES.values())).split()
    text = " ".join(islice(cycle(words), options.words or len(words)))
    app = create_app(Desk(options.model), TOKEN, background=Background(lambda _: None))
    client = TestClient(app, base_url="http://127.0.0.1", headers={HEADER: TOKEN})
    load_kernels(options.model)
    print(f"{len(text.split())} words, three draws, {options.moves} places of the slider; milliseconds")
    print("| mechanism | strategy | wall, median | wall, most | wall, first | CPU, median | CPU, most | CPU, first |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for mechanism in MECHANISMS:
        for strategy in ("S1", "S3"):
            first, *taken = moves(client, text, mechanism, strategy, options.moves)
            wall, cpu = ([1000 * one[place] for one in taken] for place in (0, 1))
            figures = [
                value
                for times, start in ((wall, first[0]), (cpu, first[1]))
                for value in (statistics.median(times), max(times), 1000 * start)
            ]
            print(f"| {mechanism} | {strategy} | " + " | ".join(f"{value:.0f}" for value in figures) + " |", flush=True)


if __name__ == "__main__":
    main()
