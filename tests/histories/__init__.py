"""Random histories of a simulated cluster that knows the truth, and the judge of the product.

The simulator imports nothing of `tidemark_lab.model`, only the proofs by observations alone
(`tidemark_lab.judge.proofs`), which chaos judges by too. It moves brokers, logs and a controller in
small random steps. One to four partitions share the brokers. The product's own collector reads
them: over connections without sockets, which answer in the wire format and take a moment, in which
things happen. Its records go to the reducer. The judge compares every alert with what really
happened.

    logs, replica, broker             a replica; the process that holds one of each partition
    controller, controlled_partition  the metadata log, and what it decides for a partition
    partition, world                  the whole cluster
    faults, kinds                     what happens to it; histories with something special
    answers, connection, virtual_loop what a broker answers, and how the collector asks it
    collector                         the collector's passes, and the records of the metadata log
    bystanders                        sidecars and audits, by clocks of their own
    truth                             what was committed, deleted and lost, and each election
    sentences, partition_judge        alerts about a partition and their texts against its truth
    last_known                        elections of last known leaders, told or not
    broker_judge, judge               alerts about brokers against the brokers; a whole history
    history, campaign, shrink         one seed; many; the smallest script with the same failure
"""
