"""`tidemark demo`: faults on real local brokers, and whether the right alerts came in time."""
