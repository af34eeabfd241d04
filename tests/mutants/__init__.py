"""Mutation tests: small changes of the code that decides results, each of which some test must notice.

``make mutants`` runs a fixed sample. ``CONTRIBUTING.md`` has the score.

mutations (what is changed) ─ modules (where, and which tests look at it) ─▶ python ─▶ build/mutants/python.jsonl
"""
