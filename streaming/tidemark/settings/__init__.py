"""Configuration: the schema of every option, where values come from, and the checks at load."""

from tidemark.settings.schema import (
    Alertmanager,
    Cluster,
    Collect,
    Connection,
    Export,
    Notify,
    Receiver,
    Route,
    Settings,
    Stream,
    Topics,
    address,
    client_options,
    load_settings,
)

__all__ = [
    "Alertmanager",
    "Cluster",
    "Collect",
    "Connection",
    "Export",
    "Notify",
    "Receiver",
    "Route",
    "Settings",
    "Stream",
    "Topics",
    "address",
    "client_options",
    "load_settings",
]
