"""No secret of the configuration is in what any verb prints, logs, serves or shows to `ps`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
import requests

from tests.processes import descendants
from tests.verbs.run import outcome
from tests.verbs.secrets.places import PLACES, SECRETS, USER, VARIABLE, Stage, leaks
from tidemark_lab.brokers.wait import wait_until

SECONDS: Final = 60.0
# The exporter posts without Kafka that no view arrives: here at once.
QUICKLY: Final = """
from tidemark_exporters.notify import derived_alerts
from tidemark.cli import main
derived_alerts.FIRST_VIEW_SECONDS = 0.0
main()
"""
# These are not sent to the servers of the test, or not in a form that can be read back.
NOT_SENT: Final = {"password in a password file", "key password", "signing secret", "web password"}
PAGES: Final = {
    "collect": ("metrics", "-/ready", "-/healthy", "nothing"),
    "export": (
        *("metrics", "-/ready", "-/healthy", "", "topics", "partitions", "alerts", "docs/guide"),
        *(f"api/v1/{name}" for name in ("clusters", "topics", "partitions", "brokers", "alerts")),
        *("api/v1/nothing", "nothing", "partitions?limit=x"),
    ),
}
VERBS: Final = (
    "check-config",
    "check-config --json",
    "check-config --acls",
    "check-config --reach --json",
    *(f"check-config --test-receiver {name}" for name in ("by-file", "by-url", "managers")),
    "collect --cluster plain --to - --passes 1",
    "collect --cluster refused --to - --passes 1",
    "top --cluster plain --passes 1 --plain",
    "inspect --cluster tls orders --json",
    "inspect --losses --json",
    *(f"safe-to-stop --cluster {name} 1 --json" for name in ("plain", "scram", "oauth", "tls")),
    "safe-to-stop --cluster refused 1",
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(stack, tmp_path_factory.mktemp("secrets"))


@contextmanager
def running(stage: Stage, verb: str) -> Iterator[subprocess.Popen[bytes]]:
    """The verb, its log in the file of its name."""
    with (stage.folder / f"{verb}.log").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", QUICKLY, verb, "--config", str(stage.config)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **stage.variables},
        )
    try:
        yield process
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def shown_of(process: subprocess.Popen[bytes]) -> Iterator[tuple[str, bytes]]:
    """What `ps` shows, and the environments but for the variable that holds the secret itself."""
    for pid in [process.pid, *descendants(process.pid)]:
        yield f"cmdline of {pid}", Path(f"/proc/{pid}/cmdline").read_bytes()
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        others = [each for each in environ if not each.startswith(f"{VARIABLE}=".encode())]
        yield f"environ of {pid}", b"\0".join(others)


def served_by(stage: Stage, verb: str) -> Iterator[tuple[str, bytes]]:
    base, user = f"http://127.0.0.1:{stage.ports[verb]}", (USER, SECRETS["web password"])
    for name in PAGES[verb]:
        for auth in (user, None):
            got = requests.get(f"{base}/{name}", auth=auth, timeout=30)
            yield f"{verb}: /{name}", f"{got.headers}\n{got.text}".encode()
    assert requests.get(f"{base}/metrics", auth=user, timeout=30).status_code == 200
    assert requests.get(f"{base}/metrics", timeout=30).status_code == 401


# What is searched is a log of logins and of failed posts.
LOGGED: Final = (b"SaslAuthenticateRequest (hidden)", b"HTTP 404")


def wait_for(stage: Stage, verb: str, places: set[str]) -> None:
    """Until the servers were sent everything, and the verb has logged it."""
    log = stage.folder / f"{verb}.log"

    def missing() -> list[object]:
        return [
            *(places - set(leaks(stage.learned()))),
            *(text for text in LOGGED if text not in log.read_bytes()),
        ]

    wait_until(lambda: not missing(), SECONDS, f"{verb} has said all", seen=missing)


@pytest.mark.parametrize(
    ("verb", "places"),
    [
        (
            "collect",
            {
                *("password in a variable", "password in the file", "refused password"),
                *("OAuth secret", "OAuth token", "watchdog's address", "watchdog's authorization"),
                *("JMX authorization", "JMX query"),
            },
        ),
        (
            "export",
            {
                *("password in a variable", "address in a file", "address with a query"),
                "receiver's authorization",
            },
        ),
    ],
)
def test_a_long_running_verb_shows_no_secret(stage: Stage, verb: str, places: set[str]) -> None:
    with running(stage, verb) as process:
        wait_for(stage, verb, places)
        found = [*shown_of(process), *served_by(stage, verb)]
    log = (stage.folder / f"{verb}.log").read_bytes()
    assert [(name, leaks(text)) for name, text in [*found, ("log", log)] if leaks(text)] == []


def printed_by(words: list[str]) -> bytes:
    """All that a verb prints and logs, and its exit status."""
    code, shown = outcome(*words)
    return f"{shown.out}{shown.err}exit status {code}".encode()


def test_no_other_verb_shows_a_secret(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, logs_as_before: None
) -> None:
    # What these brokers do not answer is not waited for.
    for module in ("verbs.check_config.reach", "verbs.safe_to_stop.command"):
        monkeypatch.setattr(f"tidemark.{module}.MAX_SECONDS", 0.0)
    for name, value in stage.variables.items():
        monkeypatch.setenv(name, value)
    config = ["--config", str(stage.config)]
    commands = {verb: [*verb.split(), *config] for verb in VERBS}
    # The user's own file in place of the configured options.
    server = ["--bootstrap", stage.bootstrap("java"), "--command-config", str(stage.properties)]
    for verb in ("safe-to-stop 1 --json", "inspect orders --json", "top --passes 1 --plain"):
        commands[f"{verb} --command-config"] = [*verb.split(), *server]
    commands["version"] = ["version", "--json"]
    shown = {verb: printed_by(words) for verb, words in commands.items()}
    assert [(verb, leaks(text)) for verb, text in shown.items() if leaks(text)] == []
    assert set(PLACES) - set(leaks(stage.learned())) <= NOT_SENT
    assert b"Traceback" not in b"".join(shown.values())
