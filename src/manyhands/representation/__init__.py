"""Embeddings of features, learnt from a crowd's labels: fit(X, annotations), transform(X); one file per method."""
