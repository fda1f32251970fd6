"""The extras of the package, and the error where one is not installed."""

from __future__ import annotations

from typing import Final

from tidemark import __version__
from tidemark.core.errors import ConfigError

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
