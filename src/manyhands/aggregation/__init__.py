"""Aggregators: the truth of every item inferred from the labels alone; one file per method.

majority_vote          every label counts the same
wawa                   votes weighted by agreement with the majority
one_coin               one accuracy per worker, by EM
dawid_skene            a confusion matrix per worker, by EM
ibcc                   the same by variational Bayes
mace                   competence and spam distribution per worker, by EM
glad                   ability of workers and difficulty of items, by EM
kos                    message passing for two classes
ordinal_dawid_skene    ordered classes: bias and spread per worker, by EM
vote_difficulty_em     abilities on items whose difficulty follows from their votes, by EM
pooled_dawid_skene     the default: worker types, collusion, held-out calibration
base                   `Aggregator`: fit, predict, score, and the results that all methods share
pooled_fit, tempering, vote_departure     parts of the default method
vote_shares            from summed votes to a posterior
"""
