"""Noise that is not independent, held to its definition."""
