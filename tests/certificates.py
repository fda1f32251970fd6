"""An authority of the tests, and certificates that it signs, by openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conftest import need

_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """`certificate` is PEM text; what it issues is valid for two days."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.certificate = folder, folder / "ca.pem"
        folder.mkdir(parents=True, exist_ok=True)
        openssl(
            folder,
            *("req", "-x509", *_EC, "-days", "2", "-subj", "/CN=Authority of the tests"),
            *("-keyout", "ca.key", "-out", "ca.pem"),
        )

    def issue(self, name: str, address: str | None = None) -> tuple[Path, Path]:
        """(certificate, PKCS#8 key) of the subject CN=name; for a server, with its address."""
        request, key, certificate = (self.folder / f"{name}.{end}" for end in ("csr", "key", "pem"))
        openssl(
            self.folder,
            *("req", *_EC, "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(request)),
        )
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName=IP:{address}\n" if address else "", encoding="utf-8")
        openssl(
            self.folder,
            *("x509", "-req", "-days", "2", "-in", str(request), "-extfile", str(extensions)),
            *("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", str(certificate)),
        )
        return certificate, key


def openssl(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """What it prints."""
    run = subprocess.run(
        [need("openssl"), *arguments],
        cwd=folder,
        input=given,
        check=True,
        capture_output=True,
        timeout=60,
    )
    return run.stdout
