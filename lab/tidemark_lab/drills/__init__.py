"""Drills: a schedule of faults on real brokers, the product beside them, and the verdict.

A drill is data (`drill`): topics, steps (`steps`), and what must follow. `set_up` starts its stage
(`stage`): cluster, load, product. `run` plays the steps and reads the disks; `judge` compares.

* `schedules`: the named drills, and the one that tests play on every version of Kafka.
* `chaos`: drills with a random schedule, of benign or of harmful faults.
* `tidemark_lab.demo`: a drill with a live table, watched by the processes of an operator.
"""
