"""Kafka's replication as a state machine, small enough to read and small enough to search.

`state`, `log`, `controller` and `actions` are the base. They follow KafkaReplication.tla and use
its names. `protocols/` has one module for each truncation rule that Kafka has had. `invariants`
lists what must hold, and `search` finds the shortest way to break it.

`replica_manager/` models the same partition in more detail, for `scenarios/`: fetch requests and
responses, purgatories, checkpoints and time.

Everything here is pure: no clock, no I/O, and random numbers are an argument.
"""
