"""One file that holds tensors and a JSON description, written whole or not at all, and never unpickled.

The file is in the safetensors format, with a checksum of all it holds: a file that was cut, damaged, or
written by a later version is refused with one sentence.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

FORMAT = 1


class FileError(ValueError):
    """A file that cannot be used, and why."""


def write_tensors(path: Path, tensors: dict[str, Tensor], description: dict[str, Any], *, kind: str) -> None:
    """Write a file of the given ``kind``; one that is already there is replaced in a single step."""
    owned = {key: tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()}
    header = {"kind": kind, "format": FORMAT, "description": description, "sha256": _digest(owned, description)}
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            stream.write(save(owned, metadata={"tfgw": json.dumps(header)}))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def read_tensors(path: Path, *, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and description of a file that :func:`write_tensors` wrote.

    Raises:
        FileError: If there is no such file, or it is of another kind, cut, damaged, or from a later version.
    """
    if not path.is_file():
        raise FileError(f"{path}: there is no such file")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("tfgw", "{}"))
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise FileError(f"{path}: not a readable {kind} file, it is cut or damaged ({error})") from error
    if header.get("kind") != kind:
        raise FileError(f"{path}: not a {kind} file of tfgw")
    if header["format"] > FORMAT:
        raise FileError(f"{path}: has format {header['format']}, this version reads up to {FORMAT}")
    if header["sha256"] != _digest(tensors, header["description"]):
        raise FileError(f"{path}: damaged, its checksum does not fit its content")
    return tensors, header["description"]


def _digest(tensors: dict[str, Tensor], description: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for key in sorted(tensors):
        tensor = tensors[key]
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    """A rename survives a power cut only once its folder is on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
