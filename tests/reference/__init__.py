"""Slow twins: the same sums as the fast code, in plain loops over plain lists, to be read beside the formulas."""
