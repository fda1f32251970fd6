"""Answers to an operator's questions about partitions: pure functions of their newest views.

`candidates` has what the answers share: which replicas the controller can elect without loss.
Every other module answers one question.
"""
