"""The panels of a report, each a pure function of a run that returns a `Panel`, or None where its data are absent.

input_panels      ledger, coverage, class balance
agreement_panel   inter-annotator agreement: overall, by class, by pair
certainty_panels  confidence, calibration
worker_panel      the map of all workers
item_panels       hard items, confusable classes
method_panel      methods compared
provenance_panel  versions, files, the paragraph for a paper
card_panels       one card per worker
trust_panels      what answers allow to promise; correlated workers
group_panel       subgroups of workers
classifier_panel  a classifier that was trained on the labels
time_panel        labels, speed and quality over time
verdict           the head of the page: verdict, key figures, alerts
"""
