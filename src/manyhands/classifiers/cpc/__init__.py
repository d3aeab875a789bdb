"""CPC, clustering crowds (Kajino, Tsuboi and Kashima 2013): a convex model of personal classifiers.

The paper in order, and where each part lives:

1. Each worker has a logistic regression, and so has the target; all share the features. `worker_regressions.Nodes`
2. A fusion penalty on the distances between them makes workers with similar errors equal. `worker_graph.choose_edges`
3. The convex problem is solved by ADMM with Newton steps by conjugate gradients. `fused_logistic.solve`
4. Workers whose classifiers are equal form a cluster. `worker_graph.clusters`

`cpc.CPC` chooses the strength of the penalty by held-out labels and predicts with the target.
"""
