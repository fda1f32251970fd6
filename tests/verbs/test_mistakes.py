"""Every line of mistakes.yaml: one line on standard error, exit 2, the cure, and no secret."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.certificates import openssl
from tests.verbs.run import tidemark

MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))
SECRET = "hunter2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "empty").write_bytes(b"")
    (made / "secret").write_text(SECRET)
    (made / "login").write_text(f"https://user:{SECRET}@r.example.org/in")
    (made / "bracket").write_text(f"http://[{SECRET}")
    store = f"ssl.keystore.type=PEM\nssl.keystore.location={SECRET}\\u0000b\n"
    (made / "nul.properties").write_text(f"security.protocol=SSL\n{store}")
    mechanism = "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
    endpoint = f"sasl.oauthbearer.token.endpoint.url=http://[{SECRET}\n"
    (made / "bracket.properties").write_text(mechanism + endpoint)
    os.mkfifo(made / "fifo")
    (made / "binary").write_bytes(b"\xff\xfe" + SECRET.encode())
    request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=t"
    for key, certificate in (("key.pem", "certificate.pem"), ("other.pem", "ca.pem")):
        openssl(made, *request.split(), "-keyout", key, "-out", certificate)
    openssl(
        made,
        *("pkcs8", "-topk8", "-in", "key.pem"),
        *("-out", "encrypted.pem", "-passout", "pass:right"),
    )
    openssl(made, *("ec", "-in", "key.pem", "-out", "old.pem"))
    return made


def test_there_are_enough() -> None:
    assert len(MISTAKES) >= 80


@pytest.mark.usefixtures("logs_as_before")
@pytest.mark.parametrize("mistake", MISTAKES, ids=[str(index) for index in range(len(MISTAKES))])
def test_a_mistake_is_one_line_with_a_cure(
    mistake: dict[str, Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, name in (("web", "web.yaml"), ("properties", "client.properties")):
        if key in mistake:
            text = mistake[key].replace("$DIR", str(folder))
            (folder / name).write_text(text, encoding="utf-8")
    if "file" in mistake:
        path = tmp_path / "config.yaml"
        path.write_text(mistake["file"].replace("$DIR", str(folder)), encoding="utf-8")
        monkeypatch.setenv("TIDEMARK_CONFIG", str(path))
    for name, value in mistake.get("env", {}).items():
        monkeypatch.setenv(name, value)
    run = [word.replace("$DIR", str(folder)) for word in mistake.get("run", ["check-config"])]
    shown = tidemark(*run, code=2)
    assert shown.out == ""
    assert shown.err.count("\n") == 1, shown.err
    assert shown.err.startswith("tidemark")
    assert SECRET not in shown.err
    assert "?." not in shown.err
    for part in mistake["says"]:
        assert part in shown.err
