"""The web configuration file, in the form of Prometheus' exporter-toolkit: TLS, users, headers.

The same file serves node_exporter, Prometheus and Alertmanager. Paths in it are relative to it.
Options that this server does not have are refused and not ignored.
"""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, ValidationError, convert, field

from tidemark.core.errors import ConfigError
from tidemark.settings.conversion import explain, sentence
from tidemark.settings.files import load_authorities, load_pair, read_bounded
from tidemark.settings.sources import parse_yaml

MAX_FILE_BYTES: Final = 1_000_000
_BCRYPT: Final = re.compile(r"\$2[aby]\$(0[4-9]|1[0-7])\$[./A-Za-z0-9]{53}")
_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}

Version = Literal["TLS12", "TLS13"]
Header = Annotated[
    str,
    Meta(pattern=r"^[\x20-\x7e]{0,4000}\Z", description="at most 4000 printable ASCII characters"),
]


class Tls(Struct, kw_only=True, forbid_unknown_fields=True):
    """`tls_server_config`: the server's certificate, and which clients must have one."""

    cert_file: str
    key_file: str
    client_ca_file: str | None = None
    client_auth_type: Literal[
        "NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
    ] = "NoClientCert"
    min_version: Version = "TLS12"
    max_version: Version = "TLS13"


class HttpServer(Struct, kw_only=True, forbid_unknown_fields=True):
    """`http_server_config`. `http2` is accepted, but the server answers HTTP/1.1."""

    http2: bool = False
    headers: dict[
        Literal[
            "Content-Security-Policy",
            "Strict-Transport-Security",
            "X-Content-Type-Options",
            "X-Frame-Options",
            "X-XSS-Protection",
        ],
        Header,
    ] = {}


class WebFile(Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole file. `basic_auth_users`: user -> bcrypt hash of the password."""

    tls_server_config: Tls | None = None
    http_server_config: HttpServer = field(default_factory=HttpServer)
    basic_auth_users: dict[str, str] = {}


def read_web_file(path: Path) -> WebFile:
    """Raises ConfigError with the file and the reason, and never with a value from the file."""
    where = f"web configuration {path}"
    try:
        document = parse_yaml(read_bounded(path, MAX_FILE_BYTES), where)
        file_ = convert(document or {}, WebFile)
    except OSError as error:
        # Without the path, in whose place a secret may be.
        raise ConfigError(
            f"cannot read the web configuration: {error.strerror}. Check web_config_file."
        ) from None
    except ValidationError as error:
        option, problem = explain(error, WebFile)
        raise ConfigError(f"{where}: {sentence(problem, option)}") from None
    for number, (user, password) in enumerate(file_.basic_auth_users.items(), 1):
        if not _BCRYPT.fullmatch(password) or ":" in user or not user:
            raise ConfigError(
                f"{where}: basic_auth_users: user {number} needs a name without a colon and a "
                "bcrypt hash of cost 4 to 17, as `htpasswd -nBC 10 USER` prints it."
            )
    tls = file_.tls_server_config
    if tls is not None and (tls.client_auth_type != "NoClientCert") != bool(tls.client_ca_file):
        raise ConfigError(
            f"{where}: client_ca_file and a client_auth_type that verifies belong together."
        )
    if tls is not None and _VERSIONS[tls.min_version] > _VERSIONS[tls.max_version]:
        raise ConfigError(f"{where}: min_version must not exceed max_version.")
    return file_


def make_context(path: Path, tls: Tls) -> ssl.SSLContext:
    """Raises ConfigError where a certificate, key or authority cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[tls.min_version]
    context.maximum_version = _VERSIONS[tls.max_version]
    load_certificate(path, tls, context)
    if tls.client_ca_file is not None:
        try:
            load_authorities(path.parent / tls.client_ca_file, context)
        except OSError as error:
            raise _unusable(path, "client_ca_file", error) from None
    context.verify_mode = _VERIFY[tls.client_auth_type]
    return context


def load_certificate(path: Path, tls: Tls, context: ssl.SSLContext) -> None:
    """Reads certificate and key again into a context that may be in use. Raises ConfigError."""
    try:
        load_pair(context, path.parent / tls.cert_file, path.parent / tls.key_file)
    except OSError as error:
        raise _unusable(path, "cert_file or key_file", error) from None


def _unusable(path: Path, option: str, error: OSError) -> ConfigError:
    return ConfigError(f"web configuration {path}: tls_server_config.{option}: {error.strerror}.")
