"""What scenarios share.

scenario        what a scenario is and what it returns: parts, conditions, tables, figures
runner, pages   running one, resuming it, and writing its data and pages
plots           the usual pictures as SVG text
association     rank association, permutations, bootstrap, prediction
timing          two pieces of work side by side, and the table of a benchmark
typed_fields    the paper's synthetic fields with known truth, and decoders on them
hostile_fields, large_supports   families of fields that are hard on floating point, or large
designs         the ten operator designs on four nodes
exact_elimination, sealing       oracles: exact semidefiniteness; digests for forged documents
rough_server    a chat server that behaves as badly as real ones do
"""
