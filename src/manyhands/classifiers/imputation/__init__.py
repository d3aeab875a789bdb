"""Crowd layers trained on imputed annotations."""
