"""`tidemark export` on the command line: one clear line for each error."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.verbs.run import configured


@pytest.mark.usefixtures("logs_as_before")
def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        printed = configured(tmp_path, f"export: {{listen: '{listen}'}}", "export", code=1).err
    assert f"cannot listen on {listen}: Address already in use." in printed
    assert "export.listen" in printed
    assert "Traceback" not in printed
