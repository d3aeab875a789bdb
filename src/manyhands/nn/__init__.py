"""The torch wing: one training loop, sparse batches of labels, noise models that backpropagate.

    inputs         rows of X, whatever X is
    batches        streams of items with their labels
    class_batches  batches of P classes with K items each, and tuplets in them
    backbones      networks from features to logits
    noise_layers   how a worker errs, as layers
    losses         plain functions of tensors
    metric_losses  those of embeddings
    train          the one loop
    checkpoint     what a killed training needs to go on
    networks       a trained network's probabilities

torch is imported by these files and not by this one.
"""
