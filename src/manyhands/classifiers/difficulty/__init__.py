"""Difficulty EM: worker ability and item difficulty together with a classifier (Adaptive and Fixed Difficulty EM).

The paper in order, and where each part lives:

1. p(correct label) = sigmoid(ability * easiness), easiness = (q - 1/2)^2. `noise.difficulty`
2. E step: posterior of the truth from classifier, abilities and easiness. `em.ability_em.DifficultySteps.expect`
3. M step: classifier on the posterior (and through its difficulty: `difficulty_term`), then the easiness, then
   abilities by Newton steps. `.maximise`
4. Adaptive takes q from the classifier (Algorithm 2), Fixed q and the prior from the vote shares (Algorithm 3).
   `difficulty_em`, `fixed_difficulty_em`
5. Threshold xi of two classes. `decision`

`difficulty_network` is the same model with a neural network, one epoch per M step; what it keeps between epochs is
in `network_state`. Without features, Fixed is the aggregator `aggregation.vote_difficulty_em`.
"""
