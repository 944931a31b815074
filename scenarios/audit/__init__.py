"""The paper's statements and tables, recomputed one by one: operators, and figures."""
