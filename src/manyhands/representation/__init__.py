"""Representation learners: embeddings of features, learned from a crowd's labels; one file or package per method.

All have ``fit(X, annotations)`` and ``transform(X)``, so that any classifier can follow in a scikit-learn pipeline.
"""
