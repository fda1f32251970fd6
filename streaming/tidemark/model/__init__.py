"""Kafka's replication as a state machine: small enough to read in an evening, small enough to search.

`state`, `log`, `controller` and `actions` are the base, after KafkaReplication.tla and with its names; `protocols/` has one module
for each truncation rule that Kafka has had; `invariants` says what must hold; `search` looks for the shortest way to break
it. `replica_manager/` is the same partition in more detail (fetches and their answers, purgatories, checkpoints, time),
for the stories of `scenarios/`. Pure: no clock, no I/O, random numbers are an argument.
"""
