"""CrowdInG: generative imputation of missing annotations."""
