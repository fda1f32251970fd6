"""Configuration: the schema of every option, the sources of values, and the checks at load."""

from tidemark.settings.forms import parse_address, servers_of_flag
from tidemark.settings.maintenance import Maintenance, Schedule, read_schedule
from tidemark.settings.schema import (
    Alertmanager,
    Cluster,
    Collect,
    Connection,
    Escrow,
    Export,
    JmxEndpoint,
    Notify,
    Receiver,
    Route,
    Settings,
    Stream,
    Topics,
)
from tidemark.settings.sources import load_settings, read_document

__all__ = [
    "Alertmanager",
    "Cluster",
    "Collect",
    "Connection",
    "Escrow",
    "Export",
    "JmxEndpoint",
    "Maintenance",
    "Notify",
    "Receiver",
    "Route",
    "Schedule",
    "Settings",
    "Stream",
    "Topics",
    "load_settings",
    "parse_address",
    "read_document",
    "read_schedule",
    "servers_of_flag",
]
