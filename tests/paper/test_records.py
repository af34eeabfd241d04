"""Records: found again, whole, once, whoever else reads and writes, and whoever is killed."""

import json
import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.paper.small import cell, in_process
from tfgw.paper.cells import Cell
from tfgw.paper.changes import supersedes
from tfgw.paper.records import Record, Records


def record(cell: Cell, status: str = "done") -> Record:
    return {"cell": cell.as_dict(), "status": status, "run": {"seconds": 1.5}}


def test_equal_cells_have_equal_keys_and_others_not() -> None:
    same = cell(configuration={"width": 3, "epochs": 2}).key
    assert cell(configuration={"epochs": 2, "width": 3}).key == same
    changes = [
        {"dataset": "NCI1"},
        {"model": "a.b:D"},
        {"configuration": {"width": 3, "epochs": 3}},
        {"protocol": "paper"},
        {"split_seed": 1},
        {"fold": 1},
        {"seed": 1},
        {"grouped": True},
        {"splits": "0a"},
        {"collect": "embedding"},
    ]
    keys = {cell(**({"configuration": {"width": 3, "epochs": 2}} | change)).key for change in changes}
    assert len(keys | {same}) == len(changes) + 1


def test_a_key_is_the_same_in_every_version() -> None:
    """Or nobody would find the records of an earlier one."""
    assert cell().key == "MUTAG/C/6cb07275903209229c82"
    assert cell(dataset="/data/MUTAG.zip").group == "MUTAG/C"
    assert (cell(graphs=7).key != cell().key, cell(graphs=None).key) == (True, cell().key)


def test_all_of_some_cells_are_done_or_not(tmp_path: Path) -> None:
    records, cells = Records(tmp_path), [cell(fold=fold) for fold in range(3)]
    assert records.all_done([]) == []
    for one in cells[:2]:
        records.put(record(one))
    assert records.all_done(cells) is None
    assert records.all_done(cells[:2]) == [record(one) for one in cells[:2]]
    records.put(record(cells[1], "failed"))
    assert records.all_done(cells[:2]) is None


def test_packed_records_are_the_same(tmp_path: Path) -> None:
    records = Records(tmp_path)
    cells = [cell(dataset=dataset, fold=fold) for dataset in ("MUTAG", "NCI1") for fold in range(3)]
    for one in cells:
        records.put(record(one))
    before = list(records)
    assert records.pack() == len(before) == 6
    assert list(Records(tmp_path)) == before
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [".lock", "C.jsonl", "C.jsonl"]
    records.put(record(cells[4], "failed"))  # a newer record stands
    assert Records(tmp_path).get(cells[4])["status"] == "failed"
    assert len(list(Records(tmp_path))) == 6
    assert records.pack() == 6
    assert Records(tmp_path).get(cells[4])["status"] == "failed"
    assert Records(tmp_path).get(cell(fold=7)) is None


def test_a_pack_keeps_the_lines_of_older_records(tmp_path: Path) -> None:
    """Even those from before there were checksums, so that new records are the only change."""
    old = json.dumps(record(cell(fold=1)))
    (tmp_path / "MUTAG").mkdir()
    (tmp_path / "MUTAG" / "C.jsonl").write_text(f"{old}\n")
    records = Records(tmp_path)
    assert records.pack() == 1
    records.put(record(cell(fold=2)))
    assert records.pack() == 2
    lines = (tmp_path / "MUTAG" / "C.jsonl").read_text().splitlines()
    assert old in lines
    assert len(lines) == 2
    assert list(Records(tmp_path)) == list(records)


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(tmp_path)
    records.put(record(cell()))

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "rename", fail)
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        records.put(record(cell(), "failed"))
    assert Records(tmp_path).get(cell())["status"] == "done"
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_records_of_another_machine(tmp_path: Path) -> None:
    """A finished record replaces a failed one; otherwise, those of this folder are kept."""
    here, there = Records(tmp_path / "here"), Records(tmp_path / "there")
    for fold, status in enumerate(["done", "failed"]):
        here.put(record(cell(fold=fold), status) | {"where": "here"})
    for fold in range(3):
        there.put(record(cell(fold=fold)) | {"where": "there"})
    there.pack()
    here.merge_from(Records(tmp_path / "there"), supersedes)
    assert [here.get(cell(fold=fold))["where"] for fold in range(3)] == ["here", "there", "there"]


