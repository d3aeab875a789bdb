"""Scorecards: which workers to trust, how surely that is known, and what is wrong with the others.

witnesses   what everybody else says of the items a worker labelled
accuracy    the share of right labels, with an interval that knows how little is known
knowledge   whether labels tell anything of the truth: guessing, one class for all, the wrong way round
habits      which class a worker over-uses, which classes they confuse
copying     workers who agree beyond what the truth explains
reasons     flags in plain sentences
cards       the whole, for tables and JSON
"""

from manyhands.scorecards.cards import Scorecards, WorkerCard
from manyhands.scorecards.reasons import FLAGS
from manyhands.scorecards.scoring import score_workers

__all__ = ["FLAGS", "Scorecards", "WorkerCard", "score_workers"]
