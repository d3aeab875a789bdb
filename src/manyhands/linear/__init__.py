"""Linear classifiers and their numerical methods; nothing here imports torch.

Modules:

    softmax_regression   multinomial logistic regression on soft targets: IRLS (Newton) steps by conjugate gradients
    principal_axes       standardised features along their principal axes, and weights back in raw features
    one_vs_rest          class probabilities of one logistic classifier per class

Weights have one column per classifier with the intercept in the last row, unless a docstring states otherwise.
"""
