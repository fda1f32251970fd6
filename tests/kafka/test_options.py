from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.core.errors import ConfigError
from tidemark.kafka.options import client_options
from tidemark.settings import Connection


def test_secrets_are_read_from_files(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hunter2\n", encoding="utf-8")
    client = {
        "sasl_plain_password_file": str(secret),
        "ssl_cafile": "/etc/ca.pem",
        "security_protocol": "SASL_SSL",
    }
    assert client_options(Connection(bootstrap_servers=["a:1"], client=client)) == {
        "bootstrap_servers": ["a:1"],
        "sasl_plain_password": "hunter2",
        "ssl_cafile": "/etc/ca.pem",
        "security_protocol": "SASL_SSL",
    }


def test_errors_name_the_option(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"client\.security_protocoll is not an option of kafka-python; "
        "did you mean `security_protocol`",
    ):
        client_options(Connection(client={"security_protocoll": "SSL"}))
    with pytest.raises(
        ConfigError,
        match=r"client\.ssl_password_file: cannot read .*absent: No such file or directory",
    ):
        client_options(Connection(client={"ssl_password_file": str(tmp_path / "absent")}))
