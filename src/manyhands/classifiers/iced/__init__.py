"""ICED (Wang et al., Learning from imbalanced crowdsourced labeled data, SDM), step by step in the paper's order.

1. `truth_inference`   true labels and confusion matrices by Dawid-Skene, section 2.1
2. `certainty`         label certainty S_i of an item, section 2.2; `certainty_groups` of the warm-up
3. `synthesis`         how many synthetic items of each minority class, and where in the embedding, section 2.3
4. `synthetic_labels`  labels of the workers on synthetic items, from the nearest real ones, section 2.3
5. `autoencoder`       the network F = FC(G(x)), and the decoder from embeddings to features, section 2.3
6. `warm_up`           the network learns the majority vote, from less to more certain items, section 2.4
7. `outer_loop`        every epoch: synthesise, infer the true labels, train on them, section 2.5
8. `posterior_state`   what one round of the loop hands to the next, so that checkpoints keep it
9. `iced`              the estimator `ICED`, and `ICED.plus()` with what works better than the paper
10. `options`          its groups of options: `WarmUp`, `Synthesis`, `Certainty`, `TruthInference`
"""

from manyhands.classifiers.iced.options import Certainty, Synthesis, TruthInference, WarmUp

__all__ = ["Certainty", "Synthesis", "TruthInference", "WarmUp"]
