"""Atomic writing: files appear complete or not at all, and the files of one run all together.

checks        checks of the output folder before any work begins
locks         one writer at a time; the lock ends with the process that holds it
staged_files  files that are written piece by piece, because they are too large for memory
staging       files are written to a temporary folder, then moved into place; interrupted runs are completed or removed
manifest      which files belong to which run, with their sizes and checksums
output        Output: the place of a run's files, locked from the beginning of the run to its end
"""

from manyhands.writing.checks import refuse_present, refuse_unwritable
from manyhands.writing.manifest import MANIFEST, verify_folder
from manyhands.writing.output import Output, claim, write_files
from manyhands.writing.staged_files import StagedFile, StagedFiles

__all__ = [
    "MANIFEST",
    "Output",
    "StagedFile",
    "StagedFiles",
    "claim",
    "refuse_present",
    "refuse_unwritable",
    "verify_folder",
    "write_files",
]
