"""NeuCrowd (Hao, Ding and Liu 2021, Knowledge and Information Systems), step by step in the paper's order.

Neural sampling network for representation learning with crowdsourced labels:

1. `representation.label_confidence`  label assurance A: agreement of the labels of an item
2. `tuplets`            safety-aware sampling: safe items, the pool of an epoch, and tuplets drawn from it
3. `sampler`            the sampling network, which predicts the losses of tuplets and selects hard ones
4. `embedding_network`  the network from features to the embedding
5. `member_training`    the robust anchor, the tuplet loss, and the epochs in which both networks train
6. `linear_head`        logistic regression on the embedding, with C chosen on held-out items
7. `ensemble`           several embeddings side by side, each with held-out items of its own (ours, for `plus`)
8. `setting_fit`        steps 1 to 7 for one setting of the hyper-parameters
9. `neucrowd`           the estimator `NeuCrowd`, which searches settings by held-out items, and `NeuCrowd.plus()`
   `plus_settings`      the parameters of `NeuCrowd.plus()`
10. `options`           its groups: `Tuplets`, `LabelConfidence`, `SafetyAwareSampling`, `TupletLoss`, `LogisticHead`,
                        `HeldoutSearch`
11. `heldout_regression` the same search for the other representation learners, so that tables compare like with like
"""

from manyhands.representation.neucrowd.options import (
    HeldoutSearch,
    LabelConfidence,
    LogisticHead,
    SafetyAwareSampling,
    TupletLoss,
    Tuplets,
)

__all__ = ["HeldoutSearch", "LabelConfidence", "LogisticHead", "SafetyAwareSampling", "TupletLoss", "Tuplets"]
