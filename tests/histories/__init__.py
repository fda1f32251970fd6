"""Random histories of one simulated partition that knows the truth, and the judge of the reducer.

The simulator imports nothing of `tidemark_lab.model`. It moves brokers, logs and a controller in
small random steps. A sampler reads the brokers as the collector does, with steps between its
requests.
The events go to the reducer. The judge compares every alert with what really happened.

    logs, broker, controller, world   the partition
    faults, script                    what happens to it
    inventory, requests, collector    what a collector reads of it
    truth                             what was committed, deleted and lost, and each election
    oracle                            the losses that the events prove, without the product's code
    sentences, judge                  alerts and their texts against the truth
    history, campaign, shrink         one seed; many; the smallest script with the same failure
"""
