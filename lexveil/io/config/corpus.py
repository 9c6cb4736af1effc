"""Parameters of the corpus, its collocations, the embeddings trained on it, and the model that a
project exports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, create_model, model_validator

from lexveil.base.parameters import (
    MODEL_NAME,
    Documented,
    ListFile,
    OneOf,
    Section,
    Several,
    matching,
)
from lexveil.core.association import MEASURES, PMI, AssociationMeasure
from lexveil.io.request import ScreenParts

# NAME@HASH: the first 12 digits of a hash of the model's content.
MODEL = r"own|gst|mst|[a-z0-9][a-z0-9_-]{0,63}@[0-9a-f]{12}"
# A packaged model that ships may be named without its hash, because every stage that reads it
# depends on its card.
BASE = rf"{MODEL_NAME}(@[0-9a-f]{{12}})?"
NO_BASE = "none"

Weight = Annotated[float, Field(ge=0, le=1e9)]
Measure = Annotated[str, OneOf(lambda: [measure.name for measure in MEASURES])]
Search = Literal["exact", "pynndescent"]
Name = Annotated[str, Field(pattern=rf"^{MODEL_NAME}$")]
Screen = Literal["patterns", "slurs", "names"]


HASHED = "(the hash stands for the content, so that DVC sees when it changes)"
OF_LIST = "as `lexveil model list` shows it"
ListModel = Annotated[
    str, matching(MODEL, f"it must be own, gst, mst, or NAME@HASH {OF_LIST} {HASHED}")
]
WordModel = Annotated[
    str, matching(rf"(?!(gst|mst)$)({MODEL})", f"it must be own, or NAME@HASH {OF_LIST} {HASHED}")
]
BaseModelName = Annotated[
    str,
    matching(
        rf"(?!own$){BASE}",
        "it must be none, the name of a model that ships, or NAME@HASH as `lexveil model "
        "list` shows it " + HASHED,
    ),
]


class SampleParams(Documented):
    """The corpus sample."""

    max_documents: int = Field(1_000_000, ge=1, le=2**62)
    """chosen by hash of text and seed; exact duplicates are removed first"""
    weights: dict[str, Weight] = {}
    """of the sources in data/corpus, 1 where one is not named: one of weight 5 is five times as
    likely"""


class CountParams(Documented):
    """Counts of n-grams."""

    min_count: int = Field(2, ge=1, le=2**31)
    """n-grams rarer than this are not stored; they still count in the totals"""


def _threshold(measure: AssociationMeasure) -> tuple[Any, Any]:
    """Return type and field of a measure's threshold. Only the threshold of PMI, which segmentation
    uses, cannot be null.
    """
    about = f"in {measure.unit}: {measure.summary}" if measure.unit else measure.summary
    kind, default = (float, 2.0) if measure is PMI else (float | None, None)
    return kind, Field(default, ge=measure.low, le=measure.high, description=about)


if TYPE_CHECKING:

    class _Thresholds(Section):
        def __getattr__(self, name: str) -> Any: ...

else:
    _Thresholds = create_model(
        "_Thresholds",
        __base__=Section,
        __module__=__name__,
        **{measure.threshold: _threshold(measure) for measure in MEASURES},
    )


class CollocationParams(_Thresholds, Documented):
    """Thresholds of collocations. An n-gram must reach all thresholds; a threshold of null is not
    applied.
    """

    min_count: int = Field(2, ge=1, le=2**31)
    """at least count.min_count"""
    measures: Several[Measure] = ["pmi"]
    """columns that are written beside the counts; pmi is one of them"""

    @model_validator(mode="after")
    def _cut_by_pmi(self) -> Self:
        if "pmi" not in self.measures:
            raise ValueError(
                "collocations.measures must name pmi, which segmentation uses; other "
                "measures may be added"
            )
        return self


class EmbeddingParams(Documented):
    """Training of embeddings by Word2Vec of gensim."""

    base: BaseModelName = "en"
    """packaged model that training begins with and whose words and collocations are added: a model
    that ships (en), or NAME@HASH of `lexveil model list`; or none"""
    base_tokens: int | None = Field(10_000, ge=1, le=2**31)
    """only so many of its tokens, the most frequent; null: all"""
    base_vectors: Literal["keep", "adapt"] = "keep"
    """of tokens that the base knows: they stay, or the corpus moves those it has"""
    dimensions: int | None = Field(None, ge=2, le=4096)
    """of a vector; null: those of the base, 100 without one; 300 in the paper"""
    window: int = Field(5, ge=1, le=100)
    """words on each side"""
    min_count: int | None = Field(None, ge=1, le=2**31)
    """rarer tokens have no vector; null: 2, or 5 of a corpus of a million tokens or more"""
    epochs: int | None = Field(None, ge=1, le=1000)
    """passes; null: as many as read 32 million tokens, from 5 to 40"""
    negative: int = Field(5, ge=1, le=100)
    """negative samples"""
    skip_gram: bool = True
    """or CBOW"""
    subsample: float = Field(1e-3, ge=0, le=1)
    """tokens of a larger share are left out at random, the more the larger; 0: none"""
    plain_copy: bool = False
    """gst, mst: a sentence with collocations is read a second time as plain words, so that these
    are trained by all of their occurrences too"""
    workers: int = Field(1, ge=1, le=1024)
    """more than one is faster and not repeatable byte for byte"""
    word_model: WordModel = "own"
    """of S1: own is trained here, or NAME@HASH of a model, as `lexveil model list` shows it"""
    scale: Literal["none", "unit", "frequency"] = "frequency"
    """lengths of vectors: as trained (the papers'), all 1, or the shorter the rarer a word, which
    hides rare words among each other; the unit of every epsilon changes with it"""
    scale_list: ListFile | None = None
    """public CSV of columns word and factor, as FILE@HASH: its words' lengths are multiplied by
    these; 0: always taken for each other; null: none"""
    purposes: dict[str, Annotated[float, Field(ge=0.01, le=10)]] = {}
    """public scales of words that the metric keeps, with their weights: sentiment, which ships,
    or FILE.tsv@HASH of `lexveil purpose build`; what texts say on them is hidden less"""


class NeighborhoodParams(Documented):
    """The table of nearest words, and the near-word lists from which mechanisms draw."""

    lists: int | None = Field(None, ge=0)
    """most frequent words that get a list; null: all; of the others runs make theirs"""
    neighbors: int = Field(10, ge=1, le=1000)
    """of each word"""
    search: Search = "exact"
    """or pynndescent: approximate, for large vocabularies"""


class WordOrderParams(Documented):
    """One-dimensional orders of the vocabulary, for 1-Diffractor. A list set has the words that all
    word models of the set have in common.
    """

    models: Several[ListModel] = ["own"]
    """own (of each segmentation); in S1 also gst, mst (their single words) and NAME@HASH"""
    sets: Several[Literal["L0", "L1", "L2"]] = ["L0", "L1", "L2"]
    """one list per model; two per model; one list of the first model"""
    search: Search = "exact"
    """or pynndescent: approximate, for more than about 60,000 words"""


class SentenceParams(Documented):
    """The bank of sentences of the sampled corpus, which strategy S5 puts in the place of texts."""

    size: int = Field(100_000, ge=1_000, le=10**7)
    """sentences at most, chosen by hash and by sample.weights; the corpus may have fewer, and of
    fewer than 1,000 no bank is made"""
    max_words: int = Field(30, ge=3, le=100)
    """of a sentence; shorter ones suit more texts"""
    public: bool = False
    """whether no private text is in the corpus: a release refuses a bank that is not said to be
    public"""
    screen: ScreenParts = "vulgar,jargon,health,religion"
    """parts of the public list of words that stand in no sentence, with commas between them:
    vulgar, jargon, health, crime, religion, names; or none"""


class SourceParams(Documented):
    """Licence and origin of one source of the corpus."""

    license: str = Field(min_length=1)
    """its licence, and who states it"""
    origin: str = ""
    """where the text came from"""


class ModelParams(Documented):
    """The model of stage ``package_model``, which ``lexveil model export own`` exports."""

    name: Name = "own"
    """of the model: a-z, 0-9, _ and -"""
    version: str = Field("1", pattern=r"^[0-9]+(\.[0-9]+){0,2}$")
    """of the model: 1, 1.0 or 1.0.0"""
    language: str = Field("en", min_length=2)
    """of the corpus, by whose rules all texts are cut: de, en, es, fr, it, nl, pt; of another one
    no function words and abbreviations are known"""
    license: str = Field("none stated", min_length=1)
    """under which the model may be used; it follows from its sources"""
    description: str = ""
    """what it is, in a sentence"""
    built: str = "none stated"
    """date, as YYYY-MM-DD; no clock is asked, so that the bytes repeat"""
    sources: dict[str, SourceParams] = {}
    """of the corpus, by their names in data/corpus"""
    cleaning: list[str] = []
    """sentences on how the corpus was cleaned, for the card"""
    known_faults: list[str] = []
    """sentences for the card"""
    neighbours_of: list[str] = []
    """tokens whose nearest tokens the card shows"""
    scale: Literal["none", "unit", "frequency"] = "none"
    """lengths of its vectors, by a rule of embeddings.scale; those of the embedding stay beside
    them, for trainings that begin with it; none: those of the embedding, which embeddings.scale has
    given"""
    min_documents: int = Field(5, ge=1, le=2**31)
    """a token of fewer documents is left out, if the base does not have it"""
    max_tokens: int = Field(20_000, ge=2, le=2**31)
    """what is beyond it is left out: rare collocations, then rare words"""
    screens: list[Screen] = ["patterns"]
    """what else is left out: patterns, whatever looks like a number, an address or a user name;
    slurs; names, full names of persons that are not public"""
