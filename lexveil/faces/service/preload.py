"""Module imported by the helper process from which the first service workers are forked, so that
workers need not import everything again.

The client library of metrics is not preloaded, because its import needs a folder that does not
exist yet. This module draws no random numbers.
"""

import gc

from lexveil.base.absent import take_process

take_process()
gc.disable()  # imported modules stay
try:
    import fastapi  # noqa: F401

    from lexveil.faces.service import rewriting  # noqa: F401
    from lexveil.release.engine import preload  # noqa: F401
finally:
    gc.freeze()  # a garbage collection in a worker would copy shared pages
    gc.enable()
