"""One partition as Kafka's brokers keep it: every offset of the replica manager, and what moves it.

This model has more detail than the searched one. A fetch is a request, a response and its arrival.
A leader knows its followers only by their fetches. Delayed operations wait in purgatories. Disks
lag behind memory, and time passes. Brokers count from 1 here, as in the scenarios. Every function
takes a ClusterModel and returns the next one, with `notes` on what happened.
"""
