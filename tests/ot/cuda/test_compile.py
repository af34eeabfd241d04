"""Machine code of the kernels: compiled by units side by side, once, and found again."""

import lzma
import shutil
import time
import tomllib
from concurrent.futures import wait
from pathlib import Path

import pytest

from tests.ot.cuda.compiler_stand_in import Compiler, install
from tfgw.ot.backends.cuda import compile, driver, kernels, machine_code
from tfgw.ot.backends.cuda.compile import SOURCES, Architecture, compile_unit
from tfgw.ot.backends.cuda.machine_code import compile_ahead, shipped_name
from tfgw.ot.backends.cuda.precompile import main as precompile
from tfgw.ot.backends.cuda.units import LAYERS, UNITS, unit_of, units_of

HOPPER = Architecture(90)
SOLVE = unit_of("tfgw_solve")


def test_units_are_all_files_and_each_kernel_is_in_one() -> None:
    assert {f"{unit.name}.cu" for unit in (*UNITS, LAYERS)} == {file.name for file in SOURCES.glob("*.cu")}
    for unit in (*UNITS, LAYERS):
        text = (SOURCES / f"{unit.name}.cu").read_text()
        assert text.count("TFGW_KERNEL(") == len(unit.kernels)
        assert all(text.count(f" {name}(") + text.count(f"\n{name}(") == 1 for name in unit.kernels)


def test_units_of_a_size_class_are_compiled_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code.os, "cpu_count", lambda: 16)
    machine_code._threads.cache_clear()
    compiler = install(monkeypatch, Compiler(seconds=1.0), tmp_path)
    code = machine_code.machine_code(SOLVE, 32, HOPPER)
    assert code == b"cubin solve.cu -DTFGW_COLUMNS=32 -arch=sm_90"
    for future in compile_ahead(32, HOPPER).values():
        future.result()
    assert compiler.at_a_time == len(units_of(32, several=False)) == 6
    assert sorted(compiler.compiled) == sorted(f"{unit.name}.cu" for unit in UNITS if not unit.several)
    assert compiler.is_clean
    machine_code._threads.cache_clear()


def test_larger_templates_have_no_kernels_of_small_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = install(monkeypatch, Compiler(), tmp_path)
    for future in compile_ahead(64, HOPPER).values():
        assert b"-DTFGW_COLUMNS=64" in future.result()
    assert sorted(compiler.compiled) == ["backward.cu", "prepare.cu", "solve.cu", "start.cu"]


def test_units_of_several_starts_are_compiled_only_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = install(monkeypatch, Compiler(), tmp_path)
    machine_code.machine_code(unit_of("tfgw_starts_product"), 32, HOPPER)
    for future in compile_ahead(32, HOPPER, several=True).values():
        future.result()
    assert sorted(compiler.compiled) == ["starts.cu", "starts_begin.cu", "starts_small.cu"]


def test_what_was_compiled_is_found_by_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Compiler(), tmp_path)
    before = {unit: future.result() for unit, future in compile_ahead(16, HOPPER).items()}
    compiler = install(monkeypatch, Compiler(), tmp_path)
    assert {unit: future.result() for unit, future in compile_ahead(16, HOPPER).items()} == before
    assert compiler.compiled == []


@pytest.mark.parametrize("change", ["source", "compiler", "architecture", "size class"])
def test_code_of_other_sources_or_compilers_is_not_taken(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, Compiler(), tmp_path)
    machine_code.machine_code(SOLVE, 16, HOPPER)
    compiler = install(monkeypatch, Compiler(version=(13, 1) if change == "compiler" else (13, 0)), tmp_path)
    if change == "source":
        sources = Path(shutil.copytree(SOURCES, tmp_path / "sources"))
        (sources / "rules.cuh").write_text((sources / "rules.cuh").read_text() + "// changed\n")
        monkeypatch.setattr(compile, "SOURCES", sources)
        compile.source_digest.cache_clear()
    try:
        columns, architecture = 32 if change == "size class" else 16, 80 if change == "architecture" else 90
        machine_code.machine_code(SOLVE, columns, Architecture(architecture))
    finally:
        compile.source_digest.cache_clear()
    assert "solve.cu" in compiler.compiled


def test_a_folder_that_cannot_be_written_to_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Compiler(), tmp_path)
    (tmp_path / "tfgw").write_text("a file where the folder should be")
    assert machine_code.machine_code(SOLVE, 16, HOPPER).startswith(b"cubin solve.cu")


