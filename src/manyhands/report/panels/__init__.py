"""The panels of a report, each a pure function of a run that returns a `Panel`, or None where its data are absent.

input_panels      ledger, coverage, class balance
agreement_panel   inter-annotator agreement: overall, by class, by pair
certainty_panels  confidence, calibration
worker_panel      the map of all workers
item_panels       hard items, confusable classes
method_panel      methods compared
provenance_panel  versions, files, the paragraph for a paper
verdict           the head of the page: verdict, key figures, alerts
"""
