"""One partition as Kafka's brokers keep it: every offset that the replica manager moves, and what moves it.

Finer than the searched model: a fetch is a request, an answer and its arrival; a leader knows its followers by their
fetches alone; what waits stands in a purgatory; disks lag behind; time passes. Brokers count from 1 here, as in the
stories. Every function takes a Cluster and returns the next one, whose `notes` say in words what came of the call.
"""
