"""What stands between a worker and its work in tests; a module of its own, because each worker imports it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Meeting:
    """Does ``inner``'s work once ``n`` processes have come: so no process can do all of it."""

    inner: Any
    folder: Path
    n: int

    def __call__(self, item: Any) -> Any:
        (self.folder / str(os.getpid())).touch()
        deadline = time.monotonic() + 120
        while len(list(self.folder.iterdir())) < self.n:
            if time.monotonic() > deadline:
                raise TimeoutError("the other workers did not come")
            time.sleep(0.01)
        return self.inner(item)
