"""prefect.yaml: a wrong one is one line that names the entry. The committed one is served by
test_schedule.py."""

import pytest
import yaml
from filelock import FileLock
from scratch_project import ROOT

from flows.deployments import LOCK, read_deployments, serve
from lexveil.base.errors import RequestError


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"entrypoint": "flows.build.run"}, r"deployments\[1\]\.entrypoint"),
        ({"schedules": [{"cron": "at night"}]}, r"deployments\[1\]: .*cron"),
        (
            {"schedules": [{"cron": "0 4 * * 0", "interval": 60}]},
            r"deployments\[1\]: a schedule needs exactly",
        ),
        ({"schedules": [{"interval": 0}]}, r"deployments\[1\]\.schedules\.0\.interval"),
        ({"parameters": {"mechanisms": ["madlab"]}}, r"deployments\[1\]: .*mechanisms"),
        (None, "deployments"),
    ],
)
def test_a_wrong_entry_is_named_and_so_is_a_file_without_any(project, change, says):
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    deployments[1] |= change or {}
    (project.root / "prefect.yaml").write_text(
        yaml.safe_dump({"deployments": deployments if change else []})
    )
    with pytest.raises(RequestError, match=says) as error:
        read_deployments()
    assert "\n" not in str(error.value)


def test_a_second_schedule_is_refused(project):
    (project.root / ".lexveil").mkdir()
    with FileLock(LOCK), pytest.raises(RequestError, match="another `lexveil schedule`"):
        serve("http://127.0.0.1:9/api", None, [])
