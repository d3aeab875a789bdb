"""CrowdInG (Chu and Wang 2021): generative imputation of missing annotations for sparse crowds.

The paper in order, and where each part lives:

1. A classifier C is pre-trained on the labels, by a crowd layer in the paper. `crowding.CrowdInG._learn`
2. A generator G(label | x, w, C(x), noise) is pre-trained on the observed labels. `nn.label_generator.Generator`
3. A discriminator D separates authentic from generated annotations; an auxiliary network q bounds the mutual
   information of a generated annotation and the truth. `nn.label_discriminator.Discriminator`
4. In turns, D is trained, G where C is confident (low entropy), and C where it is not, by importance-weighted costs of
   the generated annotations. `game.Game`, with the draws of `draw.Draw`

`augment` imputes annotations with a fitted generator, for any other method to learn from.
"""
