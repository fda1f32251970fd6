"""Environment variables: those of options, and others that begin with TIDEMARK_.

Others are ignored: orchestrators set variables of their own. One that is about the security or the
servers of a connection is refused: without it the connection is another one, or plaintext. No
message shows a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from msgspec import Struct, inspect, structs

from tidemark.core.errors import ConfigError
from tidemark.settings.schema import Settings

# Of the image, the charts and the documentation; no option.
_OTHERS: Final = frozenset(
    f"TIDEMARK_{name}" for name in ("CONFIG", "CACHE", "JARS", "PYTHON", "MASTER", "PY_FILES")
)
_SENSITIVE: Final = ("SECURITY", "SASL", "SSL", "PASSWORD", "BOOTSTRAP")
# Kubernetes sets these for each service of a namespace: Strimzi's service of a cluster named
# `tidemark` is tidemark-kafka-bootstrap.
_SERVICE_LINK: Final = re.compile(
    r".*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)=.*"
    r"|.*_PORT=(tcp|udp|sctp)://.*",
    re.DOTALL,
)
# Beginnings of variables for one entry of an option, and options of which a connection depends.
_MAPPINGS: Final = {
    "TIDEMARK_KAFKA_CLIENT_": "kafka.client",
    "TIDEMARK_STREAM_SPARK_": "stream.spark",
    "TIDEMARK_CLUSTERS_": "clusters",
}
_CONNECTIONS: Final = ("TIDEMARK_KAFKA_CLIENT", "TIDEMARK_KAFKA_BOOTSTRAP_SERVERS")


def variables(
    kind: type[Struct] = Settings, path: tuple[str, ...] = ("tidemark",)
) -> Iterator[tuple[str, tuple[str, ...], inspect.Type]]:
    """(variable, path, type) of every option: stream.trigger_ms is TIDEMARK_STREAM_TRIGGER_MS."""
    for option in structs.fields(kind):
        inner = (*path, option.name)
        if isinstance(option.type, type) and issubclass(option.type, Struct):
            yield from variables(option.type, inner)
        else:
            yield "_".join(inner).upper(), inner[1:], inspect.type_info(option.type)


def misspelt_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(variable, near option) of variables that are no option but nearly one."""
    known = {name for name, _, _ in variables()}
    for name in _unknown(environ):
        for close in get_close_matches(name, known, n=1, cutoff=0.95):
            yield name, close


def check_variables(environ: Mapping[str, str]) -> None:
    """Raises ConfigError for the first variable that must not be ignored."""
    for name in _unknown(environ):
        cure = None if _SERVICE_LINK.fullmatch(f"{name}={environ[name]}") else _cure(name)
        if cure is not None:
            raise ConfigError(f"configuration: the variable {name} is no option; {cure}.")


def _unknown(environ: Mapping[str, str]) -> list[str]:
    known = {*_OTHERS, *(name for name, _, _ in variables())}
    return sorted(name for name in environ if name.startswith("TIDEMARK_") and name not in known)


def _cure(name: str) -> str | None:
    """What to write instead; None for a variable that may be ignored."""
    for start, option in _MAPPINGS.items():
        if name.startswith(start):
            key = name.removeprefix(start).lower().replace("_", "." if "spark" in option else "_")
            return f"write `{key}` in {option} of the file of --config, or in {start[:-1]} as YAML"
    for near in get_close_matches(name, _CONNECTIONS, n=1, cutoff=0.85):
        return f"did you mean {near}? Rename or unset it"
    if any(map(_is_sensitive, name.split("_"))):
        return _cure(re.sub("^TIDEMARK_(KAFKA_)?(CLIENT_)?", "TIDEMARK_KAFKA_CLIENT_", name))
    return None


def _is_sensitive(word: str) -> bool:
    """Also with a typing error."""
    return any(part in word for part in _SENSITIVE) or bool(
        get_close_matches(word, _SENSITIVE, n=1, cutoff=0.8)
    )
