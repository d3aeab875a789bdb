"""Difficulty EM: worker ability and item difficulty."""
