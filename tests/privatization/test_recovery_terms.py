"""A request by recovery: an epsilon of public things alone, and a release that would give back too much is refused."""

from pathlib import Path

import pytest
from asking import privatize_file

from lexveil.api import privatize
from lexveil.cli.main import main

pytestmark = pytest.mark.usefixtures("own_figures")

TEXTS = {"one.jsonl": '{"text": "the door was open"}\n', "other.jsonl": '{"text": "rain"}\n{"text": "a cold room"}\n'}


def test_equal_public_things_give_equal_epsilon_whatever_the_texts(project: Path) -> None:
    records = []
    for name, text in TEXTS.items():
        Path(name).write_text(text, encoding="utf-8")
        for kept in (project / ".lexveil/recovery").glob("*"):
            kept.unlink()  # each input starts from nothing
        how = {"mechanism": "tem", "strategy": "S1", "recovery": 0.4}
        records.append(privatize_file(name, f"out-{name}", project=project, **how).record)
    assert records[0].base_epsilon == records[1].base_epsilon
    assert records[0].document_budget == records[1].document_budget
    assert all(record.spent.max_token_epsilon <= record.base_epsilon for record in records)


def test_a_release_that_gives_back_too_much_is_refused_before_it_costs_anything(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = (project / "params.yaml").read_text(encoding="utf-8")
    (project / "params.yaml").write_text(params.replace("max_recovery: null", "max_recovery: 0.2"), encoding="utf-8")
    Path("one.jsonl").write_text(TEXTS["one.jsonl"], encoding="utf-8")
    command = ["privatize", "one.jsonl", "--mechanism", "tem", "--strategy", "S1", "-o"]
    assert main([*command, "out.jsonl", "--epsilon", "500"]) == 2
    said = capsys.readouterr().err
    assert "nothing is released" in said and "release.max_recovery allows 20.0%" in said
    assert not Path("out.jsonl").exists()
    passes = said.split("--epsilon ")[1].split()[0]
    assert main([*command, "2.jsonl", "--epsilon", passes, "--max-token-epsilon", str(2 * float(passes))]) == 2
    assert "nothing is released" in capsys.readouterr().err
    assert main([*command, "3.jsonl", "--epsilon", passes, "--max-token-epsilon", passes]) == 0
    assert main([*command, "4.jsonl", "--epsilon", "500", "--mode", "experiment"]) == 0  # nothing is released


@pytest.mark.parametrize("mechanism", ["tem", "madlib"])
def test_what_epsilon_means_is_no_matter_of_the_source(project: Path, mechanism: str) -> None:
    found = []
    for text in ("the door was open", "the rain was cold"):
        for kept in (project / ".lexveil/recovery").glob("*"):
            kept.unlink()
        record = privatize([text], mechanism=mechanism, strategy="S1", epsilon=4.0, project=project).record
        assert record.meaning is not None and record.counts.n_perturbed
        found.append(record.meaning)
    assert found[0] == found[1]
    (at,) = found[0].at
    assert at.bound is not None and 0 < at.bound.nearest.median <= at.bound.middle.median <= at.bound.random.worst
    assert {"rare", "all"} <= set(at.bands) and found[0].sentences[0].startswith("Of 100 rare words")


def test_texts_of_several_lengths_have_a_range_of_epsilons(project: Path) -> None:
    texts = ["rain", " ".join(["door rain room"] * 400)]
    done = privatize(texts, mechanism="tem", strategy="S1", epsilon=1.0, project=project)
    meaning, spent = done.record.meaning, done.record.spent
    assert meaning is not None and spent is not None
    least, most = (at.epsilon for at in meaning.at)
    assert least < most == spent.max_token_epsilon
    assert "at the smallest" in meaning.sentences[0]
