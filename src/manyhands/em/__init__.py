"""Expectation maximisation (EM): driver, E step, starting points, class priors, and the models fitted by it.

driver         `run_em`, the one loop: M step, E step, acceleration (SQUAREM), stopping rule
kernels        `em_pass`, the fused E step and expected counts; vote counts; threads; where EM reads its labels
plain_pass     the passes of the compiled module in NumPy and SciPy, with the same bits
e_step         the E step for confusion matrices and for classifiers; starting points; redundancy
confusion_em   EM with confusion matrices (Dawid-Skene and its relatives)
noise          how workers err: confusion matrices, one accuracy, spam, variational Bayes
pooled_noise   worker types with fitted priors
ordinal_noise  bias and spread on an ordered scale
ability        abilities of workers and difficulties of items
priors         class priors and gold labels
decisions      from a posterior to one class per item; the tie tolerance
copies         pairs and groups of workers who copy one another, and the labels that count
collusion      groups of workers with shared answers, and how they are collapsed into one vote
"""
