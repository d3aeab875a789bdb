"""Truth inference without features: one file per method."""
