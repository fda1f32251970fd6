"""Local brokers, faults, drills and a model of replication."""
