"""Engine of privatization, on arrays: plan, rewrite, token log.

An ``engine.Engine`` prepares the mechanism and the lexicon from settings and a model, and states
the proven guarantee: ``engine.WordEngine`` of words, ``sentences.SentenceEngine`` of sentences. Its
``worker`` is a ``worker.BatchWorker``; ``worker.count_batches`` and ``worker.rewrite_batches`` run
it over one ``batch.Batch`` after another, in any processes. ``counts`` adds up results; ``plan``
decides the action for each token.
"""
