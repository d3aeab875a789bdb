"""Public data sets: their addresses, published checksums, and the names of their tables and columns.

relevance2, relevance5, nist_trec_relevance, netease_crowd   addresses and MD5 sums published with crowd-kit
cifar10h                                                     address and SHA-256 in TensorFlow Datasets
usps                                                         addresses and MD5 sums in torchvision
"""

from __future__ import annotations

from dataclasses import dataclass

_TOLOKA = "https://tlk.s3.yandex.net/dataset/crowd-kit"
_NETEASE = "https://huggingface.co/datasets/liuhyuu/NetEaseCrowd/resolve/58cab8743581a2647dcc86590a5a2aaf5429fa8c"
_CIFAR10H = "https://github.com/jcpeterson/cifar-10h/raw/389f22d9d300ec71a4c44735d46f550c94b957ab/data"
_USPS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"


@dataclass(frozen=True)
class Remote:
    """A file on the web and its checksum.

    Attributes
    ----------
    base : str
        Address of its folder.
    file : str
        Name of the file.
    checksum : str or None
        MD5 or SHA-256 in hexadecimal digits.
    checksum_file : str or None
        File beside it in which the publisher states the checksum.
    max_bytes : int
        Largest size that is downloaded.
    """

    base: str
    file: str
    checksum: str | None = None
    checksum_file: str | None = None
    max_bytes: int = 100_000_000


@dataclass(frozen=True)
class Tables:
    """Members of an archive that hold labels and truth, and their columns.

    Attributes
    ----------
    labels : str
        File with the labels.
    triple : tuple of three tuples of str
        Columns of item, worker and label; each may have one of several names.
    truth : str
        File with the ground truth.
    pair : tuple of two str
        Its columns of item and class.
    unless : str or None
        Rows in which this column is not 0 are left out.
    """

    labels: str = "crowd_labels.csv"
    triple: tuple[tuple[str, ...], ...] = (("task",), ("worker", "performer"), ("label",))
    truth: str = "gt.csv"
    pair: tuple[str, ...] = ("task", "label")
    unless: str | None = None


@dataclass(frozen=True)
class PublicSet:
    """A public data set.

    Attributes
    ----------
    description : str
        One sentence.
    remotes : tuple of Remote
        Its files.
    tables : Tables or None
        Its tables; None if it has no annotations.
    class_names : tuple of str or None
        Names of the classes.
    """

    description: str
    remotes: tuple[Remote, ...]
    tables: Tables | None = None
    class_names: tuple[str, ...] | None = None


SOURCES: dict[str, PublicSet] = {
    "relevance2": PublicSet(
        "Relevance of documents, yes or no, Toloka 2016: about 0.5 million labels, truth of a part.",
        (Remote(_TOLOKA, "relevance-2.zip", "a39c3c30d9e946eeb80ca39954c96e95"),),
        Tables(),
    ),
    "relevance5": PublicSet(
        "Relevance of documents in five grades, Toloka 2016: about a million labels, truth of a part.",
        (Remote(_TOLOKA, "relevance-5.zip", "4520f973003c7e151051e888edcd1a03"),),
        Tables(),
    ),
    "nist_trec_relevance": PublicSet(
        "Relevance of web pages, TREC 2010: 98,453 labels on 20,232 items by 766 workers, truth of a part.",
        (Remote(_TOLOKA, "relevance.zip", "afc308986bb0cac865bf2434eb49a3f4"),),
        Tables(),
    ),
    "netease_crowd": PublicSet(
        "NetEaseCrowd, CC BY-SA 4.0: 6 million labels on a million items by 2,413 workers, with truth.",
        (Remote(_NETEASE, "NetEaseCrowd.zip", checksum_file="NetEaseCrowd.md5", max_bytes=1_000_000_000),),
        Tables(triple=(("taskId",), ("workerId",), ("answer",)), pair=("taskId", "truth")),
    ),
    "cifar10h": PublicSet(
        "CIFAR-10H, CC BY-NC-SA 4.0: 514,200 labels on the 10,000 test images of CIFAR-10 by 2,571 workers.",
        (
            Remote(
                _CIFAR10H,
                "cifar10h-raw.zip",
                "4b0283f9b2ae72a616eeb4a2a38474cc2a238eb041bfb8df5ead3a8a47f35aa3",
            ),
        ),
        Tables(
            labels="cifar10h-raw.csv",
            triple=(("cifar10_test_test_idx",), ("annotator_id",), ("chosen_label",)),
            truth="cifar10h-raw.csv",
            pair=("cifar10_test_test_idx", "true_label"),
            unless="is_attn_check",
        ),
        ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    ),
    "usps": PublicSet(
        "Handwritten digits of 16 x 16 pixels, 0 to 255; 7291 items and 2007 for testing; no annotations.",
        (
            Remote(_USPS, "usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197"),
            Remote(_USPS, "usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118"),
        ),
    ),
}
