"""The log of kafka-python: silent, or a part of ours without secrets."""

from __future__ import annotations

import json
import logging

import pytest
import structlog
from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.sasl import SaslAuthenticateRequest

from tidemark.kafka.client_log import quiet_client_logs, show_client_log
from tidemark.logs import configure_logs

SECRET = "hunter2hunter2"


pytestmark = pytest.mark.usefixtures("logs_as_before")


def test_it_is_silent_unless_a_level_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    quiet_client_logs()
    logging.getLogger("kafka.net").error("broken")
    assert capsys.readouterr().err == ""
    show_client_log("warning")
    quiet_client_logs()
    logging.getLogger("kafka.net").warning("%s: %d bytes", "node 1", 5)
    logging.getLogger("kafka.net").info("not this")
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["module"], line["line"]) == (
        "kafka-python",
        "kafka.net",
        "node 1: 5 bytes",
    )


def test_logins_and_options_are_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("text")
    show_client_log("debug")
    log = logging.getLogger("kafka.net.connection")
    request = SaslAuthenticateRequest(auth_bytes=SECRET.encode(), version=2)
    log.debug("%s Request %d: %s", "node 1", 3, request)
    # kafka.protocol.parser logs the bytes of each request and answer.
    log.debug("%s Send: %s", "node 1", bytearray(request.encode(version=2, header=False)))
    with pytest.raises(KafkaError):
        KafkaAdminClient(
            bootstrap_servers="127.0.0.1:1",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="ada",
            sasl_plain_password=SECRET,
            bootstrap_timeout_ms=300,
        )
    shown = capsys.readouterr().err
    assert "Request 3: SaslAuthenticateRequest (hidden)" in shown
    assert "Send: " in shown and " bytes" in shown
    assert "Starting KafkaAdminClient" in shown
    assert SECRET not in shown and SECRET.encode().hex() not in shown


def test_a_line_that_cannot_be_written_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("text")
    show_client_log("debug")
    logging.getLogger("kafka.net").info("%d bytes", "many")
    assert "TypeError in the line" in capsys.readouterr().err


@pytest.mark.parametrize(("level", "shown"), [("debug", 3), ("info", 2), ("error", 1)])
def test_the_level_of_our_log(level: str, shown: int, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("text", level)  # type: ignore[arg-type]
    log = structlog.get_logger()
    log.debug("one")
    log.info("two")
    log.error("three")
    assert len(capsys.readouterr().err.splitlines()) == shown


def test_no_colour_where_no_color_is_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", text)
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        configure_logs("text")
        structlog.get_logger().warning("three")
        assert ("\x1b[" in capsys.readouterr().err) is coloured
