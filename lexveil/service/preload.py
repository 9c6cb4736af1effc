"""What a worker has loaded once it has begun: imported by the process from which the first workers
are forked.

Not the client library of metrics: it asks when it is imported for a folder that is not there yet.
Nothing is drawn.
"""

import gc

gc.disable()  # what is imported stays
try:
    import fastapi  # noqa: F401

    from lexveil.privatization.engine import preload  # noqa: F401
    from lexveil.service import rewriting  # noqa: F401
finally:
    gc.freeze()  # workers need not look through it, which would copy its pages
    gc.enable()
