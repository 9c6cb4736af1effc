"""`lexveil schedule`: the schedules of prefect.yaml."""

from __future__ import annotations

from lexveil.cli.options import Port
from lexveil.cli.output import in_project


def schedule(*, port: Port = 4200) -> int:
    """Run build and audit on the schedules of prefect.yaml.

    Serves the deployments of prefect.yaml until Ctrl-C: their schedules fire, and Prefect's pages can start
    them, with other parameters too. With PREFECT_API_URL or beside `lexveil ui` it uses that server; else it
    starts one on 127.0.0.1, reachable from this machine only. docs/how-to/operation.md says how to keep it alive.

        lexveil schedule
        lexveil schedule --port 4201

    Args:
        port: of the server, if one is started
    """
    in_project()
    from flows import deployments
    from flows.prefect_server import lasting_api

    served = deployments.read_deployments()  # before anything is started
    with lasting_api(port) as (url, server):
        return deployments.serve(url, server, served)
