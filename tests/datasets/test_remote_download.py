"""Downloads from a server on this machine: what arrives whole is kept, anything else leaves nothing behind."""

import hashlib
import io
import signal
import subprocess
import sys
import time

import pytest

from manyhands.datasets.remote import RetryPolicy, download, parse_checksum
from manyhands.exceptions import DownloadError, LimitError

BODY = bytes(range(256)) * 40
MD5, SHA256 = hashlib.md5(BODY).hexdigest(), hashlib.sha256(BODY).hexdigest()
QUICK = RetryPolicy(timeout=2, tries=2, pause=0)


def get(site, tmp_path, checksum=SHA256, path="/file", max_bytes=100_000, policy=QUICK):
    return download(site.address + path, tmp_path / "kept" / "file.bin", checksum, max_bytes, policy)


def refusal(error, *arguments, **options):
    """The sentence; and nothing may be left behind, not even under another name."""
    with pytest.raises(error) as caught:
        get(*arguments, **options)
    folder = arguments[1] / "kept"
    assert not folder.exists() or list(folder.iterdir()) == []
    return str(caught.value)


@pytest.mark.parametrize("checksum", [MD5, SHA256, SHA256.upper()])
def test_a_good_file_is_kept_and_not_asked_for_again(site, tmp_path, checksum):
    site.show("/file", BODY)
    assert get(site, tmp_path, checksum).read_bytes() == BODY
    site.close()
    assert get(site, tmp_path, checksum).read_bytes() == BODY
    assert site.seen == ["/file"]
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["file.bin"]


def test_a_kept_file_that_was_damaged_is_replaced(site, tmp_path):
    site.show("/file", BODY)
    get(site, tmp_path).write_bytes(BODY[:-1])
    assert get(site, tmp_path).read_bytes() == BODY


def test_a_wrong_checksum_leaves_nothing_and_is_not_retried(site, tmp_path):
    site.show("/file", BODY + b"!")
    assert "is not the published file" in refusal(DownloadError, site, tmp_path)
    assert len(site.seen) == 1


def test_a_wrong_file_does_not_replace_a_right_one_of_old(site, tmp_path):
    site.show("/file", b"new and wrong")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file.bin").write_bytes(b"old")
    with pytest.raises(DownloadError):
        get(site, tmp_path)
    assert (tmp_path / "kept" / "file.bin").read_bytes() == b"old"


def test_a_body_that_ends_early(site, tmp_path):
    site.show("/file", BODY[:100], Content_Length=str(len(BODY)))
    assert "100 of 10240 bytes" in refusal(DownloadError, site, tmp_path)
    assert len(site.seen) == QUICK.tries


def test_a_second_try_starts_over(site, tmp_path):
    longer = 200, {"Content-Length": "99999"}, BODY + b"of another file"
    answers = [longer, (503, {}, b"busy"), (200, {}, BODY)]
    site.pages["/file"] = lambda: answers.pop(0)
    assert get(site, tmp_path, policy=RetryPolicy(2, tries=3, pause=0)).read_bytes() == BODY


def test_not_found_is_not_asked_twice(site, tmp_path):
    said = refusal(DownloadError, site, tmp_path, path="/gone")
    assert "the server answered 404 Not Found" in said and site.address in said
    assert len(site.seen) == 1


def test_a_server_that_is_busy_for_good(site, tmp_path):
    site.show("/file", b"busy", status=503)
    assert "the server answered 503" in refusal(DownloadError, site, tmp_path)
    assert len(site.seen) == QUICK.tries


def test_nobody_answers(site, tmp_path):
    site.close()
    assert "could not be fetched: [Errno" in refusal(DownloadError, site, tmp_path)


def test_a_server_that_stops_speaking(site, tmp_path):
    site.pause = 0.5
    site.show("/file", [BODY[:10], BODY[10:]], Content_Length=str(len(BODY)))
    assert "timed out" in refusal(DownloadError, site, tmp_path, policy=RetryPolicy(timeout=0.1, tries=1))


def test_a_server_that_drips(site, tmp_path, monkeypatch):
    monkeypatch.setattr("manyhands.datasets.remote._CHUNK", 1)
    site.pause = 0.05
    site.show("/file", [b"x"] * 40, Content_Length="40")
    assert "not complete after 0.1 seconds" in refusal(DownloadError, site, tmp_path, policy=RetryPolicy(2, total=0.1))


@pytest.mark.parametrize("announced", [str(len(BODY)), None])
def test_a_file_that_is_too_large(site, tmp_path, announced):
    site.show("/file", BODY, Content_Length=announced)
    assert "larger than the 10239 bytes" in refusal(LimitError, site, tmp_path, max_bytes=len(BODY) - 1)


@pytest.mark.parametrize("status", [301, 302, 307])
def test_redirects_lead_to_the_web_only(site, tmp_path, status):
    site.show("/file", BODY)
    site.show("/moved", b"", status=status, Location="/file")
    assert get(site, tmp_path, path="/moved").read_bytes() == BODY
    secret = tmp_path / "secret"
    secret.write_bytes(BODY)
    for number, target in enumerate((secret.as_uri(), "ftp://127.0.0.1/file", "data:,hello")):
        site.show("/away", b"", status=status, Location=target)
        said = refusal(DownloadError, site, tmp_path / str(number), path="/away")
        assert "http:// and https:// addresses only" in said or "is not allowed" in said  # the second is urllib's


def test_no_way_back_from_https():
    from urllib.request import Request

    from manyhands.datasets.remote import _Redirects

    answer = io.BytesIO()
    with pytest.raises(DownloadError, match="not encrypted"):
        _Redirects().redirect_request(Request("https://a.org/x"), answer, 302, "Found", {}, "http://a.org/x")
    assert answer.closed


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,hello", "//127.0.0.1/x"])
def test_other_addresses_are_refused(tmp_path, url):
    with pytest.raises(DownloadError, match="http:// and https:// addresses only"):
        download(url, tmp_path / "x", MD5, 100, QUICK)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_killed_leaves_no_file_under_its_name(site, tmp_path):
    site.pause = 0.2
    site.show("/file", [BODY[:5000]] + [b"x"] * 100, Content_Length=str(len(BODY)))
    program = (
        "import sys; from pathlib import Path; from manyhands.datasets import remote as d; d._CHUNK = 1;"
        "d.download(sys.argv[1], Path(sys.argv[2]), sys.argv[3], 100_000)"
    )
    final = tmp_path / "file.bin"
    run = subprocess.Popen([sys.executable, "-c", program, f"{site.address}/file", str(final), MD5])
    while not any(part.stat().st_size for part in tmp_path.glob(".file.bin.*.part")):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert not final.exists()
    site.pause = 0
    site.show("/file", BODY)
    assert download(f"{site.address}/file", final, MD5, 100_000, QUICK).read_bytes() == BODY


def test_an_interrupted_run_cleans_up(site, tmp_path, monkeypatch):
    site.show("/file", BODY)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("manyhands.datasets.remote.has_checksum", interrupt)
    with pytest.raises(KeyboardInterrupt):
        get(site, tmp_path)
    assert list((tmp_path / "kept").iterdir()) == []


def test_checksums_as_publishers_write_them():
    assert parse_checksum(f"{MD5.upper()}  file.zip\n", "x") == MD5
    for text in ("", "<html>", "12ab", "z" * 32):
        with pytest.raises(DownloadError, match="there should be a checksum"):
            parse_checksum(text, "there")
