"""Tidemark watches the replication of Apache Kafka clusters, live."""

__version__ = "0.1.0"
