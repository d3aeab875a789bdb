"""Saving and loading of fitted methods, without pickles."""
