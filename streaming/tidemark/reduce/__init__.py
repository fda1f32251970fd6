"""Folds the events of one Kafka partition into its state and the rows to publish. Pure."""
