"""Self-Crowd (Shi, Li and Huang 2021): self-training for sparse and imbalanced annotations.

The paper in order, and where each step lives:

1. A crowd layer is trained on the observed labels: p(label | x, w). `noise_layer.NoiseModel.train`
2. For each pair of item and worker without a label, the most probable label becomes a candidate pseudo-annotation;
   its confidence is the entropy of the distribution. `nn.pseudo_annotations`
3. M candidates are selected within quotas inversely proportional to the number of candidates of each class (Eq. 4), so
   that rare classes survive; within a quota the most confident first. `class_balance.inverse_quotas`, `select`
4. Labels and pseudo-annotations train the next round. `self_training.LabelPool`, `RoundRecord`

`self_crowd.SelfCrowd` is the loop over these rounds.
"""
