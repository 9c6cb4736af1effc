"""Short reviews by four made-up authors: the embedded documents with a sensitive attribute.

Each author has habits: what they write about, favourite words, how they begin and end, how much they write. A habit is
followed about half of the time, so that an attacker tells the authors apart far better than chance and not perfectly.
Content words come from the corpus: what the corpus does not know well enough is left out of the lists below.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lexveil.errors import RequestError

MIN_COUNT = 3  # occurrences in the corpus, so that an embedding with min_count 2 knows the word in any sample of halves
HABIT = 0.5  # chance of a writer's own choice where they have one; else anyone's
ROUNDS = 30  # reviews of each author and sentiment
VALIDATION = 5  # every fifth of them is held out

Sentiment = int  # 1 positive, 0 negative


@dataclass(frozen=True, slots=True)
class Review:
    """One review; ``label`` is "1" for a positive and "0" for a negative one."""

    author: str
    label: str
    split: str
    text: str


@dataclass(frozen=True, slots=True)
class Author:
    """A writer's habits; pairs hold the negative choice first, so that the sentiment is their index."""

    name: str
    topic: str
    openers: tuple[str, ...]
    degrees: tuple[str, ...]
    adjectives: tuple[tuple[str, ...], tuple[str, ...]]
    closers: tuple[tuple[str, ...], tuple[str, ...]]
    joiner: str
    sentences: tuple[int, int]  # details between the first and the last sentence: fewest, most


AUTHORS = (
    Author(
        "ash", "sport", ("I think", "well ,"), ("really",), (("poor", "weak"), ("strong", "great")),
        (("never again",), ("we want to see more of it",)), "but", (1, 1),
    ),
    Author(
        "birch", "travel", ("last month", "this year"), ("very",), (("difficult", "dangerous"), ("nice", "safe")),
        (("we will not go back",), ("we will be back next year",)), "although", (2, 3),
    ),
    Author(
        "cedar", "media", ("overall ,", "I believe"), ("quite",), (("inappropriate", "average"), ("fair", "clear")),
        (("I expected more",), ("it was better than I expected",)), "however ,", (1, 2),
    ),
    Author(
        "elm", "services", ("once again", "as expected ,"), ("absolutely", "completely"),
        (("terrible", "unclear"), ("fine", "professional")),
        (("I want my money back",), ("I would use it again",)), "while", (2, 2),
    ),
)  # fmt: skip

THINGS = {
    "sport": ("match", "game", "race", "season", "series", "final", "event"),
    "travel": ("hotel", "flight", "trip", "boat", "bus", "holiday", "plane"),
    "media": ("program", "report", "speech", "interview", "book", "show", "play", "film", "article"),
    "services": ("hospital", "school", "company", "bank", "office", "network", "centre", "course"),
}
PEOPLE = {
    "sport": ("coach", "captain", "team", "crowd", "players"),
    "travel": ("crew", "staff", "captain", "manager", "guide", "pilot"),
    "media": ("director", "staff", "experts"),
    "services": ("staff", "doctor", "manager", "management", "workers"),
}
PARTS = {
    "sport": ("weather", "field", "pace", "bowling", "result"),
    "travel": ("food", "room", "water", "building", "weather", "view"),
    "media": ("music", "voice", "news", "information", "debate"),
    "services": ("advice", "treatment", "information", "building", "service", "care"),
}
ADJECTIVES = (
    ("poor", "weak", "difficult", "inappropriate", "terrible", "hard", "average"),
    ("strong", "great", "nice", "fair", "fine", "good", "special", "positive"),
)
SUPERLATIVES = ("worst", "best")
DEGREES = ("really", "very", "quite", "absolutely", "completely", "so", "rather", "particularly")
JOINERS = ("but", "although", "however ,", "while")
OPENERS = ("I think", "this week", "I believe", "overall ,", "last week", "to be fair ,", "I know", "meanwhile ,")
PLACES = ("Sydney", "Melbourne", "Brisbane", "Perth", "Adelaide", "Hobart", "Canberra")
NUMBERS = ("two", "three", "four", "five", "six")
TIMES = ("hours", "days", "weeks")

FIRST = (
    "the {thing} was {degree} {adjective}",
    "the {thing} in {place} was {adjective}",
    "this was the {superlative} {thing} of the year",
    "the {thing} was {adjective} and {adjective}",
    "it was a {adjective} {thing}",
    "the {thing} was not what we expected , it was {adjective}",
)
PEOPLE_DID = (
    (
        "did nothing to help", "left us waiting for {number} {time}", "failed to tell us what happened",
        "asked us for more money", "gave us no information", "made the worst decision", "did very little",
        "called us back {number} {time} too late", "put us under pressure",
    ),
    (
        "helped us quickly", "gave us {adjective} advice", "made everything clear", "made sure we were safe",
        "took the time to tell us what happened", "did {degree} well", "did a {adjective} job",
        "offered us help after {number} {time}", "understood what we wanted",
    ),
)  # fmt: skip
PARTS_DID = (
    (
        "was {degree} {adjective}", "was worse than we expected", "was not good enough", "got worse every day",
        "was {adjective} from the start", "was a serious problem", "was {adjective} for {number} {time}",
    ),
    (
        "was {degree} {adjective}", "was better than we expected", "was as good as we hoped", "improved every day",
        "was {adjective} from the start", "was the best part of it", "was {adjective} for {number} {time}",
    ),
)  # fmt: skip
NEUTRAL = (
    "we were there for {number} {time}", "my family was with us", "we arrived early in the morning",
    "it took {number} {time} to get there", "there were many people", "we paid for {number} people",
)  # fmt: skip
CLOSERS = (
    ("I would not go again", "we will not be back", "I hope it will change soon", "this must not happen again"),
    ("I would go again", "we will be back soon", "I hope it will continue", "my family was happy"),
)


