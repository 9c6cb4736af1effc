"""What the section of the guarantee says beside it."""

from types import SimpleNamespace
from typing import Any

from lexveil.report.records import RunRecovery
from lexveil.report.sections.guarantee import measured_sentence


def measured(epsilon: float, recovered: float, unchanged: float) -> RunRecovery:
    by_word, same = ({"share": share, "low": 0.0, "high": 1.0} for share in (recovered, unchanged))
    bands = {"rare": {"n": 5, "by_word": by_word, "unchanged": same}}
    return RunRecovery({"mechanism": "tem", "strategy": "S1", "epsilon": epsilon, "all": bands, "datasets": {}})


def test_what_a_reader_got_back_of_rare_words_is_one_sentence() -> None:
    runs: Any = [SimpleNamespace(key=("tem", "S1", epsilon)) for epsilon in (1.0, 5.0)]
    found = [measured(1.0, 0.0, 0.013), measured(5.0, 0.2, 0.3), measured(50.0, 1.0, 1.0)]
    said = measured_sentence(runs, found)
    assert said is not None and "names 0 to 20, and 1 to 30 stand unchanged, over these runs." in said
    said = measured_sentence(runs[:1], found)
    assert said is not None and "names 0, and 1 stand unchanged. A record" in said
    assert measured_sentence(runs[:1], found[1:]) is None
