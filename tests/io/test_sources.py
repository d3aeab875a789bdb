"""Files, folders and archives: what is opened, and what is refused before it can harm."""

import gzip
import io
import os
import stat
import struct
import tracemalloc
import warnings
import zipfile
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError, ManyhandsError
from manyhands.io import sources
from manyhands.io.documents import read_workbook
from manyhands.io.reading import read_export
from manyhands.io.sources import Source, open_path, unpack, zip_members

posix = pytest.mark.skipif(os.name != "posix", reason="names and kinds of files that Windows does not have")
TABLE = b"item,worker,label\n1,ann,cat\n2,ann,dog\n"


def zipped(members, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of names that come twice
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


@contextmanager
def peak_below(limit):
    """However it ends, the work within must not take more memory than that."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def members_of(content):
    return dict(zip_members(Source("x.zip", content=content)))


def lie_about_size(content, declared):
    """The same archive with another unpacked size in the header of its only member and in the directory."""
    content = bytearray(content)
    content[22:26] = struct.pack("<I", declared)
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", declared)
    return bytes(content)


@pytest.mark.parametrize(
    "name", ["votes.csv", "with space.csv", "[1].csv", "*.csv", "caf\u00e9.csv", "VOTES.CSV", "a?b.csv"]
)
@pytest.mark.parametrize("as_text", [True, False])
def test_a_path_is_taken_as_it_stands(tmp_path, name, as_text):
    """Spaces, other alphabets and what shells take for patterns are letters like any other."""
    (tmp_path / "1.csv").write_bytes(b"item,worker,label\n9,decoy,decoy\n")
    path = tmp_path / name
    path.write_bytes(TABLE)
    assert read_export(str(path) if as_text else path).annotations.classes.tolist() == ["cat", "dog"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere.csv", "nowhere.csv does not exist"),
        ("a\0b.csv", "cannot be opened"),
        ("x" * 5000, "cannot be opened"),
        (None, "cannot be opened"),
        (7, "cannot be opened"),
    ],
)
def test_what_is_no_path_is_refused_in_a_sentence(path, said):
    with pytest.raises(AnnotationError, match=said):
        read_export(path)


@posix
def test_a_named_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(AnnotationError, match="neither a file nor a folder"):
        read_export(tmp_path / "pipe.csv")
    (tmp_path / "votes.csv").write_bytes(TABLE)
    assert read_export(tmp_path).ledger.kept == 2


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_bytes(TABLE)
    path.chmod(0)
    with pytest.raises(AnnotationError, match=r"votes\.csv cannot be opened: Permission denied"):
        read_export(path)


def test_a_file_that_cannot_be_opened_is_named(tmp_path, monkeypatch):
    path = tmp_path / "votes.csv"
    path.write_bytes(TABLE)

    def refuse(self, mode):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(AnnotationError, match=r"votes\.csv cannot be opened: Permission denied"):
        read_export(path)


class TestFolders:
    def test_litter_links_and_loops_are_left_alone(self, tmp_path):
        folder = tmp_path / "export"
        (folder / "__MACOSX").mkdir(parents=True)
        (folder / "__MACOSX" / "votes.csv").write_bytes(b"litter")
        (folder / ".hidden.csv").write_bytes(b"litter")
        (folder / "votes.csv").write_bytes(TABLE)
        (folder / "again").symlink_to(folder, target_is_directory=True)
        (folder / "loop.csv").symlink_to(folder / "loop.csv")
        (tmp_path / "outside.csv").write_bytes(b"item,worker,label\n3,eve,emu\n")
        (folder / "out.csv").symlink_to(tmp_path / "outside.csv")
        assert list(open_path(folder)) == ["votes.csv"]

    def test_too_many_files(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sources, "MAX_FILES", 3)
        for at in range(4):
            (tmp_path / f"{at}.csv").write_bytes(TABLE)
        with pytest.raises(LimitError, match="more than 3 files"):
            open_path(tmp_path)

    def test_files_of_other_kinds(self, tmp_path):
        (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
        with pytest.raises(AnnotationError, match=r"photo\.png ends in '\.png'"):
            read_export(tmp_path)

    def test_nothing_in_it(self, tmp_path):
        with pytest.raises(AnnotationError, match="holds no files"):
            read_export(tmp_path)

    def test_a_folder_that_cannot_be_listed_is_not_passed_over(self, tmp_path, monkeypatch):
        """Files that are not seen must not go missing without a word."""

        def walk(folder, onerror):
            onerror(PermissionError(13, "Permission denied", "secret"))
            return iter(())

        monkeypatch.setattr(os, "walk", walk)
        with pytest.raises(AnnotationError, match="secret cannot be opened: Permission denied"):
            open_path(tmp_path)


class TestGzip:
    @pytest.mark.parametrize("name", ["votes.csv.gz", "votes.csv.GZ", "votes.csv"])
    def test_is_unpacked_whatever_it_is_called(self, tmp_path, name):
        (tmp_path / name).write_bytes(gzip.compress(TABLE))
        assert read_export(tmp_path / name).ledger.kept == 2

    def test_cut_off(self):
        with pytest.raises(AnnotationError, match="not a complete gzip file"):
            unpack(Source("a.gz", content=gzip.compress(TABLE)[:-9])).read()

    def test_with_a_wrong_sum(self):
        content = bytearray(gzip.compress(TABLE))
        content[-5] ^= 1
        with pytest.raises(AnnotationError, match="not a complete gzip file"):
            unpack(Source("a.gz", content=bytes(content))).read()

    def test_a_bomb_is_refused_before_it_is_unpacked_whole(self):
        bomb = gzip.compress(bytes(50 << 20))
        with peak_below(40 << 20), pytest.raises(LimitError, match=r"^a unpacks to more than the .* bytes"):
            unpack(Source("a.gz", content=bomb)).read()

    def test_twice(self):
        with pytest.raises(AnnotationError, match="gzipped twice"):
            unpack(Source("a.csv.gz.gz", content=gzip.compress(gzip.compress(TABLE)))).read()

    def test_of_a_folder_is_unpacked_when_it_is_read(self, tmp_path):
        """A file of ten megabytes that nobody asks for takes no memory, and one that is read is unpacked once."""
        for at in range(5):
            (tmp_path / f"{at}.csv.gz").write_bytes(gzip.compress(bytes(8 << 20)))
        (tmp_path / "empty.csv.gz").write_bytes(gzip.compress(b""))
        with peak_below(2 << 20):
            members = open_path(tmp_path)
            assert [bool(member.size) for member in members.values()] == [True] * 5 + [False]
        one = members["0.csv.gz"]
        assert one.read() is one.read() and one.size == 8 << 20 and one.name.endswith("0.csv")

    def test_a_folder_of_bombs(self, tmp_path, monkeypatch):
        """Each of them is small enough; all of them together are not."""
        monkeypatch.setattr(sources, "MAX_BYTES", 20 << 20)
        for at in range(3):
            (tmp_path / f"{at}.csv.gz").write_bytes(gzip.compress(bytes(8 << 20)))
        members = list(open_path(tmp_path).values())
        assert [len(member.read()) for member in members[:2]] == [8 << 20] * 2
        with pytest.raises(LimitError, match=r"2\.csv unpacks to more than the 4,194,304 bytes"):
            members[2].read()


class TestZip:
    def test_is_read_like_a_folder(self, tmp_path):
        members = [("a/1.csv", TABLE), ("a/2.csv", b"item,worker,label\n1,bob,cat\n"), ("__MACOSX/a/1.csv", b"\0")]
        (tmp_path / "x.zip").write_bytes(zipped(members))
        assert read_export(tmp_path / "x.zip").ledger.kept == 3

    @pytest.mark.parametrize(
        "name",
        ["/etc/passwd", "../x.csv", "a/../../x.csv", "C:/x.csv", "C:x.csv", "\\\\host\\x.csv", "..\\x.csv", "\\x.csv"],
    )
    def test_names_that_lead_out(self, name):
        with pytest.raises(AnnotationError, match="leads out of it"):
            members_of(zipped([(name, TABLE)]))

    def test_a_name_with_a_nul(self):
        content = zipped([("votes.csv_/../../x", TABLE)]).replace(b"votes.csv_", b"votes.csv\0")
        with pytest.raises(AnnotationError, match="leads out of it"):
            members_of(content)

    def test_a_link(self):
        link = zipfile.ZipInfo("votes.csv")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        with pytest.raises(AnnotationError, match="leads out of it"):
            members_of(zipped([(link, "/etc/passwd")]))

    def test_a_colon_in_a_time_is_no_drive(self):
        name = "annotations/worker-response/iteration-1/0/2026-01-05_09:10:00.json"
        assert list(members_of(zipped([(name, b"{}")]))) == [name]

    def test_a_name_that_comes_twice(self):
        """Which of the two is read would be a matter of luck."""
        with pytest.raises(AnnotationError, match=r"two members called 'a\.csv'"):
            members_of(zipped([("a.csv", TABLE), ("a.csv", b"")]))

    def test_a_zip_within_a_zip(self):
        with pytest.raises(AnnotationError, match="a zip within a zip"):
            members_of(zipped([("inner.zip", zipped([("a.csv", TABLE)]))]))

    def test_a_password(self):
        content = bytearray(zipped([("a.csv", TABLE)]))
        content[6] |= 1
        content[content.index(b"PK\x01\x02") + 8] |= 1
        with pytest.raises(AnnotationError, match="protected by a password"):
            members_of(bytes(content))

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_ways_of_packing_that_cannot_be_bounded(self, method):
        with pytest.raises(AnnotationError, match="compressed by an unsupported method"):
            members_of(zipped([("a.csv", TABLE)], method))

    def test_a_bomb_by_ratio(self):
        with pytest.raises(LimitError, match="100 times its size"):
            members_of(zipped([("a.csv", bytes(20 << 20))]))

    def test_repetitive_text_below_the_bound_is_no_bomb(self):
        assert len(members_of(zipped([("a.csv", bytes(5 << 20))]))["a.csv"].read()) == 5 << 20

    def test_a_bomb_by_members(self):
        with pytest.raises(LimitError, match="10,001 members"):
            members_of(zipped([(f"{at}.csv", b"") for at in range(10_001)]))

    def test_a_bomb_by_declared_size(self):
        with pytest.raises(LimitError, match="4,000,000,000 bytes"):
            members_of(lie_about_size(zipped([("a.csv", TABLE)]), 4_000_000_000))

    def test_a_bomb_that_hides_its_size(self):
        """A member that unpacks to more than it declares is found out without unpacking the rest."""
        bomb = lie_about_size(zipped([("a.csv", bytes(200 << 20))]), 1000)
        with peak_below(20 << 20), pytest.raises(AnnotationError, match=r"'a\.csv' cannot be unpacked"):
            members_of(bomb)

    def test_a_bomb_of_gzipped_members(self, tmp_path):
        """Each member is within the limits, as is the archive that holds them packed; what they hold is not."""
        member = gzip.compress(bytes(6 << 20))
        (tmp_path / "x.zip").write_bytes(zipped([(f"{at}.csv.gz", member) for at in range(20)]))
        with peak_below(30 << 20), pytest.raises(LimitError, match=r"x\.zip/1\.csv unpacks to more than the .* bytes"):
            for source in open_path(tmp_path / "x.zip").values():
                source.read()

    def test_a_bomb_in_two_wrappings(self, tmp_path):
        """The limit is one for the file as it came, not one for each layer."""
        archive = zipped([("a.csv", bytes(6 << 20))], zipfile.ZIP_STORED)
        assert list(members_of(archive)) == ["a.csv"]
        (tmp_path / "x.zip.gz").write_bytes(gzip.compress(archive))
        with pytest.raises(LimitError, match=r"x\.zip unpacks to more than the .* bytes"):
            open_path(tmp_path / "x.zip.gz")

    def test_a_workbook_in_an_archive_counts_as_well(self):
        book = zipped([("xl/workbook.xml", bytes(6 << 20))])
        members = members_of(zipped([("a.xlsx", book), ("b.xlsx", book)]))
        for name, said in (("a.xlsx", "cannot be read as an XLSX"), ("b.xlsx", "unpacks to more than the .* bytes")):
            with pytest.raises(ManyhandsError, match=said):
                read_workbook(members[name])

    def test_gzipped_members_are_read(self, tmp_path):
        (tmp_path / "x.zip").write_bytes(zipped([("1.csv.gz", gzip.compress(TABLE))]))
        assert read_export(tmp_path / "x.zip").ledger.kept == 2

    @pytest.mark.parametrize("keep", [4, 30, 60, -1, -10, -30])
    def test_cut_off(self, keep):
        with pytest.raises(AnnotationError, match=r"not a complete zip file|cannot be unpacked"):
            members_of(zipped([("a.csv", TABLE * 20)])[:keep])

    def test_empty(self, tmp_path):
        (tmp_path / "x.zip").write_bytes(zipped([]))
        with pytest.raises(AnnotationError, match="holds no files"):
            read_export(tmp_path / "x.zip")

    def test_any_single_damage(self):
        """Whichever byte is changed, the archive is read or refused in a sentence."""
        content = zipped([("a.csv", TABLE)])
        refused = 0
        for at in range(len(content)):
            for change in (0x01, 0xFF):
                damaged = content[:at] + bytes([content[at] ^ change]) + content[at + 1 :]
                try:
                    members_of(damaged)
                except ManyhandsError:
                    refused += 1
        assert refused > len(content) // 2


@pytest.mark.parametrize("suffix", [".xlsx", ".parquet", ".zip", ".gz"])
def test_a_name_that_promises_something_else(tmp_path, suffix):
    """A table that was given another name, or a download that is a page of HTML."""
    path = tmp_path / f"votes{suffix}"
    path.write_bytes(TABLE)
    with pytest.raises(AnnotationError, match=rf"its content is not that of a \{suffix} file"):
        read_export(path)


@pytest.mark.parametrize("wrap", [bytes, gzip.compress, lambda table: zipped([("a.csv", table)])])
def test_standard_input_is_opened_like_a_file(monkeypatch, wrap):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(wrap(TABLE))))
    assert read_export("-", format="long").ledger.kept == 2


def test_batches_of_one_job(tmp_path):
    (tmp_path / "1.csv").write_bytes(TABLE)
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(b"item,worker,label\n1,bob,cat\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        assert read_export([tmp_path / "1.csv", tmp_path / "2.csv.gz"]).ledger.kept == 3
