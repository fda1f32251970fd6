"""A failed query is one line: what is damaged and the way out, or that a restart is enough."""

from __future__ import annotations

import pytest

from tidemark.stream.failures import CONTINUES, describe_failure

STATE = (
    "org.apache.spark.sql.execution.streaming.state.StateStoreException: "
    "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."
)
DELTA = "file:/c/state/0/1/2.delta"


@pytest.mark.parametrize(
    ("causes", "file"),
    [
        ([STATE, f"java.io.IOException: Error reading delta file {DELTA} of Provider"], DELTA),
        ([STATE, "java.io.EOFException: Premature EOF"], "a file in /c/state"),
        (
            [
                "java.lang.IllegalStateException: Failed to read log file /c/commits/7. Incomplete",
                "JsonParseException: Unrecognized token 'garbage'",
            ],
            "/c/commits/7",
        ),
        (
            ["IllegalStateException: Failed to read log file file:/c/offsets/0."],
            "file:/c/offsets/0",
        ),
        (["Error reading stream metadata from file:/c/metadata"], "file:/c/metadata"),
    ],
)
def test_damage_names_the_file_and_the_way_out(causes: list[str], file: str) -> None:
    text = describe_failure(causes, "/c")
    assert text.startswith(f"the checkpoint is damaged: {file}: ")
    assert "restore the whole folder /c from a copy, or set stream.checkpoint" in text
    assert CONTINUES not in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "causes",
    [
        ["org.apache.kafka.common.errors.TimeoutException: Call timed out"],
        [STATE, f"java.net.ConnectException: {DELTA}: Connection refused"],
        ["java.lang.OutOfMemoryError: Java heap space"],
    ],
)
def test_what_a_restart_may_cure_is_no_damage(causes: list[str]) -> None:
    text = describe_failure(causes, "/c")
    assert text.startswith("the query failed: ")
    assert text.endswith(CONTINUES)


def test_a_full_disk_is_named() -> None:
    text = describe_failure([STATE, "java.io.IOException: No space left on device"], "/c")
    assert "no space is left" in text
    assert "Free space for /c" in text
