"""ICED: truth inference and synthetic minority samples for imbalanced crowd labels."""
