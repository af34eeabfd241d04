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
    text = json.dumps(description, sort_keys=True)
    header = {"kind": kind, "format": str(FORMAT), "description": text, "sha256": _digest(owned, text)}
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            stream.write(save(owned, metadata=header))
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
            header = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise FileError(f"{path}: not a readable {kind} file, it is cut or damaged ({error})") from error
    if header.get("kind") != kind:
        raise FileError(f"{path}: not a {kind} file of tfgw")
    if not header.get("format", "").isdigit() or int(header["format"]) > FORMAT:
        raise FileError(f"{path}: written in format {header.get('format')}, this version reads up to format {FORMAT}")
    text = header.get("description", "")
    if header.get("sha256") != _digest(tensors, text):
        raise FileError(f"{path}: damaged, its checksum does not fit its content")
    return tensors, json.loads(text)


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
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
