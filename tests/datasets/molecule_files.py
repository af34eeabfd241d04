"""Tables of molecules that tests write: aromatic ones and others, of 1 to 13 atoms."""

import csv
import random
from pathlib import Path
from typing import Any

RINGS = ["c1ccccc1", "c1ccncc1", "c1ccsc1", "C1CCCCC1", "C1CCOC1", "C1CCNCC1", "C"]
LINKS = ["C", "CC", "CO", "C=C", "C(=O)N", ""]
ENDS = ["C", "O", "N", "F", "Cl", "Br", "OC", "N#C", "OC(=O)"]


def molecules(count: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Rows with the columns of the tables below; molecules are made of an end, a link and a ring."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        ring = rng.choice(RINGS)
        smiles = rng.choice(ENDS) + rng.choice(LINKS) + ring
        rows.append({"name": f"mol-{number}", "SMILES": smiles, "aromatic": int("c" in ring), "size": len(smiles) / 4})
    return rows


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path
