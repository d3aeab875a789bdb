"""Public sets, by made-up archives of the same layout from a server on this machine."""

import bz2
import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manyhands import datasets
from manyhands.datasets import fetch, fetch_names
from manyhands.datasets import remote as fetching
from manyhands.datasets.remote import SOURCES
from manyhands.exceptions import AnnotationError, DownloadError, ParameterError

TOLOKA = {
    "relevance/crowd_labels.csv": "worker,task,label\nw1,t1,1\nw2,t1,0\nw1,t2,0\nw1,t1,0\n",
    "relevance/gt.csv": "task,label\nt1,1\n",
}
OLD_TOLOKA = {"crowd_labels.csv": "performer,task,label\nw1,t1,1\n", "gt.csv": "task,label\nt1,1\n"}
NETEASE = {
    "NetEaseCrowd/crowd_labels.csv": "taskId,workerId,answer,completeTime,capability\n5,64,1,1661917345953,50\n",
    "NetEaseCrowd/gt.csv": "taskId,truth\n5,2\n",
}
CIFAR10H = {
    "cifar10h-raw.csv": "annotator_id,trial_index,is_attn_check,true_category,chosen_category,true_label,chosen_label,"
    "correct_guess,cifar10_test_test_idx,image_filename,subcategory,reaction_time,time_elapsed\n"
    "0,0,0,ship,ship,8,8,1,6798,cabin.png,cabin,1342,1342\n"
    "0,1,1,cat,cat,3,3,1,-99999,cat.png,cat,1,1\n"
    "1,0,0,ship,deer,8,4,0,6798,cabin.png,cabin,4305,6244\n"
}
GISETTE = [b"550 0 495 \n0 991 0 \n0 0 7 \n", b"1\n-1\n-1\n", b"1 2 3 \n", b"-1\n"]


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.fixture
def publish(site, monkeypatch, tmp_path):
    """Put a made-up file for each file of a set on the server, with its checksum in the table of sources."""
    monkeypatch.setenv("MANYHANDS_CACHE", str(tmp_path / "cache"))

    def put(name, *contents):
        remotes = []
        for remote, content in zip(SOURCES[name].remotes, contents):
            site.show(f"/{remote.file}", content)
            checksum = hashlib.md5(content).hexdigest()
            if remote.checksum_file:
                site.show(f"/{remote.checksum_file}", f"{checksum}\n".encode())
            remotes.append(replace(remote, base=site.address, checksum=None if remote.checksum_file else checksum))
        monkeypatch.setitem(SOURCES, name, replace(SOURCES[name], remotes=tuple(remotes)))

    return put


def test_a_crowd_is_fetched_once_and_read_offline_afterwards(publish, site, tmp_path):
    publish("relevance2", zipped(TOLOKA))
    first = datasets.fetch_relevance2()
    votes = first.annotations
    assert (votes.n_items, votes.n_workers, votes.n_annotations) == (2, 2, 3)  # the last of w1's two labels on t1
    assert first.truth == {"t1": 1}
    assert first.y_true.tolist() == [1, -1]
    site.close()
    assert datasets.fetch_relevance2().annotations == votes
    assert site.seen == ["/relevance-2.zip"]
    assert (tmp_path / "cache" / "relevance2" / "relevance-2.zip").is_file()


def test_every_public_set_has_a_function(publish, site):
    contents = {
        "relevance2": [zipped(TOLOKA)],
        "relevance5": [zipped(OLD_TOLOKA)],
        "nist_trec_relevance": [zipped(TOLOKA)],
        "netease_crowd": [zipped(NETEASE)],
        "cifar10h": [zipped(CIFAR10H)],
        "gisette": GISETTE,
        "usps": [bz2.compress(b"7 1:-1 256:1\n"), bz2.compress(b"10 1:1\n")],
    }
    assert sorted(contents) == fetch_names()
    for name, files in contents.items():
        publish(name, *files)
        data = getattr(datasets, f"fetch_{name}")()
        assert data.name == name and data.has_truth.any()


def test_a_checksum_that_the_publisher_keeps_in_a_file_is_kept_too(publish, site, tmp_path):
    publish("netease_crowd", zipped(NETEASE))
    data = fetch("netease_crowd")
    assert data.truth == {5: 2} and data.classes.tolist() == [1, 2]
    assert data.annotations.worker_ids.tolist() == [64]
    site.close()
    assert fetch("netease_crowd").truth == {5: 2}
    assert site.seen == ["/NetEaseCrowd.md5", "/NetEaseCrowd.zip"]


def test_a_kept_checksum_that_was_damaged_is_asked_for_again(publish, site, tmp_path):
    publish("netease_crowd", zipped(NETEASE))
    fetch("netease_crowd")
    (tmp_path / "cache" / "netease_crowd" / "NetEaseCrowd.md5").write_text("")
    fetch("netease_crowd")
    assert site.seen.count("/NetEaseCrowd.md5") == 2 and site.seen.count("/NetEaseCrowd.zip") == 1


def test_attention_checks_are_no_labels(publish):
    publish("cifar10h", zipped(CIFAR10H))
    data = fetch("cifar10h")
    assert data.item_ids.tolist() == [6798]
    assert data.annotations.classes[data.annotations.label].tolist() == [8, 4]
    assert data.truth == {6798: 8} and data.class_names[8] == "ship"


