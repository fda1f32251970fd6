"""Settings reach Spark's JVM by a file that only this user can read."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark import java_gateway

from tidemark.core.errors import TidemarkError
from tidemark.settings import Settings, Stream
from tidemark.stream import session
from tidemark.stream.launch import ARGUMENTS, as_properties, settings_in_file


def test_the_file_is_private_and_gone_afterwards() -> None:
    environ: dict[str, str] = {}
    with settings_in_file({"spark.a": "hunter2"}, environ) as path:
        assert path.read_text() == "spark.a=hunter2\n"
        assert path.parent.stat().st_mode & 0o077 == 0
        assert "hunter2" not in environ[ARGUMENTS]
        assert environ[ARGUMENTS].endswith(f"--properties-file {path} pyspark-shell")
    assert environ == {}
    assert not path.parent.exists()


def test_arguments_of_the_operator_follow() -> None:
    environ = {ARGUMENTS: "--packages a:b:c pyspark-shell"}
    with settings_in_file({}, environ):
        assert environ[ARGUMENTS].endswith(" --packages a:b:c pyspark-shell")
    assert environ == {ARGUMENTS: "--packages a:b:c pyspark-shell"}


def test_what_java_would_read_differently_is_escaped() -> None:
    text = as_properties({"a b:c": " x=\\y\n#é!"})
    assert text == "a\\ b\\:c=\\ x\\=\\\\y\\u000a\\#\\u00e9\\!\n"


def test_the_command_line_of_the_jvm_has_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def launched(command: list[str], **options: Any) -> None:
        seen.extend([*command, *options["env"].values()])
        raise Py4JError("not started")

    monkeypatch.setattr(java_gateway, "Popen", launched)
    monkeypatch.setattr(session, "prepare_java", lambda settings: [])
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    spark = {"spark.hadoop.fs.s3a.secret.key": "hunter2"}
    with pytest.raises(TidemarkError, match="Spark did not start"):
        session.start_session(Settings(stream=Stream(spark=spark)), {})
    assert any("--properties-file" in word for word in seen)
    assert not any("hunter2" in word for word in seen)
