"""Expectation maximisation: the driver, the compiled pass, priors, starts and decisions."""