def test_pixels_are_scaled_and_digits_start_at_zero(publish):
    publish("usps", bz2.compress(b"7 1:-1 2:-0.5 256:1\n1 1:1\n"), bz2.compress(b"10 1:1\n"))
    data = fetch("usps")
    assert data.annotations is None and data.X.shape == (2, 256) and data.X.dtype == np.uint8
    assert data.X[0, [0, 1, 255]].tolist() == [0, 63, 255]
    assert data.y_true.tolist() == [6, 0] and data.y_test.tolist() == [9]
    publish("usps", bz2.compress(b"seven\n"), bz2.compress(b"10 1:1\n"))
    with pytest.raises(AnnotationError, match="not in the format of LIBSVM"):
        fetch("usps")


def test_a_mirror_must_hold_the_published_file(publish, site, tmp_path):
    publish("relevance2", zipped(TOLOKA))
    site.show("/mirror/relevance-2.zip", zipped(TOLOKA))
    assert fetch("relevance2", tmp_path / "one", address=f"{site.address}/mirror/").n_items == 2
    site.show("/mirror/relevance-2.zip", zipped(OLD_TOLOKA))
    with pytest.raises(DownloadError, match="is not the published file"):
        fetch("relevance2", tmp_path / "two", address=f"{site.address}/mirror")
    assert list((tmp_path / "two").rglob("*.zip")) == []


def test_a_whole_archive_with_the_wrong_things_in_it(publish):
    publish("relevance2", zipped({"readme.txt": "sorry"}))
    with pytest.raises(AnnotationError, match=r"has no member crowd_labels\.csv"):
        fetch("relevance2")


def test_names_folders_and_timeouts_that_make_no_sense(publish, tmp_path):
    with pytest.raises(ParameterError, match="no public data set called 'relevance'; the nearest is 'relevance"):
        fetch("relevance")
    with pytest.raises(ParameterError, match=r"there are: relevance2, .*, cifar10h, gisette, usps\."):
        fetch("qqqqqqqq")
    with pytest.raises(ParameterError, match="`timeout` of fetch"):
        fetch("usps", timeout=0)
    publish("relevance2", zipped(TOLOKA))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadError, match="name another folder"):
        fetch("relevance2", tmp_path / "file")


def test_where_files_are_kept(monkeypatch):
    monkeypatch.setattr(fetching.sys, "platform", "linux")
    monkeypatch.setenv("MANYHANDS_CACHE", "/here")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert fetching.cache_folder() == Path("/here")
    monkeypatch.delenv("MANYHANDS_CACHE")
    assert fetching.cache_folder() == Path("/xdg/manyhands")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: Path("/me"))
    assert fetching.cache_folder() == Path("/me/.cache/manyhands")
    monkeypatch.setattr(fetching.sys, "platform", "darwin")
    assert fetching.cache_folder() == Path("/me/Library/Caches/manyhands")
    monkeypatch.setattr(fetching.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert fetching.cache_folder() == Path("/local/manyhands")


def test_no_home_at_all(monkeypatch):
    def nowhere():
        raise RuntimeError

    for name in ("MANYHANDS_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(DownloadError, match="let MANYHANDS_CACHE name a folder"):
        fetching.cache_folder()


def test_real_addresses_are_encrypted_and_every_file_has_a_checksum():
    for source in SOURCES.values():
        for remote in source.remotes:
            assert remote.base.startswith("https://") and not remote.base.endswith("/")
            assert bool(remote.checksum) != bool(remote.checksum_file)
            assert remote.checksum is None or len(remote.checksum) in (32, 64)


def test_gisette_has_two_classes_and_a_test_part(publish):
    """Lines of numbers end in a blank; classes 1 and -1 become 1 and 0, since -1 is the unknown class."""
    publish("gisette", *GISETTE)
    data = datasets.fetch_gisette()
    assert data.X.tolist() == [[550, 0, 495], [0, 991, 0], [0, 0, 7]] and data.y_true.tolist() == [1, 0, 0]
    assert data.X_test.tolist() == [[1, 2, 3]] and data.y_test.tolist() == [0] and data.annotations is None


@pytest.mark.parametrize(
    ("at", "content", "sentence"),
    [
        (0, b"1 2 3\n4 5\n6 7 8\n", "does not have 3 whole numbers on every line"),
        (0, b"1 2 3\n4 5 x\n6 7 8\n", "does not have 3 whole numbers on every line"),
        (1, b"1\n-1\n", "does not have 1 or -1 for each of the 3 lines"),
        (1, b"1\n-1\n0\n", "does not have 1 or -1 for each of the 3 lines"),
        (2, b"1 2\n", "has rows of 3 numbers"),
    ],
)
def test_a_damaged_gisette_is_refused(publish, at, content, sentence):
    publish("gisette", *(content if k == at else part for k, part in enumerate(GISETTE)))
    with pytest.raises(AnnotationError, match=sentence):
        datasets.fetch_gisette()


def test_the_crowd_of_iced_on_the_real_gisette(publish):
    """All items of both parts are divided anew, ten of one class to one of the other, with a balanced test part."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], 70)
    X = rng.integers(0, 999, (140, 4)) + 500 * (y[:, None] > 0)
    rows = [" ".join(map(str, row)) + " " for row in X.tolist()]
    parts = [(rows[::2], y[::2]), (rows[1::2], y[1::2])]
    publish("gisette", *("\n".join(map(str, side)).encode() for part in parts for side in part))
    data = datasets.make_iced_features("gisette", random_state=0, real=True)
    large, small = np.bincount(data.y_true)
    assert large == 56 and small == round(large / 10) and np.bincount(data.y_test).tolist() == [14, 14]
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-5)
    with pytest.raises(ParameterError, match="real is for gisette"):
        datasets.make_iced_features("usps", real=True)
