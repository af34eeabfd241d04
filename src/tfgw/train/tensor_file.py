"""Files with tensors and a JSON description, written atomically and never unpickled.

The files are in safetensors format with a checksum of the whole content. A file that is truncated, damaged, or written
by a later version is rejected with a clear message.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from tfgw.datasets.paths import written_whole

FORMAT = 1


class FileError(ValueError):
    """A file cannot be used; the message gives the reason."""


def write_tensors(path: Path, tensors: dict[str, Tensor], description: dict[str, Any], *, kind: str) -> None:
    """Write a file of the given ``kind``, atomically replacing an existing one."""
    owned = {key: tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()}
    header = {"kind": kind, "format": FORMAT, "description": description, "sha256": content_digest(owned, description)}
    with written_whole(path) as temporary:
        temporary.write_bytes(save(owned, metadata={"tfgw": json.dumps(header)}))


def read_tensors(path: Path, *, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read tensors and description from a file written by :func:`write_tensors`.

    Raises:
        FileError: If the file is missing, truncated, damaged, of another kind, or from a later version.
    """
    if not path.is_file():
        raise FileError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("tfgw", "{}"))
            # Copy, because get_tensor returns mapped memory, which becomes invalid if the file is overwritten.
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise FileError(f"{path}: not a readable {kind} file; it is truncated or damaged ({error})") from error
    if not isinstance(header, dict) or header.get("kind") != kind:
        raise FileError(f"{path}: not a {kind} file of tfgw")
    version, description = header.get("format"), header.get("description")
    if isinstance(version, int) and version > FORMAT:
        raise FileError(f"{path}: has format {version}, but this version of tfgw reads formats up to {FORMAT}")
    if not isinstance(version, int) or not isinstance(description, dict):
        raise FileError(f"{path}: not a {kind} file of tfgw; its description is missing")
    if header.get("sha256") != content_digest(tensors, description):
        raise FileError(f"{path}: damaged; its checksum does not match its content")
    return tensors, description


def content_digest(tensors: dict[str, Tensor], description: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for key in sorted(tensors):
        tensor = tensors[key]
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
