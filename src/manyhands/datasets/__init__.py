"""Crowd-labelled data sets: real ones from a folder or from the web, and simulated ones that need no download.

load        real crowds from the folder named by MANYHANDS_DATA: loading, catalog (what there is), table_sets, vote_sets
fetch       public crowds from the web, with checksums and a cache: fetching, remote_sources, download
make_...    simulated crowds on scikit-learn's data (simulated) and on blobs (blobs), imbalanced ones on real features
            (imbalanced), and images of graded difficulty (difficulty_images); simulated_labels is shared by them
files       reads CSV, npz, zip and bz2 through the readers of `manyhands.io`; labels builds the annotations

All of them return a `CrowdDataset` (crowd_dataset): annotations, ground truth and features, where they exist.
"""

from manyhands.datasets.blobs import make_blobs
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
from manyhands.datasets.simulated import make_breast_cancer, make_digits, make_iris, make_wine

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
