"""Worked examples of the paper as cases: a computed number beside the stated one."""
