"""Parameters of the corpus, of its collocations, of the embeddings that are trained on it, and of
the model that a project exports.
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
# A model of the library may be named without its hash, because every stage that reads it depends on
# its card.
BASE = rf"{MODEL_NAME}(@[0-9a-f]{{12}})?"
NO_BASE = "none"

Weight = Annotated[float, Field(ge=0, le=1e9)]
Measure = Annotated[str, OneOf(lambda: [measure.name for measure in MEASURES])]
Search = Literal["exact", "pynndescent"]
Name = Annotated[str, Field(pattern=rf"^{MODEL_NAME}$")]
Screen = Literal["patterns", "slurs", "names"]


HASHED = "(the hash identifies the content, so that DVC notices a change)"
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
        "it must be none, the name of a model of the library, or NAME@HASH as `lexveil "
        "model list` shows it " + HASHED,
    ),
]


class SampleParams(Documented):
    """Parameters of the sample of documents that is taken from the corpus."""

    max_documents: int = Field(1_000_000, ge=1, le=2**62)
    """number of documents, chosen by a hash of text and seed; exact duplicates are removed first"""
    weights: dict[str, Weight] = {}
    """weights of the sources in data/corpus, 1 for a source that is not named; a document of a
    source with weight 5 is five times as likely to be chosen"""


class CountParams(Documented):
    """Parameters of the n-gram counts."""

    min_count: int = Field(2, ge=1, le=2**31)
    """n-grams rarer than this are not stored; they still count in the totals"""


def _threshold(measure: AssociationMeasure) -> tuple[Any, Any]:
    """Return the type and the field of an association measure's threshold. Only the threshold of
    PMI cannot be null, because segmentation uses it.
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
    """Thresholds of collocations. An n-gram must reach all thresholds; a threshold of null is
    ignored.
    """

    min_count: int = Field(2, ge=1, le=2**31)
    """smallest count of a collocation; at least count.min_count"""
    measures: Several[Measure] = ["pmi"]
    """measures that are stored next to the counts; pmi must be one of them"""

    @model_validator(mode="after")
    def _cut_by_pmi(self) -> Self:
        if "pmi" not in self.measures:
            raise ValueError(
                "collocations.measures must name pmi, because segmentation uses it; other "
                "measures may be added"
            )
        return self


class EmbeddingParams(Documented):
    """Training of embeddings by gensim's Word2Vec."""

    base: BaseModelName = "en"
    """packaged model from which training starts, and whose words and collocations are added: a
    model of the library (en), NAME@HASH as `lexveil model list` shows it, or none"""
    base_tokens: int | None = Field(10_000, ge=1, le=2**31)
    """number of tokens of the base model to use, the most frequent ones; null: all"""
    base_vectors: Literal["keep", "adapt"] = "keep"
    """treatment of the base model's vectors. "keep": all of them stay unchanged; "adapt": training
    on the corpus changes the vectors of the tokens of the corpus"""
    dimensions: int | None = Field(None, ge=2, le=4096)
    """dimensions of a vector; null: as in the base model, or 100 without a base model; the paper
    has 300"""
    window: int = Field(5, ge=1, le=100)
    """number of words on each side that count as context"""
    min_count: int | None = Field(None, ge=1, le=2**31)
    """smallest count of a token with a vector; null: 2, or 5 for a corpus of a million tokens or
    more"""
    epochs: int | None = Field(None, ge=1, le=1000)
    """number of passes over the corpus; null: enough to read 32 million tokens, from 5 to 40"""
    negative: int = Field(5, ge=1, le=100)
    """number of negative samples"""
    skip_gram: bool = True
    """whether to train skip-gram; otherwise CBOW is trained"""
    subsample: float = Field(1e-3, ge=0, le=1)
    """tokens with a larger share of the corpus are left out at random, the more frequent the
    more often; 0: no token is left out"""
    plain_copy: bool = False
    """for gst and mst: a sentence with collocations is read a second time as plain words, so
    that single words are trained by all of their occurrences"""
    workers: int = Field(1, ge=1, le=1024)
    """number of threads; more than one is faster, but the vectors then differ from run to run"""
    word_model: WordModel = "own"
    """embedding for S1: own is trained in this project; or NAME@HASH of a model, as `lexveil
    model list` shows it"""
    scale: Literal["none", "unit", "frequency"] = "frequency"
    """rule for the lengths of vectors: as trained (as in the papers), all 1, or shorter for
    rarer words, which makes rare words harder to tell apart; the rule changes the unit of every
    epsilon"""
    scale_list: ListFile | None = None
    """public CSV file with the columns word and factor, as FILE@HASH: the vector of each word is
    multiplied by its factor; words with factor 0 are always interchangeable; null: no file"""
    purposes: dict[str, Annotated[float, Field(ge=0.01, le=10)]] = {}
    """public scales of words that the metric preserves, with their weights: sentiment, which is
    part of the library, or FILE.tsv@HASH of `lexveil purpose build`; texts are less protected on
    these scales"""


