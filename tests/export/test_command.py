"""`tidemark export` on the command line: one clear line for each error."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tidemark.cli import main


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """The verb configures the logs of the whole process."""
    yield
    structlog.reset_defaults()


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["export", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert isinstance(port, int)
        return port


@pytest.mark.parametrize(
    ("arguments", "document", "code", "message"),
    [
        (("--no-notify", "--only-notify"), "", 2, "leave nothing to do"),
        (("--only-notify",), "", 2, "notify.receivers"),
        ((), "export: {listn: 1}", 2, "listn"),
        (
            (),
            "notify: {receivers: [{name: hook, url_file: /nowhere/url}]}",
            2,
            "cannot read url_file /nowhere/url",
        ),
    ],
)
def test_a_wrong_configuration_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    document: str,
    code: int,
    message: str,
) -> None:
    path = tmp_path / "tidemark.yaml"
    path.write_text(document)
    assert run("--config", str(path), *arguments) == code
    printed = capsys.readouterr().err
    assert message in printed
    assert len(printed.splitlines()) == 1


def test_a_port_in_use_and_an_unreachable_kafka(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tidemark.yaml"
    kafka = f"127.0.0.1:{free_port()}"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        path.write_text(
            f"{{kafka: {{bootstrap_servers: ['{kafka}']}}, export: {{listen: '{listen}'}}}}"
        )
        assert run("--config", str(path)) == 1
    assert f"cannot listen on {listen}" in capsys.readouterr().err
    assert run("--config", str(path)) == 1
    printed = capsys.readouterr().err
    assert kafka in printed
    assert "refused the connection" in printed
    assert "Traceback" not in printed
