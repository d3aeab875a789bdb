"""CPC: clustering of per-worker classifiers."""