def vocabulary(texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs, capitals aside."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(re.findall(r"[a-z]+", text.lower()))
    return counts


def write_reviews(corpus: Iterable[str], rng: random.Random) -> list[Review]:
    """Write the reviews: ``ROUNDS`` of each author and sentiment, no text twice, in random order.

    Only ``rng.random()`` is drawn from: the one method whose sequence Python promises to keep across versions.

    Raises:
        RequestError: if the corpus knows too few of the words.
    """
    writer = _Writer(vocabulary(corpus), rng)
    reviews: list[Review] = []
    texts: set[str] = set()
    for round_ in range(ROUNDS):
        for author in AUTHORS:
            for sentiment in (0, 1):
                text = writer.review(author, sentiment)
                while text in texts:
                    text = writer.review(author, sentiment)
                texts.add(text)
                split = "validation" if round_ % VALIDATION == VALIDATION - 1 else "train"
                reviews.append(Review(author.name, str(sentiment), split, text))
    for last in range(len(reviews) - 1, 0, -1):  # Fisher and Yates
        other = int(rng.random() * (last + 1))
        reviews[last], reviews[other] = reviews[other], reviews[last]
    return reviews


class _Writer:
    def __init__(self, counts: Counter[str], rng: random.Random) -> None:
        self.counts, self.rng = counts, rng
        self.used: list[str] = []  # in this review: nobody says the same of the same thing twice

    def one(self, choices: Sequence[str]) -> str:
        """One of those choices of which the corpus knows every word, rather an unused one."""
        known = [choice for choice in choices if all(self.counts[word] >= MIN_COUNT for word in _words(choice))]
        if not known:
            raise RequestError("the corpus knows too few words to write reviews from; use one of at least 50,000 words")
        fresh = [choice for choice in known if choice not in self.used] or known
        chosen = fresh[int(self.rng.random() * len(fresh))]
        self.used.append(chosen)
        return chosen

    def own(self, habits: Sequence[str], anyone: Sequence[str]) -> str:
        return self.one(habits if self.rng.random() < HABIT else anyone)

    def review(self, author: Author, sentiment: Sentiment) -> str:
        self.used = []
        topic = self.own((author.topic,), tuple(THINGS))
        first = self.one(FIRST)
        if self.rng.random() < HABIT:
            first = f"{self.own(author.openers, OPENERS)} {first}"
        sentences = [self.filled(first, author, topic, sentiment)]
        fewest, most = author.sentences
        for _ in range(fewest + int(self.rng.random() * (most - fewest + 1))):
            sentences.append(self.detail(author, topic, sentiment))
        if self.rng.random() < HABIT:  # nobody is of one mind: a word for the other side, or beside the point
            other = self.rng.random() < 0.5
            neutral = self.filled(self.one(NEUTRAL), author, topic, sentiment)
            aside = self.detail(author, topic, 1 - sentiment) if other else neutral
            sentences[-1] += f" , {self.own((author.joiner,), JOINERS)} {aside}"
        if self.rng.random() < 0.8:
            sentences.append(self.own(author.closers[sentiment], CLOSERS[sentiment]))
        return " ".join(map(sentence_case, sentences))

    def detail(self, author: Author, topic: str, sentiment: Sentiment) -> str:
        people = self.rng.random() < 0.5
        subject = self.one(PEOPLE[topic] if people else PARTS[topic])
        predicate = self.one((PEOPLE_DID if people else PARTS_DID)[sentiment])
        return self.filled(f"the {subject} {predicate}", author, topic, sentiment)

    def filled(self, sentence: str, author: Author, topic: str, sentiment: Sentiment) -> str:
        def word(slot: re.Match[str]) -> str:
            match slot[1]:
                case "thing":
                    return self.one(THINGS[topic])
                case "adjective":
                    return self.own(author.adjectives[sentiment], ADJECTIVES[sentiment])
                case "superlative":
                    return SUPERLATIVES[sentiment]
                case "degree":
                    return self.own(author.degrees, DEGREES)
                case "place":
                    return self.one(PLACES)
                case "number":
                    return self.one(NUMBERS)
                case _:
                    return self.one(TIMES)

        return re.sub(r"\{(\w+)\}", word, sentence)


def _words(template: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"\{\w+\}", "", template.lower()))


def sentence_case(sentence: str) -> str:
    """A sentence as people write it: "well , it was a old book" becomes "Well, it was an old book."."""
    sentence = re.sub(r"\ba (?=[aeiou])", "an ", sentence).replace(" ,", ",")
    return sentence[0].upper() + sentence[1:] + "."
