"""English: closed word classes, which are stop words, connectors and abbreviations.

A strategy may leave stop words unperturbed. So they are function words only: articles, pronouns,
auxiliaries, prepositions, conjunctions, and their contracted forms. Longer lists in common
libraries contain content words ("bill", "fire", "computer"), which would remain in the output. The
packaged model was tokenized with these abbreviations.
"""

from __future__ import annotations

from lexveil.core.text.languages.base import Language

# The set that gensim ships as ENGLISH_CONNECTOR_WORDS (a test compares the two), so that stages
# need not import gensim. No collocation contains a connector (CLMLDP section 4.1).
CONNECTORS = frozenset("a an the for of with without at from to in on by and or".split())

_PLAIN = """
a an the this that these those
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself
she her hers herself it its itself they them their theirs themselves who whom whose which what
am is are was were be been being have has had having do does did doing
will would shall should can could may might must ought
and but or nor if because as until while although though since unless than so
of at by for with about against between into through during before after above below to from up down
in out on off over under without within upon toward towards among per via
again further then once here there when where why how
all any both each few more most other some such no not only own same too very just also
"""
_CONTRACTED = """
i'm i've i'll i'd you're you've you'll you'd he's he'll he'd she's she'll she'd it's it'll it'd
we're we've we'll we'd they're they've they'll they'd that's that'll who's what's there's here's
let's where's how's don't doesn't didn't isn't aren't wasn't weren't haven't hasn't hadn't won't
wouldn't shan't shouldn't can't cannot couldn't mustn't mightn't needn't
"""
STOP_WORDS = frozenset(_PLAIN.split()) | frozenset(_CONTRACTED.split())
_ABBREVIATIONS = """
mr mrs ms dr prof rev hon gen col sgt capt lt sen rep gov pres st mt ft jr sr inc co corp ltd bros
vs etc no vol fig dept est approx jan feb mar apr jun jul aug sep sept oct nov dec
"""

ENGLISH = Language(
    code="en",
    name="English",
    function_words=STOP_WORDS,
    connectors=CONNECTORS,
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    alone="I",
)
