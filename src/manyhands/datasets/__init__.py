"""Crowd-labelled data: real ones from a folder or from the web, and simulated ones that need nothing.

    load        real crowds from the folder in MANYHANDS_DATA
    fetch       public crowds by their address, checked and kept
    make_...    simulated crowds on scikit-learn's own data, and imbalanced ones on real features

All of them return a `CrowdDataset`.
"""

from manyhands.datasets.catalog import names
from manyhands.datasets.crowd_dataset import CrowdDataset
from manyhands.datasets.difficulty_images import make_difficulty_images
from manyhands.datasets.fetching import (
    fetch,
    fetch_cifar10h,
    fetch_names,
    fetch_netease_crowd,
    fetch_nist_trec_relevance,
    fetch_relevance2,
    fetch_relevance5,
    fetch_usps,
)
from manyhands.datasets.imbalanced import make_iced_features, make_long_tail_on
from manyhands.datasets.loading import load
from manyhands.datasets.simulated import make_blobs, make_breast_cancer, make_digits, make_iris, make_wine

__all__ = [
    "CrowdDataset",
    "fetch",
    "fetch_cifar10h",
    "fetch_names",
    "fetch_netease_crowd",
    "fetch_nist_trec_relevance",
    "fetch_relevance2",
    "fetch_relevance5",
    "fetch_usps",
    "load",
    "make_blobs",
    "make_breast_cancer",
    "make_difficulty_images",
    "make_digits",
    "make_iced_features",
    "make_iris",
    "make_long_tail_on",
    "make_wine",
    "names",
]
