"""Environment variables that are no option.

Most are ignored: orchestrators set `TIDEMARK_…` variables of their own. One that is about the
security or the servers of a connection is refused: without it the connection is another one, or
plaintext. No message shows a value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Final

from msgspec import inspect

from tidemark.core.errors import ConfigError

PREFIX: Final = "TIDEMARK_"
# Of the image, the charts and the documentation; no option.
OTHERS: Final = frozenset(
    f"{PREFIX}{name}" for name in ("CONFIG", "CACHE", "JARS", "PYTHON", "MASTER", "PY_FILES")
)
_SENSITIVE: Final = ("SECURITY", "SASL", "SSL", "PASSWORD", "BOOTSTRAP")
# Kubernetes sets these for each service of a namespace: Strimzi's service of a cluster named
# `tidemark` is tidemark-kafka-bootstrap.
_SERVICE_LINK: Final = re.compile(
    r".*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_LINK_VALUE: Final = re.compile(r"(tcp|udp|sctp)://")
# An option on which the security or the server of a connection depends.
_CONNECTIONS: Final = (f"{PREFIX}KAFKA_CLIENT", f"{PREFIX}KAFKA_BOOTSTRAP_SERVERS")


def check_variables(environ: Mapping[str, str], known: Mapping[str, inspect.Type]) -> None:
    """Raises ConfigError for the first variable that must not be ignored. `known`: the options'."""
    mappings = [name for name, kind in known.items() if isinstance(kind, inspect.DictType)]
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in known or name in OTHERS:
            continue
        if _is_service_link(name, environ[name]):
            continue
        cure = _cure(name, known, mappings)
        if cure is not None:
            raise ConfigError(f"configuration: the variable {name} is no option; {cure}.")


def _is_service_link(name: str, value: str) -> bool:
    if _SERVICE_LINK.fullmatch(name) is not None:
        return True
    return name.endswith("_PORT") and _LINK_VALUE.match(value) is not None


def _cure(name: str, known: Collection[str], mappings: Collection[str]) -> str | None:
    """What to write instead; None for a variable that may be ignored."""
    for mapping in mappings:
        if name.startswith(f"{mapping}_"):
            return _entry(name.removeprefix(f"{mapping}_"), mapping)
    near = get_close_matches(name, _CONNECTIONS, n=1, cutoff=0.85)
    if near:
        return f"did you mean {near[0]}? Rename or unset it"
    if not any(_is_sensitive(word) for word in name.split("_")):
        return None
    if name.startswith(f"{PREFIX}CLUSTER"):
        return (
            "write the clusters in the file of --config, or in TIDEMARK_CLUSTERS as YAML in one "
            "line"
        )
    if "BOOTSTRAP" in name or "SERVERS" in name:
        return "did you mean TIDEMARK_KAFKA_BOOTSTRAP_SERVERS? Rename or unset it"
    near = get_close_matches(name, known, n=1, cutoff=0.9)
    if near:
        return f"did you mean {near[0]}? Rename or unset it"
    option = re.sub(r"^(KAFKA_)?(CLIENT_)?", "", name.removeprefix(PREFIX))
    return _entry(option, f"{PREFIX}KAFKA_CLIENT")


def _is_sensitive(word: str) -> bool:
    """Also with a typing error."""
    return any(part in word for part in _SENSITIVE) or bool(
        get_close_matches(word, ("SECURITY", "PASSWORD", "BOOTSTRAP"), n=1, cutoff=0.8)
    )


def _entry(option: str, mapping: str) -> str:
    separator = "." if mapping.endswith("SPARK") else "_"
    key = option.lower().replace("_", separator)
    section, _, last = mapping.removeprefix(PREFIX).lower().partition("_")
    return f"write `{key}` in {section}.{last} of the file of --config, or {mapping}='{{{key}: …}}'"
