"""Results as tables, files and imports for other tools."""
