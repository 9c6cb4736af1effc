"""Linkage: how often an adversary with candidate texts identifies the source text of an output.

A text as a whole may be identified although each of its single words can be denied. The reason is
that the structure that an output discloses (the number of tokens, and which tokens were kept, with
their words) hardly ever fits two texts. Three adversaries rank the candidates of each output:

* *structure* knows which tokens were perturbed, kept or dropped, and the kept tokens, and ignores
  replaced words. Candidates with the structure of the output rank first, all on a par.
* *naive* knows nothing of the method. It uses TF-IDF of words, and of words with their positions,
  and the cosine of output and candidate.
* *likelihood* knows everything but the source. It ranks candidates with the structure of the output
  by Σ ln Pr[M(w_i) = y_i].

The figure of an adversary is the share of outputs for which it ranks the source first; if k
candidates share the first rank, each counts 1/k. Candidates are texts of similar length: those
whose number of tokens is nearest to that of the source.

The shares depend on source texts, so they are computed only for evaluation data and public texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from lexveil.base.types import Floats, Ids, ModelRows, WordNumbers
from lexveil.core.accounting.budgets import Action, Codes, Policy
from lexveil.core.text.encode import Encoded, Lexicon, encode
from lexveil.readers.adversary import Adversary

SIZES = (100, 1_000, 10_000)  # number of candidates of an output, including the source
DIGEST = 16  # bytes of a hash: enough that collisions are negligible


@dataclass(frozen=True, slots=True, repr=False)
class DisclosedTexts:
    """The disclosed structure and the replaced words of source texts, token by token. This object
    contains source text.

    Attributes:
        starts: (n_texts + 1,) the first token of each text.
        keys: a hash of the structure of each text: which tokens are perturbed, kept or dropped, and
            the kept tokens.
        words: (n,) number of the word at each perturbed token, in the mechanism; -1 at other
            tokens.
    """

    starts: Ids
    keys: Sequence[bytes]
    words: WordNumbers

    @classmethod
    def of(cls, encoded: Encoded, action: Codes, words: WordNumbers) -> DisclosedTexts:
        """Return the disclosed structure and the replaced words of encoded texts.

        Args:
            encoded: n tokens.
            action: (n,) the ``Action`` of each token.
            words: (n,) number of the word at each token in the mechanism.
        """
        forms = np.array(
            [
                int.from_bytes(blake2b(form.encode(), digest_size=8).digest(), "little")
                for form in encoded.forms
            ],
            dtype=np.uint64,
        )
        is_kept = action == Action.KEPT.value
        hashes = np.zeros(len(action), dtype=np.uint64)
        hashes[is_kept] = forms[encoded.word[encoded.first_word[is_kept]]]
        starts = encoded.offsets()
        keys = [
            blake2b(
                action[start:stop].tobytes() + hashes[start:stop].tobytes(), digest_size=DIGEST
            ).digest()
            for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        ]
        perturbed = np.where(action == Action.PERTURBED.value, words, -1)
        return cls(starts, keys, WordNumbers(perturbed))

    @classmethod
    def cut(
        cls, texts: Sequence[str], lexicon: Lexicon, number: WordNumbers, policy: Policy
    ) -> DisclosedTexts:
        """Return the structure that outputs of the given texts would disclose.

        Args:
            number: (V,) for each row of the embedding, the number of the word in the mechanism; -1
                for rows outside it.
        """
        encoded = encode(texts, lexicon)
        known = WordNumbers(np.where(encoded.rows >= 0, number[encoded.rows], -1))
        return cls.of(encoded, policy.actions(encoded.kind, known >= 0), known)

    @property
    def lengths(self) -> Ids:
        """(n_texts,) number of tokens of each text."""
        return np.diff(self.starts)

    def perturbed(self, text: int) -> WordNumbers:
        """Return the word numbers of the perturbed tokens of a text, in order."""
        words = self.words[self.starts[text] : self.starts[text + 1]]
        return WordNumbers(words[words >= 0])


def n_unique(texts: DisclosedTexts) -> int:
    """Return the number of texts that can be identified by their disclosed structure, because no
    other text has the same. A text that discloses no structure has an empty key, and does not
    count.
    """
    keys, counts = np.unique(np.array(texts.keys, dtype=f"S{DIGEST}"), return_counts=True)
    return int(((counts == 1) & (keys != b"")).sum())


@dataclass(frozen=True, slots=True, repr=False)
class LinkageReaders:
    """The three linkage adversaries, with some outputs and a pool of candidate source texts. This
    object holds source text.

    Attributes:
        candidates: the P texts of the pool.
        sources: (m,) the source of each output, as a text of the pool.
        outputs: (n,) number of the output word at each perturbed token of the m outputs, one output
            after the other.
        epsilon: (n,) the ε of each of these tokens.
        before: (n,) the token written before each of these tokens, as a row of the embedding, or
            -1.
        similarities: the naive adversary's similarities of outputs and candidates; the similarity
            with the better result counts.
        adversary: the adversary that knows the mechanism's output distribution.
    """

    candidates: DisclosedTexts
    sources: Ids
    outputs: WordNumbers
    epsilon: Floats
    before: ModelRows
    similarities: Sequence[TfidfCosine]
    adversary: Adversary

    def shares(self, size: int) -> dict[str, float]:
        """Return the share of outputs whose source each adversary ranks first among ``size``
        candidates of similar length. The source is one of the candidates. If there are fewer than
        ``size`` texts, all of them are candidates.
        """
        structure = np.zeros(len(self.sources))
        likelihood = np.zeros(len(self.sources))
        naive = np.zeros((len(self.similarities), len(self.sources)))
        end = 0
        for number, source in enumerate(self.sources.tolist()):
            pool = like_length(self.candidates.lengths, source, size)
            place = int(np.searchsorted(pool, source))
            key = self.candidates.keys[source]
            fits = np.array([self.candidates.keys[text] == key for text in pool.tolist()])
            start = end
            end += len(self.candidates.perturbed(source))
            log_likelihood = np.full(len(pool), -np.inf)
            log_likelihood[fits] = self._log_likelihood(pool[fits], slice(start, end))
            structure[number] = first_chance(fits.astype(np.float64), place)
            likelihood[number] = first_chance(log_likelihood, place)
            for way, similarity in enumerate(self.similarities):
                naive[way, number] = first_chance(similarity.of(number)[pool], place)
        return {
            "structure": float(structure.mean()),
            "naive": float(naive.mean(axis=1).max()),
            "likelihood": float(likelihood.mean()),
        }

    def _log_likelihood(self, texts: Ids, tokens: slice) -> Floats:
        """Return the log-likelihood Σ ln Pr[M(w_i) = y_i] of an output under each candidate that
        has the output's structure.
        """
        if len(texts) == 1:
            return np.zeros(1)
        words = np.stack([self.candidates.perturbed(text) for text in texts.tolist()])
        n_texts, n_tokens = words.shape
        log_likelihood = self.adversary.log_likelihood(
            words.ravel(),
            np.tile(self.outputs[tokens], n_texts),
            np.tile(self.epsilon[tokens], n_texts),
            np.tile(self.before[tokens], n_texts),
        )
        sums: Floats = log_likelihood.reshape(n_texts, n_tokens).sum(axis=1)
        return sums


def like_length(lengths: Ids, source: int, size: int) -> Ids:
    """Return the ``size`` texts whose length is nearest to that of a given text, in ascending
    order; the given text is one of them.

    Of equally near texts, those with lower numbers are taken.

    Args:
        lengths: (P,) number of tokens of each text.
    """
    gap = np.abs(lengths - lengths[source])
    gap[source] = -1
    return np.sort(np.argsort(gap, kind="stable")[:size])


def first_chance(scores: Floats, source: int) -> float:
    """Return the probability that the source ranks first, if ties are broken at random: 0 if a
    candidate scores higher, else 1/k if k candidates share its score.
    """
    best = scores.max()
    return 1 / int((scores == best).sum()) if scores[source] == best else 0.0


class TfidfCosine:
    """Cosines of TF-IDF vectors of m outputs and P candidates.

    The weights depend only on the candidates, so they need no knowledge of the method.
    """

    def __init__(
        self,
        outputs: Sequence[str],
        candidates: Sequence[str],
        features: Callable[[str], list[str]],
    ) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(analyzer=features, dtype=np.float32)
        self.candidates = vectorizer.fit_transform(candidates).T.tocsr()
        self.outputs = vectorizer.transform(outputs)

    def of(self, output: int) -> Floats:
        """Return (P,) the cosine similarity of an output and each candidate."""
        cosines: Floats = (self.outputs[output] @ self.candidates).toarray()[0].astype(np.float64)
        return cosines


def naive_similarities(outputs: Sequence[str], candidates: Sequence[str]) -> list[TfidfCosine]:
    """Return the similarities of the naive adversary: TF-IDF cosines of words, and of words with
    their positions.
    """
    return [TfidfCosine(outputs, candidates, features) for features in (words_of, words_at_places)]


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, by a simple regular expression."""
    return re.findall(r"\w+", text.lower())


def words_at_places(text: str) -> list[str]:
    """Return the words of a text in lower case, each joined with its position."""
    return [f"{place} {word}" for place, word in enumerate(words_of(text))]
