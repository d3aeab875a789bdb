"""From an export to Annotations."""
