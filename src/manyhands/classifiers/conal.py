"""CoNAL: some mistakes are everybody's, the others are a worker's own.

    p = softmax(network(x)),   omega_iw = sigmoid( <unit(V x_i), unit(u_w)> )   how far worker w errs with all on item i
    logits of worker w = omega_iw p W_common + (1 - omega_iw) p W_w             mixed are logits, not probabilities
    loss = mean over observed labels of -log softmax(logits)[label]  -  penalty * sum_w ||W_w - W_common||_F

V is two linear layers with nothing between them. All matrices start at twice the identity, and the penalty drives a
worker's own away from the common one. With both vectors of length one, omega stays between 0.27 and 0.73.

Reference: Z. Chu, J. Ma and H. Wang (2021), Learning from crowds by modeling common confusions, AAAI.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseLayerClassifier, NoiseLayerParameters
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.kernels import Array
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.losses import log_softmax_at
from manyhands.nn.worker_layers import CrowdLogits
from manyhands.validation import Constraint, Number, Switch

if TYPE_CHECKING:
    from manyhands.classifiers.noise_layer import AnswersTo


class CoNAL(NoiseLayerClassifier):
    """A crowd layer in which a matrix common to all workers and one of each worker's own share the blame.

    The penalty sums over the workers of a batch: it costs the same in any crowd, and silent workers change nothing.

    Parameters
    ----------
    embedding : length of the vectors of items and workers, whose product decides who is to blame
    embedding_hidden : size of the layer between an item's features and its vector
    unit_items : bring the vectors of items to length one; those of workers always are
    penalty : how much the distance of workers' matrices from the common one counts
    start : "identity", where workers are believed, or an aggregator (by its name or as an instance) that judges them
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    common_confusion_ : (n_classes, n_classes) the mistakes of everybody, were the network sure of the truth
    common_share_ : (n_workers,) mean of omega over the items that each worker labelled; 0.5 where there are none
    confusion_ : (n_workers, n_classes, n_classes) how each worker would answer at his mean omega

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, CoNAL
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = CoNAL(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {
        "embedding": Number(whole=True, least=1),
        "embedding_hidden": Number(whole=True, least=1),
        "unit_items": Switch(),
        "penalty": Number(least=0),
    }

    def __init__(
        self,
        embedding: int = 20,
        embedding_hidden: int = 128,
        unit_items: bool = True,
        penalty: float = 1e-5,
        **others: Unpack[NoiseLayerParameters],
    ) -> None:
        super().__init__(**others)
        self.embedding = embedding
        self.embedding_hidden = embedding_hidden
        self.unit_items = unit_items
        self.penalty = penalty

    def _noise_layer(self, context: TrainingContext) -> Any:
        sizes = int(np.prod(context.data.rows.shape)), self.embedding_hidden, self.embedding
        return CommonNoise(_worker_vectors(context, self.embedding), context.n_classes, sizes, self.unit_items)

    def _log_label(self, noise: Any, log_proba: torch.Tensor, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        found: torch.Tensor = noise(log_proba, x, batch)
        return found

    def _answers_of(self, noise: Any, worker: torch.Tensor) -> AnswersTo:
        answers = noise.answers_of(worker)
        return lambda log_proba, x: answers(log_proba, x())

    def _loss(self, noise: Any, log_label: torch.Tensor, batch: Batch) -> torch.Tensor:
        return super()._loss(noise, log_label, batch) - self.penalty * noise.distance(batch.worker)

    def _results(self, context: TrainingContext, noise: Any) -> dict[str, Array]:
        return _results(noise, context)


class CommonNoise(nn.Module):
    """The layer: a common matrix, a matrix per worker, and omega, which weighs them for each item and worker."""

    def __init__(self, vectors: torch.Tensor, n_classes: int, sizes: tuple[int, int, int], unit_items: bool) -> None:
        super().__init__()
        self.unit_items = unit_items
        self.own = CrowdLogits(len(vectors), n_classes, "mw", scale=2.0)
        self.common = nn.Parameter(2.0 * torch.eye(n_classes))
        self.workers = nn.Parameter(vectors)  # u, (n_workers, embedding)
        self.items = nn.Sequential(nn.Flatten(), nn.Linear(*sizes[:2]), nn.Linear(*sizes[1:]))  # V, of x

    @torch.no_grad()
    def start_at(self, confusion: Array) -> None:
        """Begin with these matrices as the workers' own, and with their mean as the common one."""
        self.own.start_at(confusion)
        assert self.own.weight is not None
        self.common.copy_(self.own.weight.view(-1, *self.common.shape).exp().mean(0).log())

    def forward(self, log_proba: torch.Tensor, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """(n_labels,) log-probability of each label of the batch, given log p(k | x) and x of its rows."""
        proba, omega = log_proba.exp(), self.omega(x, batch).unsqueeze(1)
        own = self.own.logits(proba.index_select(0, batch.row), batch.worker)
        common = (proba @ self.common).index_select(0, batch.row)
        return log_softmax_at(own + omega * (common - own), batch.label)

    def answers_of(self, worker: torch.Tensor) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        """From log p(k | x) and x of some rows to the log-probability of every answer of each of these workers."""
        own_logits, vector = self.own.logits_of(worker), F.normalize(self.workers.index_select(0, worker)).t()

        def answers(log_proba: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            own, omega = own_logits(log_proba), (self._items(x) @ vector).sigmoid().unsqueeze(1)
            common = (log_proba.exp() @ self.common).unsqueeze(2)
            return (own + omega * (common - own)).log_softmax(1)

        return answers

    def omega(self, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """(n_labels,) the weight of the common matrix in each label."""
        worker = F.normalize(self.workers.index_select(0, batch.worker))
        return (self._items(x).index_select(0, batch.row) * worker).sum(1).sigmoid()

    def _items(self, x: torch.Tensor) -> torch.Tensor:
        item: torch.Tensor = self.items(x)
        return F.normalize(item) if self.unit_items else item

    def away(self, worker: torch.Tensor) -> torch.Tensor:
        """(n, n_classes, n_classes) W_w - W_common of these workers."""
        assert self.own.weight is not None
        return self.own.weight.index_select(0, worker).view(-1, *self.common.shape) - self.common

    def distance(self, worker: torch.Tensor) -> torch.Tensor:
        """The sum of ||W_w - W_common||_F over the distinct ones of these workers."""
        return torch.linalg.vector_norm(self.away(torch.unique(worker)).flatten(1), dim=1).sum()


def _worker_vectors(context: TrainingContext, length: int) -> torch.Tensor:
    """Random starts from a generator of their own; one without labels has 0, so that nobody's draw depends on him."""
    heard = np.unique(context.annotations.worker)
    vectors = np.zeros((context.n_workers, length), np.float32)
    vectors[heard] = np.random.default_rng(context.rng.integers(2**63)).normal(size=(len(heard), length))
    return torch.from_numpy(vectors)


@torch.no_grad()
def _results(noise: CommonNoise, context: TrainingContext) -> dict[str, Array]:
    votes, total = context.data.annotations, np.zeros(context.n_workers)
    for batch in AnnotationBatches(votes, 1024, device=context.device):
        omega = noise.omega(context.x(batch), batch).double().cpu().numpy()
        total += np.bincount(batch.worker.cpu().numpy(), omega, context.n_workers)
    n_labels = np.bincount(votes.worker, minlength=context.n_workers)
    share = np.where(n_labels > 0, total / np.maximum(n_labels, 1), 0.5)
    common, everybody = noise.common.double().cpu(), torch.arange(context.n_workers, device=context.device)
    logits = common + torch.from_numpy(1 - share).view(-1, 1, 1) * noise.away(everybody).double().cpu()
    confusions = {"common_confusion_": common.softmax(1).numpy(), "confusion_": logits.softmax(2).numpy()}
    return confusions | {"common_share_": share}
