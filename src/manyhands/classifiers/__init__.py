"""Classifiers that learn from features and a crowd's labels: ``fit(X, annotations)``.

Base and shared parts: `base` (the class `CrowdClassifier`), `training_data` and `fitting` (from input to fitted
attributes), `network`, `network_options` and `training_context` (training of networks), `noise_layer` (methods with a
noise layer per worker), `nested_methods`, `active_workers`, `epoch_updates`, `self_training` and `regression`.

One module per method: `aggnet`, `conal`, `crowd_layer`, `deep_ensemble`, `doctor_net`, `max_mig`, `mbem`, `raykar`,
`spee_lfc`, `trace_reg`, `two_stage`. Methods of several modules are packages: `cpc`, `crowding`, `difficulty`, `iced`,
`imputation`, `self_crowd`.
"""
