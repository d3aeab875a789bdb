"""Crowd-labelled data sets: real ones from a folder or from the web, and simulated ones that need no download.

local       real crowds from the folder named by MANYHANDS_DATA, and `CrowdDataset`, which all functions return:
            annotations, ground truth and features, where they exist
remote      public crowds from the web, with checksums and a cache
make        simulated crowds on scikit-learn's data and on blobs; imbalanced ones and images of graded difficulty
"""

from manyhands.datasets.local import CrowdDataset, load, names
from manyhands.datasets.make import (
    make_blobs,
    make_breast_cancer,
    make_difficulty_images,
    make_digits,
    make_iced_features,
    make_iris,
    make_long_tail_on,
    make_wine,
)
from manyhands.datasets.remote import (
    fetch,
    fetch_cifar10h,
    fetch_gisette,
    fetch_names,
    fetch_netease_crowd,
    fetch_nist_trec_relevance,
    fetch_relevance2,
    fetch_relevance5,
    fetch_usps,
)

__all__ = [
    "CrowdDataset",
    "fetch",
    "fetch_cifar10h",
    "fetch_gisette",
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
