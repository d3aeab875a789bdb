"""The torch wing: one training loop, sparse batches of labels, noise models that backpropagate.

    inputs         rows of X, whatever X is
    batches        streams of items with their labels
    backbones      networks from features to logits
    noise_layers   how a worker errs, as layers
    losses         plain functions of tensors
    train          the one loop
    checkpoint     what a killed training needs to go on
    networks       a trained network's probabilities

torch is imported by these files and not by this one.
"""
