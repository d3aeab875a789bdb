"""Features of items: reading, pipelines, model folders."""