def test_a_pack_made_by_another_process_is_seen(tmp_path: Path) -> None:
    """A run reads records while somebody packs them."""
    run, other = Records(tmp_path), Records(tmp_path)
    run.put(record(cell(fold=0)))
    assert run.get(cell(fold=5)) is None  # it knows that there is no pack
    other.put(record(cell(fold=1)))
    other.pack()
    assert run.get(cell(fold=0)) == run.get(cell(fold=0)) == record(cell(fold=0))
    assert run.get(cell(fold=1)) == record(cell(fold=1))
    assert len(list(run)) == 2


def test_a_record_that_is_written_during_a_pack_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process retries a failed cell: its record waits for the pack, and is not removed with the old one."""
    records = Records(tmp_path)
    records.put(record(cell(), "failed"))
    replace, writers = Path.replace, []

    def slow(self: Path, target: Path) -> Path:
        if not writers and target.suffix == ".jsonl":
            writers.append(in_process(lambda: Records(tmp_path).put(record(cell()))))
            time.sleep(0.2)  # long enough for a writer that does not wait
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", slow)
    records.pack()
    assert os.waitpid(writers[0], 0)[1] == 0
    assert Records(tmp_path).get(cell())["status"] == "done"


def test_damage_costs_one_record_and_names_its_place(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for fold in range(4):
        records.put(record(cell(fold=fold)))
    records.pack()
    (pack,) = tmp_path.rglob("*.jsonl")
    lines = pack.read_text().splitlines()
    pack.write_text("\n".join([lines[0], lines[1][:40], *lines[2:]]) + "\n")
    records.put(record(cell(fold=9)))
    (loose,) = tmp_path.rglob("*.json")
    loose.write_text('{"cell": {}, "status": "done"}')
    with pytest.warns(UserWarning, match="ignored, because it is not a valid record") as told:
        assert len(list(Records(tmp_path))) == 3
    texts = [str(warning.message) for warning in told]
    assert any(f"{pack}, line 2: ignored" in text for text in texts)
    assert any(f"{loose}: ignored" in text for text in texts)


def test_a_byte_that_is_no_text_costs_one_record(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for fold in range(3):
        records.put(record(cell(fold=fold)))
    records.pack()
    (pack,) = tmp_path.rglob("*.jsonl")
    lines = pack.read_bytes().split(b"\n")
    pack.write_bytes(b"\n".join([lines[0], lines[1].replace(b"fair", b"f\xffir"), *lines[2:]]))
    with pytest.warns(UserWarning, match="line 2: ignored, because it is not a valid record"):
        assert len(list(Records(tmp_path))) == 2


def test_a_file_with_the_record_of_another_cell_is_left_out(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.put(record(cell(fold=1)))
    (loose,) = tmp_path.rglob("*.json")
    loose.rename(tmp_path / f"{cell(fold=2).key}.json")
    with pytest.warns(UserWarning, match="ignored, because it is the record of another cell"):
        assert Records(tmp_path).get(cell(fold=2)) is None


@pytest.mark.parametrize(("before", "after"), [('"seconds": 1.5', '"seconds": 1.7'), ('"fold": 1', '"fold": 2')])
@pytest.mark.parametrize("packed", [False, True])
def test_another_digit_is_noticed(tmp_path: Path, before: str, after: str, packed: bool) -> None:
    records = Records(tmp_path)
    for fold in (0, 1):
        records.put(record(cell(fold=fold)))
    if packed:
        records.pack()
    changed = [path for path in tmp_path.rglob("*.json*") if before in path.read_text()]
    changed[-1].write_text(changed[-1].read_text().replace(before, after, 1))
    with pytest.warns(UserWarning, match="the checksum does not match"):
        found = [one["cell"]["fold"] for one in Records(tmp_path)]
    assert len(found) == 1
    assert 2 not in found


def test_a_record_without_a_checksum_is_read(tmp_path: Path) -> None:
    """As older versions wrote them; a pack adds it."""
    one, records = cell(fold=3), Records(tmp_path)
    for path in (tmp_path / f"{one.key}.json", tmp_path / f"{one.group}.jsonl"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record(one)) + "\n")
        assert Records(tmp_path).get(one) == record(one)
        path.unlink()
    (tmp_path / f"{one.key}.json").write_text(json.dumps(record(one)))
    assert records.pack() == 1
    (pack,) = tmp_path.rglob("*.jsonl")
    assert len(json.loads(pack.read_text())["checksum"]) == 16
    assert list(Records(tmp_path)) == [record(one)]


def test_a_status_that_nobody_writes_is_no_record(tmp_path: Path) -> None:
    Records(tmp_path).put(record(cell(), "running"))
    with pytest.warns(UserWarning, match="not a valid record .*unknown status 'running'"):
        assert Records(tmp_path).get(cell()) is None


@pytest.mark.parametrize(
    "change", [{"model": "m:../../outside"}, {"model": "m:"}, {"dataset": "."}, {"model": "m:a/b"}]
)
def test_a_record_stays_in_its_folder(tmp_path: Path, change: dict[str, str]) -> None:
    foreign = record(cell(**change))
    with pytest.raises(ValueError, match="is not a valid name of a dataset or class"):
        Records(tmp_path / "records").put(foreign)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_crash_at_any_step_of_a_pack_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every operation on files is the last one before the crash, once."""
    steps, crashed = 0, True
    while crashed:
        steps += 1
        folder, done = tmp_path / str(steps), []
        records = Records(folder)
        for fold in range(3):
            records.put(record(cell(fold=fold), "failed"))
        records.pack()
        for fold in range(1, 5):
            records.put(record(cell(fold=fold)))
        expected = list(records)

        def step(operation: Callable, done: list = done, last: int = steps) -> Callable:
            def counted(*args: object, **kwargs: object) -> object:
                if len(done) == last:
                    raise KeyboardInterrupt
                done.append(operation)
                return operation(*args, **kwargs)

            return counted

        with monkeypatch.context() as patch:
            for name in ("write_text", "replace", "unlink", "rmdir"):
                patch.setattr(Path, name, step(getattr(Path, name)))
            try:
                records.pack()
                crashed = False
            except KeyboardInterrupt:
                pass
        assert list(Records(folder)) == expected
        assert Records(folder).pack() == len(expected)
        assert list(Records(folder)) == expected
    assert steps > 6


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    """Writers replace records by newer ones, others pack, and all are killed now and then. A writer tells when its
    record is written: in the end that one is there, or a newer one, and nothing is there twice."""
    rng, cells = random.Random(0), [cell(fold=fold) for fold in range(40)]
    log = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def write(parity: int, number: int) -> None:
        records, mine = Records(tmp_path / "records"), random.Random(number)
        while True:
            fold = 2 * mine.randrange(20) + parity
            records.put(record(cells[fold]) | {"run": {"number": number}})
            os.write(log, f"{fold} {number}\n".encode())

    def pack() -> None:
        while True:
            Records(tmp_path / "records").pack()

    for number in range(KILLS // 4):
        jobs = [partial(write, 0, number), partial(write, 1, number), pack, pack]
        processes = [in_process(job) for job in jobs]
        time.sleep(rng.uniform(0.0, 0.05))
        for process in processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    told = dict(map(int, line.split()) for line in (tmp_path / "log").read_text().splitlines())
    assert len(told) > 10
    for _ in ("loose and packed", "packed"):
        found = [(one["cell"]["fold"], one["run"]["number"]) for one in Records(tmp_path / "records")]
        assert len(found) == len(dict(found))
        assert all(dict(found)[fold] >= number for fold, number in told.items())
        Records(tmp_path / "records").pack()


KILLS = int(os.environ.get("TFGW_KILLS", "80"))


def test_a_pack_removes_what_a_killed_writer_left(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.put(record(cell()))
    (loose,) = tmp_path.rglob("[!.]*.json")
    left = loose.with_name(".half-0123456789abcdef.json")
    left.write_text("{")
    assert records.pack() == 1
    assert not left.exists()


def test_records_do_not_depend_on_the_order_of_their_fields(tmp_path: Path) -> None:
    one = record(cell())
    turned = dict(reversed(one.items()))
    paths = [tmp_path / name / "deep" for name in ("one", "turned")]
    for path, content in zip(paths, (one, turned), strict=True):
        Records(path).put(content)
    files = [next(path.rglob("[!.]*.json")) for path in paths]
    assert files[0].read_text() == files[1].read_text()
    files[0].write_text(json.dumps(dict(reversed(json.loads(files[0].read_text()).items()))))
    assert Records(paths[0]).get(cell()) == one
