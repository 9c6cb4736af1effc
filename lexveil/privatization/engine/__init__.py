"""Engine of privatization, on arrays: plan, rewrite, token log.

``engine.Engine`` prepares the mechanism and the lexicon from settings and a model, and states the
proven guarantee. Its ``worker`` is a ``worker.BatchWorker``; ``worker.count_batches`` and
``worker.rewrite_batches`` run it over one ``batch.Batch`` after another, in any processes.
``counts`` adds up the results; ``plan`` decides the action for each token.
"""
