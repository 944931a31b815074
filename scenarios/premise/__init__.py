"""The premise "at most k answers are wrong", held against recorded answers of real models: cells, prediction, judges."""
