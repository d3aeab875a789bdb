"""Write a CSV of 10,000 labels with text ids: python benchmarks/small.py FILE."""

import sys
from pathlib import Path

from data import make_triples

rows = (f"item-{i},worker-{w},class-{c}\n" for i, w, c in zip(*make_triples(10_000, 4)))
Path(sys.argv[1]).write_text("task,worker,label\n" + "".join(rows))
