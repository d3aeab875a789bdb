"""From files to Annotations, and back."""
