"""A small job out of core: its command, and the files that it writes."""

LIMIT = "500MB"
FILES = ["labels.csv", "labels.jsonl", "labels.parquet", "workers.csv"]


def contents(folder, names=FILES):
    """Bytes of files by name."""
    return {name: (folder / name).read_bytes() for name in names}


def command(votes, folder):
    """A run out of core."""
    options = ["-m", "pooled-dawid-skene", "--write", "jsonl", "--write", "parquet", "--max-memory", LIMIT, "-q"]
    return ["aggregate", str(votes / "votes.parquet"), *options, "-o", f"{folder}/out"]
