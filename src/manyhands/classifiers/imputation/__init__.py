"""Crowd layers on imputed annotations: the augmentation baselines of CrowdInG.

A model of p(label | x, w) is trained on the observed labels (`imputers`), missing annotations are imputed with it, and
a new crowd layer is trained on observed and imputed annotations together (`imputed_crowd_layer`). The four models:

- self: a crowd layer;
- gan: a crowd layer trained further against a discriminator (after IRGAN, Wang et al. 2017);
- graph: a graph network over workers and items with one edge type per label (after van den Berg et al. 2018);
- generator: CrowdInG's generator (Chu and Wang 2021).
"""
