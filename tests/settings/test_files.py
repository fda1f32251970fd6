"""Reading ends, whatever is at a path."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from tidemark.settings.files import check_regular, read_bounded


def test_files_and_links_are_read_to_their_bound(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    # As Kubernetes mounts a secret.
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        assert read_bounded(tmp_path / name, 100) == b"x" * 100
        check_regular(tmp_path / name)
    with pytest.raises(OSError, match="it is larger than 99 bytes"):
        read_bounded(tmp_path / "link", 99)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_without_an_end_is_too_large(device: str) -> None:
    with pytest.raises(OSError, match="it is larger than 65536 bytes"):
        read_bounded(device)
    with pytest.raises(OSError, match="not a regular file"):
        check_regular(device)


def test_a_pipe_is_read_to_its_end() -> None:
    """As the shell's <(…) gives it: in pieces, and later than it is opened."""
    read_end, write_end = os.pipe()

    def write() -> None:
        for piece in (b"Bearer ", b"token\n"):
            time.sleep(0.05)
            os.write(write_end, piece)
        os.close(write_end)

    writer = threading.Thread(target=write)
    writer.start()
    assert read_bounded(f"/dev/fd/{read_end}") == b"Bearer token\n"
    writer.join()
    os.close(read_end)


def test_a_fifo_without_a_writer_keeps_nobody_waiting(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    began = time.monotonic()
    with pytest.raises(OSError, match="a pipe that does not end"):
        read_bounded(fifo, pipe_seconds=0.05)
    with pytest.raises(OSError, match="not a regular file"):
        check_regular(fifo)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("read", [read_bounded, check_regular])
def test_what_is_no_file_has_a_reason(read: object, tmp_path: Path) -> None:
    assert callable(read)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    for path in (tmp_path, tmp_path / "absent", tmp_path / "socket", f"{tmp_path}\0", "/dev/zero"):
        with pytest.raises(OSError) as failed:
            read(path)
        assert failed.value.strerror
    listener.close()
