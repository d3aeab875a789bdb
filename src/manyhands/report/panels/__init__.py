"""The panels of a report, each a pure function of a run that returns a `Panel`, or None where its data are absent.

data      what became of every row, how the labels are spread, the classes, agreement, labels over time
labels    confidence, calibration, what answers of an expert allow to say, hard items, confusable classes, methods
workers   the map of all workers, a card for each, subgroups; workers who err together are in `labels`
summary   the head of the page: verdict, key figures, notices; a classifier trained on the labels; provenance
"""
