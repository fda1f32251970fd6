"""A new user: only the wheel, and the section "Run it" of the README, for two secure clusters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.certificates import Authority
from tests.cluster.secure_brokers import SecureListeners, create_users, grant
from tests.cluster.token_endpoint import TokenEndpoint
from tests.conftest import ROOT
from tests.delivery.services import free_port
from tests.http_server import serving
from tests.processes import start_logged
from tidemark.core.extras import WHEEL, install_command
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]

USER = "tidemark"
VERBS = ("collect", "stream", "export")
MAX_SECONDS = 15 * 60
MAX_PLAIN_BYTES = 60_000_000
PLACES = {0: [1, 2, 3], 1: [2, 3, 1]}
PLACEHOLDERS = ("kafka-monitoring.example.org:9093", "kafka-orders.example.org:9093")


class Walk:
    """The user's folder, environment and steps; prints the seconds of each step."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.began = folder, time.monotonic()
        section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Run it\n")[1]
        section = section.split("\n## ")[0]
        self.blocks = re.findall(r"^```(\w*)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        self.port = free_port()
        # Nothing of the checkout, nor of the environment that runs the test.
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TIDEMARK_", "PYTHON", "VIRTUAL_ENV"))
        }
        self.environment["PATH"] = os.pathsep.join(
            [str(folder / "tidemark-env" / "bin"), str(Path(sys.base_prefix) / "bin"), os.defpath]
        )
        self.environment["TIDEMARK_CONFIG"] = str(folder / "tidemark.yaml")
        # The port may be taken on the machine of the test.
        self.environment["TIDEMARK_EXPORT_LISTEN"] = f"127.0.0.1:{self.port}"

    def commands(self) -> list[str]:
        """The commands of the README, without comments."""
        blocks = [text for language, text in self.blocks if not language]
        return [line.split(" # ")[0].strip() for text in blocks for line in text.splitlines()]

    def configuration(self) -> str:
        return next(str(text) for language, text in self.blocks if language == "yaml")

    def run(self, command: str, code: int = 0) -> tuple[str, str]:
        """(standard output, standard error) of a command of the README's shell."""
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        print(f"[{time.monotonic() - self.began:5.0f} s] {command}: {ran.returncode}")
        assert ran.returncode == code, ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr
        return ran.stdout, ran.stderr

    def start(self, verb: str) -> subprocess.Popen[bytes]:
        return start_logged(
            [str(self.folder / "tidemark-env" / "bin" / "tidemark"), verb],
            self.folder / f"{verb}.log",
            cwd=self.folder,
            env=self.environment,
        )

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        def logs() -> dict[str, str]:
            return {path.name: path.read_text()[-1500:] for path in self.folder.glob("*.log")}

        left = MAX_SECONDS - (time.monotonic() - self.began)
        wait_until(condition, left, what, seen=logs)
        print(f"[{time.monotonic() - self.began:5.0f} s] {what}")


def test_two_secure_clusters_run_from_the_readme_in_15_minutes(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "secure")
    with serving(TokenEndpoint(authority, {})) as endpoint:
        listeners = [SecureListeners(authority, endpoint) for _ in PLACEHOLDERS]
        clusters = [
            LocalCluster(
                overrides=each.overrides, listeners=each.listeners, jvm_flags=each.jvm_flags
            )
            for each in listeners
        ]
        with clusters[0], clusters[1]:
            for cluster in clusters:
                create_users(cluster)
            # The other one has no topic yet: its rights are told all the same.
            clusters[1].create_topic("payments", PLACES)
            walk_through(Walk(tmp_path / "user"), authority, listeners, clusters)


def walk_through(
    walk: Walk, authority: Authority, listeners: list[SecureListeners], clusters: list[LocalCluster]
) -> None:
    walk.folder.mkdir()
    # Where the README's command expects it.
    build_wheel(walk.folder)
    make, activate, install, *rest = walk.commands()
    walk.run(make)
    walk.run(f"{activate} && pip install -q {WHEEL}")
    size = installed_bytes(walk.folder / "tidemark-env")
    print(f"the wheel and what it needs: {size / 1e6:.1f} MB")
    assert size < MAX_PLAIN_BYTES
    # Every error names its cure.
    assert "tidemark.yaml: No such file" in walk.run("tidemark check-config", code=2)[1]
    text = walk.configuration()
    for placeholder, each in zip(PLACEHOLDERS, listeners, strict=True):
        text = text.replace(f'"{placeholder}"', ", ".join(f'"{s}"' for s in each.servers(USER)))
    text = text.replace("/var/lib/tidemark", str(walk.folder))
    path = walk.folder / "tidemark.yaml"
    path.write_text(text, encoding="utf-8")
    shown = walk.run("tidemark check-config", code=2)[1]
    assert "sasl_plain_password_file: cannot read the file: No such file" in shown
    text = text.replace("/etc/tidemark/kafka-password", str(authority.folder / "secret"))
    path.write_text(text.replace("/etc/tidemark/kafka-ca.pem", str(authority.certificate)))
    for verb, extra in (("stream", "stream"), ("export", "export")):
        assert install_command(extra) in walk.run(f"tidemark {verb}", code=2)[1]
    assert install == install_command("stream,export")
    walk.run(f"{activate} && {install} -q")
    variable, acls, reach, top = rest
    assert variable == "export TIDEMARK_CONFIG=$PWD/tidemark.yaml"
    refused = walk.run(reach)[0]
    assert "to grant what is refused:" in refused and "kafka-acls.sh" in refused
    printed = walk.run(acls)[0]
    for cluster, each in zip(clusters, listeners, strict=True):
        address = ",".join(each.servers(USER))
        lines = [line for line in printed.splitlines() if f" {address} " in line]
        grant(cluster, USER, lines)
    reached = walk.run(reach)[0]
    assert "refused" not in reached
    orders, _, monitoring = reached.partition("cluster orders")[2].partition("cluster monitoring")
    assert "not known" not in orders
    assert "ok: Metadata, ListOffsets (Describe on topics)" in monitoring
    clusters[0].create_topic("payments", PLACES)
    assert "tidemark top  orders  3 brokers" in walk.run(f"{top} --passes 4")[0]
    processes = {verb: walk.start(verb) for verb in VERBS}
    try:
        walk.wait(lambda: "tidemark_partition_leader" in page(walk), "a view")
        for name in ("orders", "monitoring"):
            label = f'kafka_cluster="{name}"'
            walk.wait(lambda label=label: label in page(walk), f"the metrics of {name}")  # type: ignore[misc]
        assert all(process.poll() is None for process in processes.values())
    finally:
        for process in processes.values():
            process.terminate()
        ended = {verb: process.wait(60) for verb, process in processes.items()}
    assert ended == dict.fromkeys(VERBS, 0)
    seconds = time.monotonic() - walk.began
    print(f"the walk took {seconds:.0f} s")
    assert seconds < MAX_SECONDS


def page(walk: Walk) -> str:
    try:
        return requests.get(f"http://127.0.0.1:{walk.port}/metrics", timeout=10).text
    except requests.RequestException:
        return ""


def build_wheel(folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    assert (folder / WHEEL).is_file()


def installed_bytes(environment: Path) -> int:
    """Without pip and setuptools, which come with every environment."""
    (site,) = environment.glob("lib/python3*/site-packages")
    return sum(
        path.stat().st_size
        for path in site.rglob("*")
        if path.is_file() and path.relative_to(site).parts[0].split("-")[0] not in TOOLS
    )


TOOLS = frozenset({"pip", "setuptools", "_distutils_hack", "distutils"})
