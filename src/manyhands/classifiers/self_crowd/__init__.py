"""Self-Crowd: self-training on pseudo-annotations."""
