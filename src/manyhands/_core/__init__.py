"""What every other package builds on: arrays, codes of ids, seeds, progress, memory, files within limits and whole."""
