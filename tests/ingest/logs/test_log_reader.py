"""The log reader on real files: lines, times, ranks, hosts, and what is damaged."""

import gzip
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from teller.ingest.discover import head_of
from teller.ingest.logs.knowledge import Knowing, Meant
from teller.ingest.logs.known import vllm
from teller.ingest.logs.learning import Learning
from teller.ingest.logs.shapes import SHAPE, shapes
from teller.ingest.readers import log
from teller.ingest.records import LINES, TABLES, Records
from teller.ingest.source import Remark

FOLDERS = ("nccl_log", "vllm_log", "sglang_log", "triton_log", "dmesg_xid", "nccl_tests_log")
NO_LOGS = ("superbench_ibnetdiscover.txt", "superbench_node_monitor.jsonl")


def read(path: Path) -> tuple[Records, tuple[Remark, ...]]:
    reading = log.read(path)
    assert reading.records[0].lines.schema == LINES
    return reading.records[0], reading.remarks


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_every_real_log_is_taken_and_nothing_else_of_those_folders(shared: Path) -> None:
    traces = [p for folder in FOLDERS for p in (shared / "traces" / folder).iterdir()]
    logs = [*(shared / "cases").glob("*/*.log"), *shared.glob("traces/flight_recorder/*/*.log")]
    taken = {p.name for p in (*traces, *logs) if log.looks_like(head_of(p), p)}
    assert taken == {p.name for p in (*traces, *logs)} - set(NO_LOGS)


def test_other_files_beside_logs_are_left_to_others(shared: Path) -> None:
    others = [p for p in shared.glob("cases/*/*") if p.suffix not in (".log", ".gz")]
    others += [*shared.glob("*.md"), *shared.glob("traces/*/*.json")]
    assert not [p.name for p in others if log.looks_like(head_of(p), p)]


def test_source_code_of_this_project_is_no_log() -> None:
    root = Path(log.__file__).resolve().parents[2]
    files = [*root.glob("ingest/**/*.py"), *root.glob("tests/**/*.py"), *root.glob("*.md")]
    assert len(files) > 50
    assert not [p.name for p in files if log.looks_like(head_of(p), p)]


def test_each_nccl_message_of_a_real_log_is_one_line_of_its_host(shared: Path) -> None:
    path = shared / "traces/nccl_log/nccl2.27_2xa100_all_subsys.log"
    records, remarks = read(path)
    told = re.findall(r"mew0:64904:\d+ \[\d\] NCCL INFO ", path.read_text())
    nccl = records.lines.filter(pc.equal(records.lines["origin"], "nccl"))
    assert nccl.num_rows == len(told)
    assert set(nccl["host"].to_pylist()) == {"mew0"}
    assert records.clock == "none"
    assert records.facts.host == "mew0"
    assert not remarks


def test_a_message_glued_into_a_table_is_split_off(shared: Path) -> None:
    path = shared / "traces/nccl_log/nccl2.27_2xa100_fault.log"
    glued = [
        number
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "NCCL INFO" in line and not line.startswith("mew0:")
    ]
    lines = read(path)[0].lines
    places = Counter(lines["line"].to_pylist())
    assert glued
    assert all(places[number] == 2 for number in glued)
    assert len(set(lines["place"].to_pylist())) == lines.num_rows


def test_workers_tell_the_ranks_of_the_nccl_lines_of_their_processes(shared: Path) -> None:
    records, _ = read(shared / "cases/o01_ib_unreachable_socket_fallback/node-b.log")
    by_pid = {
        (row["pid"], row["rank"]) for row in records.lines.select(["pid", "rank"]).to_pylist()
    }
    assert sorted(rank for _, rank in by_pid) == [4, 5, 6, 7]
    assert records.clock == "local"  # the warnings have a year, and give it to the engine's lines
    first = records.lines["time_ns"][0].as_py()
    assert first == 1_772_618_531_000_000_000  # 2026-03-04 10:02:11
    assert records.facts.host == "node-b"


