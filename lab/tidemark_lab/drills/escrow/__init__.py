"""Unclean elections after which the old leader's disk is gone: what the escrow has of the loss."""
