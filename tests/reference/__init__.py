"""Reference implementations: the same quantities as the fast code, in plain loops over lists, close to the formulas."""
