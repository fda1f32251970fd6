"""What really happened in a run, what alerts claimed, and the verdict. Pure.

* `truth`: the producer's acknowledgements against the brokers' disks, read again after each fault
  or once at the end.
* `samples`: what the collector's answers showed, read without the product's reducer; `proofs`: what
  they prove.
* `claims`: the ranges that alerts claim, against the truth and the samples. `elections`: the same
  of unclean elections, `suspicions` of ranges that are not certain.
* `expected`: the alerts that a schedule must cause, and when they came. `needless`: alerts that no
  fault explains.
* `verdict`: the checks of a run together. `replay`: the alerts of a recording.
"""
