"""Features of workers, which the generator of CrowdInG can use in place of a free code per worker."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from manyhands.classifiers.active_workers import ActiveWorkers
from manyhands.exceptions import AlignmentError


def standardised_features(crowd: ActiveWorkers) -> torch.Tensor | None:
    """Return the worker features, each column with mean 0 and standard deviation 1 over the active workers.

    Parameters
    ----------
    crowd : ActiveWorkers
        Workers and the data of the fit.

    Returns
    -------
    torch.Tensor of shape (n_workers, n_worker_features) or None
        None without worker features.
    """
    features = crowd.context.data.worker_features
    if features is None:
        return None
    active = features[crowd.active]
    spread = active.std(axis=0)
    return torch.from_numpy((features - active.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).float()


def check_worker_features(worker_features: npt.ArrayLike, n_workers: int) -> npt.NDArray[np.float64]:
    """Return worker features as an array, or refuse them.

    Parameters
    ----------
    worker_features : array-like of shape (n_workers, n_worker_features)
        One row per worker.
    n_workers : int
        Number of workers in the annotations.

    Returns
    -------
    ndarray of shape (n_workers, n_worker_features)
    """
    try:
        features = np.asarray(worker_features, float)
    except (TypeError, ValueError):
        raise AlignmentError("worker_features must be numbers, one row per worker; encode its columns first.") from None
    if features.ndim != 2 or len(features) != n_workers or features.shape[1] == 0:
        raise AlignmentError(
            f"worker_features needs a row of at least one number for each of the {n_workers} workers, in the order of "
            f"annotations.worker_ids; its shape is {features.shape}."
        )
    if not np.isfinite(features).all():
        row = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
        raise AlignmentError(f"worker_features has NaN or infinity in row {row}; fill it.")
    return features