def test_kernel_times_are_read_in_all_forms(shared: Path) -> None:
    folder = shared / "traces/dmesg_xid"
    clocks = {p.name: read(p)[0].clock for p in folder.iterdir()}
    assert clocks == {
        "dmesg_nccl_segfault.iso.log": "utc",
        "dmesg_oom.iso.log": "utc",
        "dmesg_time_format_iso.log": "utc",
        "dmesg_xid119.log": "local",
        "fabricmanager.log": "local",
        "kmsg_peermem.log": "boot",
    }
    kmsg = read(folder / "kmsg_peermem.log")[0].lines
    assert kmsg["time_ns"][0].as_py() == 227_996_636_000
    assert set(kmsg["origin"].to_pylist()) == {"kernel"}


def test_every_line_of_an_iteration_log_has_its_rank_and_time(shared: Path) -> None:
    path = shared / "cases/o12_trtllm_host_step_regression/baseline_v1.3.0rc17.log"
    lines = read(path)[0].lines
    assert lines.num_rows == len(path.read_text().splitlines())
    assert Counter(lines["rank"].to_pylist()) == {0: 32, 1: 32, 2: 32, 3: 32}
    assert lines["time_ns"].null_count == 0
    assert len(set(lines["template"].to_pylist())) <= 2


def test_a_compressed_log_says_the_same(shared: Path, tmp_path: Path) -> None:
    path = shared / "traces/vllm_log/v0.13.0.log"
    packed = tmp_path / "v.log.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert log.looks_like(head_of(packed), packed)
    plain, unpacked = read(path)[0], read(packed)[0]
    assert plain.lines.equals(unpacked.lines)
    assert plain.samples.equals(unpacked.samples)


def test_a_cut_archive_gives_what_stands_before_the_cut(shared: Path, tmp_path: Path) -> None:
    path = shared / "traces/sglang_log/dgxspark_sglang_int4.log"
    packed = tmp_path / "s.log.gz"
    packed.write_bytes(gzip.compress(path.read_bytes())[:8000])
    records, remarks = read(packed)
    assert 20 < records.lines.num_rows < read(path)[0].lines.num_rows
    assert any("ends early" in r.what for r in remarks)


def test_no_secret_of_a_real_start_comes_out(shared: Path) -> None:
    records, _ = read(shared / "traces/vllm_log/v0.10.1.1.log")
    assert "token-abc123" not in str(records.lines.to_pylist()) + str(records.samples.to_pylist())


def test_a_logged_prompt_reaches_no_table(tmp_path: Path) -> None:
    asked = (
        "prompt: 'Tell me a PRIVATE thing', params: SamplingParams(n=1), prompt_token_ids: [987654]"
    )
    told = "obj=GenerateReqInput(rid='r1', text='PRIVATE', input_ids=[987654])"
    text = (
        f"INFO 03-04 10:00:00 [logger.py:41] Received request cmpl-1-0: {asked}, lora: None\n"
        f"[2026-03-04 10:00:01 TP0] Receive: {told}\n"
        f"[2026-03-04 10:00:02 TP0] Finish: {told}, out={{'text': 'PRIVATE', 'output_ids': "
        "[987654], "
        "'meta_info': {'id': 'r1', 'prompt_tokens': 12, 'completion_tokens': 9}}\n"
    )
    records, _ = read(write(tmp_path / "a.log", text))
    said = [getattr(records, name).to_pylist() for name in TABLES]
    assert not re.search("PRIVATE|987654", str(said))
    assert "SamplingParams(n=1)" in str(said)
    assert {r["name"] for r in records.requests.to_pylist()} == {"cmpl-1-0", "r1"}
    assert 12 in records.requests["prompt_tokens"].to_pylist()


