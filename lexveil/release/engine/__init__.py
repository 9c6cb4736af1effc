"""Engine that rewrites texts, working on arrays: it plans the action for each token, draws the
noise, and logs the tokens.

An ``engine.Engine`` prepares the mechanism and the lexicon from settings and a model, and states
the proven guarantee. ``engine.WordEngine`` replaces words, and ``sentences.SentenceEngine`` writes
sentences. The ``worker`` of an engine is a ``worker.BatchWorker``. ``worker.count_batches`` and
``worker.rewrite_batches`` run it over one ``batch.Batch`` after another, in any processes.
``counts`` adds up results, and ``plan`` determines the action for each token.
"""