class NeighborhoodParams(Documented):
    """Parameters of the table of nearest words, and of the near-word lists from which mechanisms
    draw.
    """

    lists: int | None = Field(None, ge=0)
    """number of words with a stored list, the most frequent ones; null: all words; runs compute
    the other lists when they need them"""
    neighbors: int = Field(10, ge=1, le=1000)
    """number of nearest words per word"""
    search: Search = "exact"
    """search method: exact, or pynndescent, which is approximate and suits large vocabularies"""


class WordOrderParams(Documented):
    """Parameters of the one-dimensional orders of the vocabulary for the mechanism 1-Diffractor. A
    set of word lists has the words that all word models of the set have in common.
    """

    models: Several[ListModel] = ["own"]
    """word models of the list sets: own (the embedding of each segmentation); S1 also allows
    gst, mst (their single words) and NAME@HASH"""
    sets: Several[Literal["L0", "L1", "L2"]] = ["L0", "L1", "L2"]
    """list sets to make: L0 has one list per model, L1 has two per model, L2 has one list of the
    first model"""
    search: Search = "exact"
    """search method: exact, or pynndescent, which is approximate and suits more than about
    60,000 words"""


class SentenceParams(Documented):
    """Parameters of the sentence bank that is built from the sampled corpus. Strategy S5 replaces
    texts by sentences of the bank.
    """

    size: int = Field(100_000, ge=1_000, le=10**7)
    """largest number of sentences, which are chosen by hash and by sample.weights; the corpus
    may have fewer, and a bank needs at least 1,000"""
    max_words: int = Field(30, ge=3, le=100)
    """smallest number of words of a sentence; shorter sentences suit more texts"""
    public: bool = False
    """whether the corpus has no private text; a release refuses a bank that is not declared
    public"""
    screen: ScreenParts = "vulgar,jargon,health,religion"
    """parts of the public word list whose words occur in no sentence of the bank, separated by
    commas: vulgar, jargon, health, crime, religion, names; or none"""


class SourceParams(Documented):
    """Parameters for one source of the corpus: its licence and origin."""

    license: str = Field(min_length=1)
    """licence of the source, and who states the licence"""
    origin: str = ""
    """origin of the text"""


class ModelParams(Documented):
    """Parameters of the model that the stage ``package_model`` builds and ``lexveil model export
    own`` exports.
    """

    name: Name = "own"
    """name of the model, in the characters a-z, 0-9, _ and -"""
    version: str = Field("1", pattern=r"^[0-9]+(\.[0-9]+){0,2}$")
    """version of the model, such as 1, 1.0 or 1.0.0"""
    language: str = Field("en", min_length=2)
    """language of the corpus, whose tokenizer rules apply to all texts: de, en, es, fr, it, nl,
    pt; for another language, no function words and abbreviations are known"""
    license: str = Field("none stated", min_length=1)
    """licence of the model, which follows from the licences of its sources"""
    description: str = ""
    """description of the model in one sentence"""
    built: str = "none stated"
    """date of the model, as YYYY-MM-DD; the clock is not read, so that the bytes repeat"""
    sources: dict[str, SourceParams] = {}
    """sources of the corpus, by their names in data/corpus"""
    cleaning: list[str] = []
    """sentences for the card about how the corpus was cleaned"""
    known_faults: list[str] = []
    """sentences for the card about the limits of the model"""
    neighbours_of: list[str] = []
    """tokens for the card, which lists the nearest tokens of each"""
    scale: Literal["none", "unit", "frequency"] = "none"
    """lengths of the model's vectors, by a rule of embeddings.scale; the lengths of the
    embedding are also stored, for trainings that start from the model; none: the lengths that
    embeddings.scale has given"""
    min_documents: int = Field(5, ge=1, le=2**31)
    """smallest number of documents of a token; a rarer token is left out unless the base model
    has it"""
    max_tokens: int = Field(20_000, ge=2, le=2**31)
    """largest size of the model; rare collocations are left out first, then rare words"""
    screens: list[Screen] = ["patterns"]
    """other tokens to leave out: patterns (tokens that look like a number, an address or a user
    name), slurs, and names (full names of persons who are not public)"""
