"""Container, compose and systemd files are sound, and what they run is there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lexveil.faces.service.terms import Terms

DEPLOY = Path(__file__).parents[2] / "examples" / "deploy"
BIN = Path(sys.executable).parent


def checked(*command):
    done = subprocess.run(
        [str(each) for each in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_container_file_lints_clean():
    if not (BIN / "hadolint").exists():
        pytest.skip("no build of hadolint for this platform")
    assert checked(BIN / "hadolint", DEPLOY / "Containerfile") == ""


def test_the_compose_file_follows_the_specification():
    checked(
        BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml"
    )


def test_ports_are_of_this_machine_alone_and_no_password_is_in_the_files():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))[
        "services"
    ].values()
    published = [port for service in services for port in service.get("ports", [])]
    assert published and all(port.startswith("127.0.0.1:") for port in published)
    assert "PREFECT_DATABASE_PASSWORD=\n" in (DEPLOY / ".env.example").read_text(encoding="utf-8")
    given = [
        item
        for service in services
        for item in service.get("environment", {}).items()
        if "PASSWORD" in item[0]
    ]
    assert given and all(value.startswith("${PREFECT_DATABASE_PASSWORD:?") for _, value in given)


def test_units_are_sound(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze here")
    for unit in DEPLOY.glob("*.service"):
        # It looks for the program, which is not installed where the unit says.
        text = unit.read_text(encoding="utf-8").replace("/opt/lexveil/bin/lexveil", sys.executable)
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
        assert checked(analyze, "verify", "--man=no", tmp_path / unit.name) == ""


def test_the_proxy_counts_by_address_before_it_counts_by_key():
    """Without a count of its address, a client that guesses keys has a fresh one for each."""
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    keys = dict(re.findall(r"^limit_req_zone (\S+) +zone=(\w+):", text, re.MULTILINE))
    zones = {zone: key for key, zone in keys.items()}
    used = [zones[zone] for zone in re.findall(r"^ +limit_req zone=(\w+)", text, re.MULTILINE)]
    assert used == ["$binary_remote_addr", "$http_authorization"]


def test_the_proxy_passes_all_that_the_service_answers(tmp_path):
    """The limit of a body is the service's own; nginx, where it is installed, reads the file."""
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    assert "client_max_body_size 1m;" in text and Terms().max_bytes == 2**20
    nginx = shutil.which("nginx")
    if nginx is None:
        pytest.skip("no nginx here")
    text = re.sub(r"ssl_certificate.*;|(?<=443) ssl", "", text)
    (tmp_path / "nginx.conf").write_text(f"events {{}}\nhttp {{\n{text}\n}}\n", encoding="utf-8")
    checked(nginx, "-t", "-p", tmp_path, "-c", "nginx.conf")
