"""Classifiers from features, learnt from a crowd's labels: fit(X, annotations); one file per method."""
