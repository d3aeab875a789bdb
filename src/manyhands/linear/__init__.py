"""Logistic regression and its relatives, without torch."""
