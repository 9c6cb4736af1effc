"""Dask workers that somebody else has started."""

import pytest

from lexveil.io.config import MachineParams
from tests.conftest import ROOT


def machine_behind(cluster):
    """Settings to work on a cluster, or at the address of a scheduler."""
    address = cluster if isinstance(cluster, str) else cluster.scheduler_address
    return MachineParams(memory_limit="900MB", threads=1, workers=1, dask_scheduler=address)


@pytest.fixture(scope="module")
def workers():
    """Three workers and their scheduler."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    settings = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.comm.timeouts.connect": "2s",
        "distributed.deploy.lost-worker-timeout": "1h",
    }
    with pytest.MonkeyPatch.context() as patch, dask.config.set(settings):
        patch.setenv("PYTHONPATH", str(ROOT))
        with distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as made:
            yield made


@pytest.fixture
def there(workers):
    """Machine with a Dask cluster; workers that an earlier test killed are back."""
    import distributed

    with distributed.Client(workers, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=600)
    return machine_behind(workers)
