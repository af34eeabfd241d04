"""The paper's eight datasets of the TU collection: names, aliases and checksums."""

ALIASES = {
    "PTC": "PTC_MR",
    "PROTEIN": "PROTEINS_full",
    "IMDB-B": "IMDB-BINARY",
    "IMDB-M": "IMDB-MULTI",
}

# Checksums of the unpacked tables (ZipFiles.content_digest), which do not depend on the compression.
CONTENT_SHA256 = {
    "MUTAG": "3605b2426dc78271dfefc036264f7eae15804a80f62bf116e63837218baaacd7",
    "PTC_MR": "8791c90727c8a647246542076f81920709d3694dfddb7d811926ec7710f37971",
    "ENZYMES": "085f828f99b2074d62062a3e54792d365ac5b8d9898444ffaa7eb9c7b47f02ed",
    "PROTEINS_full": "e2bfb68f8672258fbb31c443f4ebcfa0617db2ccedc4c9616a7f3ea382f6a312",
    "NCI1": "113bca0bcae85696cd5b0de8e1f7802eeab109ce66eaf718a04f07e1f4aec225",
    "IMDB-BINARY": "f4200e6a4dc276874ab6166f1a8cf069cfbc66f5501b7b40c3cf92dfc341e090",
    "IMDB-MULTI": "287a2c98895bd2933d9c237a194bdabce35f142db574850bc2c8c5a4f9e792d3",
    "COLLAB": "b42f71d73efa4cfa693d529b5c57348f0a96f90cab763436229e237b315d74a6",
}


def full_name(name: str) -> str:
    """Return the name of a dataset in the TU collection; resolves the short names of the paper."""
    return ALIASES.get(name, name)