def test_a_defect_of_one_module_is_said_and_the_others_go_on(tmp_path: Path) -> None:
    class Defective:
        MARKS: tuple[str, ...] = ("Running",)

        def knowing(self) -> Knowing:
            return self

        def learn(self, lines: pa.Table) -> Meant:
            raise pa.ArrowNotImplementedError(f"{lines.num_rows}")

    learning = Learning.begin([Defective(), vllm])
    text = "Engine 000: Avg generation throughput: 1.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs"
    lines = read(write(tmp_path / "a.log", f"INFO 03-04 10:00:00 [a.py:1] {text}\n"))[0].lines
    shown = lines.drop_columns(["params", "template"])
    learning.learn(shown.append_column(SHAPE, shapes(lines["text"].combine_chunks())))
    assert learning.failed == ["Defective: ArrowNotImplementedError"]
    assert len(learning.facts.take("samples")) == 1


def test_places_stay_when_a_file_grows(tmp_path: Path) -> None:
    first = "".join(f"INFO 03-04 10:00:{n:02d} [a.py:1] step {n}\n" for n in range(60))
    small = read(write(tmp_path / "a.log", first))[0].lines
    grown = read(write(tmp_path / "a.log", first + first))[0].lines
    assert small["place"].to_pylist() == grown["place"].to_pylist()[:60]
    assert grown["line"].to_pylist() == list(range(1, 121))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n\n",
        b"\x00" * 5000,
        bytes(range(256)) * 40,
        b"INFO 03-04 10:00:00 [a.py:1] \xff\xfe broken \x00\x1b[31mred\x1b[0m\n" * 3,
        b"\xef\xbb\xbfINFO 03-04 10:00:00 [a.py:1] with a mark\r\n",
        b"INFO 13-45 99:99:99 [a.py:1] impossible\n",
        b"[99999999.000000] late\n[  12.5] x\n[" + b"9" * 400 + b".000000] long\n",
        b"x" * 3_000_000,
        b"\x1f\x8b\x08\x00rubbish",
        b"[rank" + b"9" * 40 + b"]: rank without end\n",
        "(Worker_TP0 pid=99999999999999999999) INFO 03-04 10:00:00 [ä.py:1] ü\n".encode(),
    ],
)
def test_odd_content_never_raises(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd.log"
    path.write_bytes(content)
    log.looks_like(head_of(path), path)
    reading = log.read(path)
    assert reading.records or reading.remarks


def test_a_line_without_end_is_cut_and_said(tmp_path: Path) -> None:
    text = "INFO 03-04 10:00:00 [a.py:1] " + "x" * 40_000 + "\nINFO 03-04 10:00:01 [a.py:1] y\n"
    records, remarks = read(write(tmp_path / "a.log", text))
    assert records.lines.num_rows == 2
    assert max(map(len, records.lines["text"].to_pylist())) <= 1 << 14
    assert any("1 lines are longer" in r.what for r in remarks)


def test_a_garbled_record_is_counted_and_shown(tmp_path: Path) -> None:
    text = "host-a:1:2 [0] NCCL INFO fine\n7:2 [0] NCCL INFO comm 0xab cut by another process\n"
    records, remarks = read(write(tmp_path / "a.log", text))
    unread = records.samples.filter(pc.equal(records.samples["name"], "log.unread")).to_pylist()
    assert [(s["line"], s["value"]) for s in unread] == [(2, 1.0)]
    assert "cut by another" in unread[0]["text"]
    assert any(r.place == "line 2" and "NCCL message" in r.what for r in remarks)


def test_a_long_log_is_thinned_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    with path.open("w") as file:
        for n in range(420_000):
            level = "ERROR" if n == 400_000 else "INFO"
            file.write(f"{level} 03-04 10:{n // 10_000:02d}:00 [a.py:1] some step number {n}\n")
    records, remarks = read(path)
    kept = records.lines
    assert 150_000 < kept.num_rows < 210_000
    assert pc.sum(pc.equal(kept["level"], "error")).as_py() == 1
    counts = records.samples.filter(pc.equal(records.samples["name"], "log.lines"))
    assert pc.sum(counts["value"]).as_py() == 420_000
    assert len(counts) == 42
    assert records.facts.event_count == 420_000
    assert any(f"{420_000 - kept.num_rows:,} of 420,000" in r.what for r in remarks)