def test_an_error_is_told_with_its_file_and_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = install(monkeypatch, Compiler(), tmp_path)
    compiler.broken = {"solve.cu"}
    with pytest.raises(RuntimeError, match=r"solve\.cu: expected a ';'"):
        machine_code.machine_code(SOLVE, 16, HOPPER)
    wait(machine_code._begun[16, HOPPER, False].values())
    assert compiler.is_clean
    compiler.broken = set()
    assert machine_code.machine_code(SOLVE, 16, HOPPER).startswith(b"cubin solve.cu")


@pytest.mark.parametrize(("gpu", "option"), [(90, "-arch=sm_90"), (86, "-arch=sm_86"), (103, "-arch=compute_100")])
def test_gpus_later_than_the_compiler_get_ptx(
    gpu: int, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, Compiler(), tmp_path)
    code = compile_unit(SOLVE, 16, Architecture(gpu))
    assert option.encode() in code
    assert code.startswith(b"ptx") == ("compute" in option)


def test_files_of_the_package_come_first_and_need_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Compiler(), tmp_path)
    assert precompile(["--architectures", "80", "90", "--classes", "16", "--output", str(tmp_path / "shipped")]) == 0
    monkeypatch.setattr(compile, "load_nvrtc", lambda: pytest.fail("no compiler is needed"))
    for gpu, found in ((90, 90), (80, 80), (89, 80)):  # those of a generation run on its later ones
        code = machine_code.machine_code(SOLVE, 16, Architecture(gpu))
        assert code == f"cubin solve.cu -DTFGW_COLUMNS=16 -arch=sm_{found}".encode()
    assert machine_code.shipped(SOLVE, 16, Architecture(100)) is None
    assert machine_code.shipped(SOLVE, 32, HOPPER) is None


def test_packages_take_these_files_along() -> None:
    root = SOURCES.parents[3]
    with (root / "pyproject.toml").open("rb") as file:
        (included,) = tomllib.load(file)["tool"]["scikit-build"]["sdist"]["include"]
    path = machine_code.SHIPPED / shipped_name(SOLVE, 16, HOPPER)
    assert path.relative_to(root).match(included)


def test_earlier_drivers_take_no_files_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = install(monkeypatch, Compiler(), tmp_path)
    assert precompile(["--architectures", "90", "--classes", "16", "--output", str(tmp_path / "shipped")]) == 0
    compiler.compiled.clear()
    monkeypatch.setattr(driver, "version", lambda: (12, 9))
    assert machine_code.machine_code(SOLVE, 16, HOPPER).startswith(b"cubin")
    assert "solve.cu" in compiler.compiled


def test_files_of_a_package_are_made_by_one_version_of_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, Compiler(version=(13, 4)), tmp_path)
    with pytest.raises(SystemExit):
        precompile(["--architectures", "90", "--classes", "16", "--output", str(tmp_path / "shipped")])
    assert "needs NVRTC 13.0, found 13.4" in capsys.readouterr().err


def test_files_of_other_sources_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = install(monkeypatch, Compiler(), tmp_path)
    path = tmp_path / "shipped" / shipped_name(SOLVE, 16, HOPPER)
    path.parent.mkdir()
    path.with_name(path.name.replace(compile.source_digest(), 16 * "0")).write_bytes(lzma.compress(b"old"))
    assert machine_code.machine_code(SOLVE, 16, HOPPER).startswith(b"cubin")
    assert "solve.cu" in compiler.compiled


@pytest.mark.parametrize(("patience", "announced"), [(0.01, True), (60.0, False)])
def test_a_user_is_told_what_takes_long(
    patience: float, announced: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def slowly(*_: object) -> bytes:
        time.sleep(0.2)
        return b"code"

    monkeypatch.setattr(kernels, "machine_code", slowly)
    monkeypatch.setattr(kernels, "PATIENCE", patience)
    monkeypatch.setattr(kernels, "architecture_of", lambda device: HOPPER)
    monkeypatch.setattr(driver, "load_module", len)
    kernels._announce.cache_clear()
    for unit in (SOLVE, unit_of("tfgw_start")):  # of one size class: told once
        assert kernels._module.__wrapped__(0, unit, 32) == len(b"code")
    text = "tfgw: compiling the GPU kernels for templates of up to 32 nodes, once"
    assert [record.getMessage() for record in caplog.records] == ([text] if announced else [])
