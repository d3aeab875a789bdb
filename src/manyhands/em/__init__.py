"""Expectation maximisation (EM): driver, E step, starting points, class priors, and the models fitted by it.

driver             `run_em`, the one loop: M step, E step, acceleration (SQUAREM), stopping rule
kernels            `em_pass`, the fused E step and expected counts, compiled or in plain NumPy; vote counts
packed             the labels in the form that a pass reads
plain_pass         the passes of the compiled module in NumPy and SciPy, with the same bits
threads            work shared among threads, with results that do not depend on their number
e_step             `posterior_given` and `expected_counts`: the E step of every model with confusion matrices
starts             starting points: vote shares, gold items, random restarts
priors             class priors and gold labels
label_source       where that EM reads its labels: in memory, or shards from anywhere; redundancy: whether there is any
confusion_em       EM with confusion matrices (Dawid-Skene and its relatives); table_sizes: their memory
classifier_em      EM with a classifier in the place of the class prior
ability_em         EM with abilities of workers and difficulties of items; ability_results: its fitted attributes
decisions          from a posterior to one class per item
exchangeable       workers that no method can distinguish, merged for speed
collusion          groups of workers with shared answers, and how they are collapsed into one vote
collusion_group    the candidate group: where workers agree more than expected
label_pairs        pairs of labels that two workers gave to one item
triads             the test of three agreements: inside, across and outside a group
"""
