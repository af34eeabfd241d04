"""Mutation tests: small changes of the code that decides results, each of which some test must notice.

``make mutants`` runs a fixed sample of the Python ones and all of the C++ ones. ``CONTRIBUTING.md`` has the score.

mutations (what is changed) ─ modules (where) ─ covering_tests (by which) ─▶ python ─▶ build/mutants/python.jsonl
cpp_decisions (what is changed) ─ changed_core (the extension that tests import) ─▶ cpp ─▶ build/mutants/cpp.jsonl
"""
