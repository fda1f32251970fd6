"""Settings reach Spark's JVM by a file that only this user can read."""

from __future__ import annotations

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
