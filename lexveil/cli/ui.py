"""`lexveil ui`: Prefect's pages."""

from __future__ import annotations

from lexveil.cli.options import Port
from lexveil.cli.output import in_project
from lexveil.runtime.graph_libraries import require


def ui(*, port: Port = 4200) -> int:
    """Prefect's pages on this machine, with the runs of this project.

    Starts Prefect's server on 127.0.0.1, reachable from this machine only, and prints its address. Runs made
    without it show there too. Ctrl-C ends it.

      lexveil ui --port 4201
    """
    in_project()
    require("prefect")
    from flows.prefect_server import pages

    try:
        with pages(port) as (_, server):
            print(f"http://127.0.0.1:{port}  (Ctrl-C ends it; runs of `lexveil run` show here)", flush=True)
            return server.process.wait()
    except KeyboardInterrupt:
        return 0  # that is how one ends it
