"""Aggregators: the truth of every item inferred from the labels alone.

voting                  `MajorityVote`: all labels count the same; `Wawa`: weighted by agreement with the majority
one_coin                `OneCoin`: one accuracy per worker, by EM
dawid_skene             `DawidSkene`: a confusion matrix per worker, by EM
ibcc                    `IBCC`: the same by variational Bayes
mace                    `MACE`: competence and spam distribution per worker, by EM
glad                    `GLAD`: ability of workers and difficulty of items, by EM
firing_naive_bayes      `FiringNaiveBayes`: workers who give one class or nothing, by naive Bayes from the vote
kos                     `KOS`: message passing for two classes
order_consistency_vote  `OrderConsistencyVote`: pairwise verdicts weighted by their agreement in both orders
ordinal                 `OrdinalDawidSkene`: ordered classes, bias and spread per worker, by EM
vote_difficulty_em      `VoteDifficultyEM`: abilities on items whose difficulty follows from their votes, by EM
pooled                  `PooledDawidSkene`, the default: worker types, copied votes, held-out calibration
tempering               the parts of the default that decide how far it departs from the vote
base                    `Aggregator`: fit, predict, score, and the results that all methods share
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands._core.exports import exported_on_first_use

if TYPE_CHECKING:
    from manyhands.aggregation.base import Aggregator
    from manyhands.aggregation.dawid_skene import DawidSkene
    from manyhands.aggregation.firing_naive_bayes import FiringNaiveBayes
    from manyhands.aggregation.glad import GLAD
    from manyhands.aggregation.ibcc import IBCC
    from manyhands.aggregation.kos import KOS
    from manyhands.aggregation.mace import MACE
    from manyhands.aggregation.one_coin import OneCoin
    from manyhands.aggregation.order_consistency_vote import OrderConsistencyVote
    from manyhands.aggregation.ordinal import OrdinalDawidSkene
    from manyhands.aggregation.pooled import PooledDawidSkene
    from manyhands.aggregation.vote_difficulty_em import VoteDifficultyEM
    from manyhands.aggregation.voting import MajorityVote, Wawa

_HOMES = {  # public name -> module
    "Aggregator": "manyhands.aggregation.base",
    "DawidSkene": "manyhands.aggregation.dawid_skene",
    "FiringNaiveBayes": "manyhands.aggregation.firing_naive_bayes",
    "GLAD": "manyhands.aggregation.glad",
    "IBCC": "manyhands.aggregation.ibcc",
    "KOS": "manyhands.aggregation.kos",
    "MACE": "manyhands.aggregation.mace",
    "MajorityVote": "manyhands.aggregation.voting",
    "OneCoin": "manyhands.aggregation.one_coin",
    "OrderConsistencyVote": "manyhands.aggregation.order_consistency_vote",
    "OrdinalDawidSkene": "manyhands.aggregation.ordinal",
    "PooledDawidSkene": "manyhands.aggregation.pooled",
    "VoteDifficultyEM": "manyhands.aggregation.vote_difficulty_em",
    "Wawa": "manyhands.aggregation.voting",
}
__all__ = [
    "Aggregator",
    "DawidSkene",
    "FiringNaiveBayes",
    "GLAD",
    "IBCC",
    "KOS",
    "MACE",
    "MajorityVote",
    "OneCoin",
    "OrderConsistencyVote",
    "OrdinalDawidSkene",
    "PooledDawidSkene",
    "VoteDifficultyEM",
    "Wawa",
]
__getattr__, __dir__ = exported_on_first_use(__name__, _HOMES)
