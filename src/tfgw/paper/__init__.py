"""The paper's experiments: tables and figures as data, run cell by cell, resumable.

experiment (TOML) ─ plan ─▶ series ─▶ cells ─ engine ─▶ work ─▶ records ─▶ tables, figures
"""
