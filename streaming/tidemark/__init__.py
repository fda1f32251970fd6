"""Tidemark watches the replication of Apache Kafka clusters, live."""

__version__ = "0.2.0"
