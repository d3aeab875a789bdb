"""Neural networks in torch: one training loop, mini-batches of observed labels, noise layers, losses.

Building blocks of every method that trains a network:

    backbones           networks from features to logits
    inference           a network's outputs and probabilities over all rows; devices and threads
    batches             mini-batches of items with their observed labels
    train               the training loop: epochs, early stopping on held-out labels, checkpoints
    checkpoint          the file from which an interrupted training resumes
    losses              cross-entropies, likelihoods and entropies
    worker_layers       noise layers: log p(label | x, worker)

Metric learning:

    class_batches       mini-batches of P classes with K items each, and the tuplets in them
    metric_losses       contrastive, triplet, lifted-structure and tuplet losses of embeddings

Labels that workers did not give:

    item_worker_pairs   pairs of an item and a worker: sampling and selection; imputed annotations
    label_generator     CrowdInG's generator
    label_discriminator CrowdInG's discriminator and auxiliary network (mutual-information term)
    label_graph         graph network that predicts missing labels
    pseudo_annotations  the most likely missing labels and their entropies (Self-Crowd)

Every module here imports torch; this file does not, so that ``import manyhands`` stays fast.
"""
