"""Plan, rewrite, token log, on arrays.

``engine.Engine`` makes of settings and a model what texts are rewritten with, and says what is
proven of it; its ``worker`` is a ``worker.BatchWorker``, which ``worker.count_batches`` and
``worker.rewrite_batches`` run over a ``batch.Batch`` after another, in any processes. ``counts``
adds up what came of them; ``plan`` decides what is to happen to each token.
"""
