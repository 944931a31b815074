"""Machinery of `data-set-promises`: recorded answers as codes, random splits into pilot and rest, baselines, simulated coverage."""
