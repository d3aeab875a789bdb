"""Neural networks in torch, which every method that trains a network is made of.

    train           the training loop: epochs, early stopping on held-out labels, checkpoints
    batches         mini-batches of items with their observed labels, and of classes with their items
    backbones       networks from features to logits; their outputs over all rows; devices and threads
    worker_layers   noise layers: log p(label | x, worker)
    losses          cross-entropies, likelihoods and entropies; losses of metric learning

A network that only one method has stands beside that method. Every module here imports torch; this file does not, so
that ``import manyhands`` stays fast.
"""
