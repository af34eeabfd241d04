"""The paper's experiments: tables and figures as data, run cell by cell and resumable.

experiment (TOML) ─ plan ─▶ series ─ protocol ─▶ cells ─ runner, engine ─▶ run_cell ─▶ records ─▶ tables, figures
"""
