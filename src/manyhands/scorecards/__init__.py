"""Scorecards: a quality report for each worker, with intervals, class bias, flags and the reason for each flag.

leave_one_out     posterior of the truth without the worker's own labels
accuracy          share of right labels, with a 95% credible interval
skill_scores      how well each label fits those of the others, for the comparison with the crowd
crowd_skill       the distribution of skill in this crowd, and who is clearly below it
informativeness   whether labels depend on the truth: random, weak, one-class and inverted workers
biases            over-used classes, and the most frequent confusions
recall            recall of each class, with interval and evidence
seconds_per_label seconds per label, and workers far faster than the crowd
copying           workers whose agreement exceeds what the truth explains
reasons           one sentence for each flag
cards             the report of one worker and of all workers, for tables and JSON
card_tables       the same as columns
scoring           `score_workers`: from labels and a posterior to all reports
"""

from manyhands.scorecards.cards import Scorecards, WorkerCard
from manyhands.scorecards.reasons import ACCUSATIONS, FLAGS
from manyhands.scorecards.scoring import score_workers

__all__ = ["ACCUSATIONS", "FLAGS", "Scorecards", "WorkerCard", "score_workers"]
