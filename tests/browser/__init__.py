"""Tests in a browser; they run in an environment of their own (make test-browser)."""
