"""Saving and loading of fitted methods, without pickles.

models                the folder of a saved model: `save_model`, `load_model`, schema version, checksum
aggregators           all results of a fitted aggregator, and its annotations
parameters            constructor parameters
parts                 what every model has: class and worker ids, results, training history; and their checks
sklearn_estimators    scikit-learn estimators as a JSON tree and arrays, for a fixed list of classes
compiled_estimators   those of them whose compiled code does not check its input: trees, forests, boosting, SVC

A folder holds `model.json` (names, parameters, ids) and `model.safetensors` (all arrays). Loading creates objects of
known classes from numbers, text and arrays only, so a folder from an unknown source runs no code. Everything is
checked when it is loaded: types, shapes, finite values, and a checksum over both files.
"""
