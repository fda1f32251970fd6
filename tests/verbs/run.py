"""Runs a verb as the command line does."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from tidemark.cli import main


class Output(NamedTuple):
    out: str
    err: str


def outcome(*arguments: str) -> tuple[object, Output]:
    """The exit status and the output of `tidemark <arguments>`."""
    out, err = io.BytesIO(), io.StringIO()
    text = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    with redirect_stdout(text), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code, Output(out.getvalue().decode(), err.getvalue())


def tidemark(*arguments: str, code: int = 0) -> Output:
    """The output of `tidemark <arguments>`, which must exit with `code`."""
    status, output = outcome(*arguments)
    assert status == code, output.err
    return output


def configured(folder: Path, text: str, *arguments: str, code: int = 0) -> Output:
    """The output of a verb with a configuration of this text, which is FOLDER/tidemark.yaml."""
    path = folder / "tidemark.yaml"
    path.write_text(text, encoding="utf-8")
    return tidemark(*arguments, "--config", str(path), code=code)
