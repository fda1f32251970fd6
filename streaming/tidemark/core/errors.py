"""Operating errors: each message names what is wrong and the cure, such as the extra to install.

Programmer errors are assertions.
"""

from __future__ import annotations

from typing import Final

from tidemark import __version__

# Module -> the extra whose packages have it.
EXTRAS: Final = {
    "cryptography": "escrow",
    **dict.fromkeys(("jinja2", "markdown_it", "standardwebhooks"), "export"),
    **dict.fromkeys(("numpy", "pandas", "pyarrow", "pyspark"), "stream"),
}


# As this repository builds them. Public indexes have another project under the name `tidemark`: an
# install by the name would be that one.
WHEEL: Final = f"./kafka_tidemark-{__version__}-py3-none-any.whl"
LAB_WHEEL: Final = f"./kafka_tidemark_lab-{__version__}-py3-none-any.whl"


class TidemarkError(Exception):
    """A failure that the operator can mend: one line on standard error, and `exit_code`."""

    exit_code = 1


class ConfigError(TidemarkError):
    """The configuration or the command line is wrong (exit 2)."""

    exit_code = 2


class WireError(TidemarkError):
    """A record on a topic or in a file does not fit its schema.

    `field` is the path of the field ("$.events[3].partition"), "$" when no part is readable.
    """

    def __init__(self, message: str, field: str = "$") -> None:
        super().__init__(message)
        self.field = field


class ClusterError(TidemarkError):
    """A Kafka cluster, or Tidemark's own topics on it, cannot be used as configured."""


class StateError(TidemarkError):
    """A state in the stream's checkpoint that cannot be read."""

    def __init__(self, reason: object) -> None:
        super().__init__(
            f"the checkpoint has a state that cannot be read ({str(reason)[:200]}). Restore the "
            "whole folder from a copy, or start with a new stream.checkpoint."
        )


def install_command(extra: str) -> str:
    """What installs the packages of an extra, beside the wheel of this version."""
    return f"pip install '{WHEEL}[{extra}]'"


def missing_package(verb: str, error: ModuleNotFoundError) -> Exception:
    """What to install; the error itself where a module of Tidemark or of Python is missing."""
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS:
        return error
    # The demo runs every process.
    extra = "all" if verb == "demo" else EXTRAS[name]
    return ConfigError(
        f"`tidemark {verb}` needs the package {name}, which is not installed. "
        f"Install it with Tidemark's wheel: {install_command(extra)}."
    )
