"""A model takes everything from its source, of whatever kind that is."""

from lexveil import privatize
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_source import OwnRun, PackagedSource
from lexveil.io.artifacts.project import Project

HOW = {"mechanism": "tem", "strategy": "S3", "epsilon": 5.0, "seed": 1}


class Bank(PackagedSource):
    """A kind of source that nothing else knows."""

    @property
    def name(self):
        return "bank"

    @property
    def average_words(self):
        return 7.0


def test_another_kind_of_source_needs_no_other_code(outside, packaged):
    model = Model(Project.of_user(), Bank(packaged))
    done = privatize(["the police said no"], project=model, **HOW)
    assert done.record.model is not None and done.record.model.name == "bank"
    assert model.average_words() == 7.0


def test_both_kinds_are_loaded_by_name(built, outside):
    assert isinstance(Model.load(built, "own").source, OwnRun)
    assert isinstance(Model.load(built, "toy").source, PackagedSource)
