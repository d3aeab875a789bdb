"""Scorecards: a quality report for each worker, with intervals, class bias, alerts and the reason for each alert.

accuracy   share of right labels and recall of each class, with 95% credible intervals; class bias
alerts      what is noted: copied answers, skill below the crowd, labels that ignore the truth, speed
cards      `score_workers`, the reports of one worker and of all, and a sentence for each alert
"""

from manyhands.scorecards.cards import ACCUSATIONS, ALERTS, Scorecards, WorkerCard, score_workers

__all__ = ["ACCUSATIONS", "ALERTS", "Scorecards", "WorkerCard", "score_workers"]
