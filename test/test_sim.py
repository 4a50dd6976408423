"""`rondo sim`: its ratios are those of small cases solved by hand and of the paper's table; its short cut decides as the full
simulation does; bad configurations are refused with a message.
"""
import json
import random
import re
import subprocess

import pytest
from harness import SANITIZED, program, run

ROUNDS = 20000


def sim(tmp_path, *arguments, config=None, expect=0, seconds=60, **extra):
    where = tmp_path / "sim.json"
    if config is not None:
        source = tmp_path / "config.json"
        source.write_text(json.dumps(config))
        arguments = (source,) + arguments
    output = run(program("rondo"), "sim", *arguments, "--details", "--json", where, expect=expect, seconds=seconds, **extra)
    return output, json.loads(where.read_text()) if expect == 0 else None


def free(gpus, groups, counts, **extra):
    return {"total_rounds": ROUNDS, "fix_seed": 1, "disorder_prob": 0.1, "sync_prob": 0.1, "model": "StreamWithSync",
            "grouping_policy": "Arbitrary", "gpu_num": gpus, "group_num": len(groups), "gpu_per_group": groups,
            "coll_cnt_per_group": counts, **extra}


def three_d(tp, dp, pp, tp_count, dp_count, **extra):
    return {"total_rounds": ROUNDS, "fix_seed": 1, "disorder_prob": 0.01, "sync_prob": 0.01, "model": "StreamWithSync",
            "grouping_policy": "Megatron", "tp_group_size": tp, "dp_group_size": dp, "pp_group_size": pp,
            "coll_cnt_per_tp_group": tp_count, "coll_cnt_per_dp_group": dp_count, **extra}


def near(found, wanted):
    """Within four standard deviations."""
    return abs(found["deadlock_ratio"] - wanted) <= 4 * (wanted * (1 - wanted) / found["rounds"]) ** 0.5


def presets(tmp_path):
    return sim(tmp_path, "--list")[1]["presets"]


def test_the_json_of_a_preset():
    """The JSON is on standard output, with nothing else there: the four values that a program needs, and more only on
    request."""
    def output(*options):
        command = [program("rondo"), "sim", "--preset", "single-3d-4x4x4-1e-6", "--rounds", "2000", "--seed", "3", "--json", "-", *options]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60).stdout)

    found = output()
    assert set(found) == {"deadlock_ratio", "low", "high", "rounds"} and found["rounds"] == 2000
    assert 0 < found["low"] < found["deadlock_ratio"] < found["high"] < 1
    detailed = output("--details")
    assert set(detailed) > set(found) and all(detailed[key] == found[key] for key in found)


# ---- what is known ----

@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 1.0])
def test_two_in_one_queue(tmp_path, p):
    """Two GPUs and two collectives deadlock if exactly one GPU swaps."""
    _, found = sim(tmp_path, config=free(2, [[0, 1]], [2], model="Single", disorder_prob=p))
    assert near(found, 2 * p * (1 - p)), found
    assert found["rounds"] == ROUNDS and found["deadlocks"] == round(found["deadlock_ratio"] * ROUNDS)


@pytest.mark.parametrize("p, s", [(0.5, 0.5), (0.3, 0.9), (0.2, 0.4)])
def test_two_that_synchronize(tmp_path, p, s):
    """The same if both GPUs also synchronize between the two."""
    for test in ("cycle", "intersection"):
        _, found = sim(tmp_path, "--test", test, config=free(2, [[0, 1]], [2], disorder_prob=p, sync_prob=s))
        assert near(found, 2 * p * (1 - p) * s * s), (test, found)


def test_three_in_a_circle(tmp_path):
    """Three collectives of two GPUs each. Each GPU has two and swaps with probability p: a circle if all three have the same
    direction."""
    p = 0.4
    config = free(3, [[0, 1], [1, 2], [0, 2]], [1, 1, 1], model="Single", disorder_prob=p)
    # In order: GPU 0 has A C, GPU 1 A B, GPU 2 B C; a circle needs A before C, C before B, B before A, or the reverse.
    wanted = (1 - p) * p * p + p * (1 - p) * (1 - p)
    _, found = sim(tmp_path, config=config)
    assert near(found, wanted), (wanted, found)


def test_in_order_nothing_deadlocks(tmp_path):
    for model in ("Single", "StreamWithSync"):
        for config in (three_d(4, 2, 2, 20, 60, model=model, disorder_prob=0, sync_prob=0.2),
                       free(4, [[0, 1, 2], [1, 2, 3], [0, 3]], [9, 17, 5], model=model, disorder_prob=0, sync_prob=0.3)):
            config["total_rounds"] = 300
            assert sim(tmp_path, config=config)[1]["deadlocks"] == 0


def test_interval(tmp_path):
    """The interval of Clopper and Pearson, at values from published tables."""
    _, found = sim(tmp_path, config=free(2, [[0, 1]], [2], total_rounds=100, disorder_prob=0))
    assert found["low"] == 0 and found["high"] == pytest.approx(0.036217, abs=1e-5)


# ---- the short cut against all events ----

def some_config(seed):
    rng = random.Random(seed)
    common = {"total_rounds": 60, "disorder_prob": rng.choice([0.002, 0.03, 0.2, 0.7, 1.0]),
              "sync_prob": rng.choice([0.005, 0.05, 0.3]), "collective_order": rng.choice(["interleaved", "concatenated"])}
    if rng.random() < 0.4:
        return three_d(rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 3), rng.randint(0, 25), rng.randint(1, 40), **common)
    gpus = rng.randint(2, 12)
    groups = [rng.sample(range(gpus), rng.randint(1, min(gpus, 5))) for _ in range(rng.randint(1, 8))]
    groups += [[gpu] for gpu in set(range(gpus)) - {gpu for group in groups for gpu in group}]
    return free(gpus, groups, [rng.randint(0, 30) for _ in groups], **common)


@pytest.mark.parametrize("seed", range(24))
def test_jumping_decides_as_the_events_do(tmp_path, seed):
    config = some_config(seed)
    for model, test in (("single", "cycle"), ("sync", "cycle"), ("sync", "intersection")):
        options = ("--model", model, "--test", test, "--seed", seed)
        jump = sim(tmp_path, *options, "--method", "jump", config=config)[1]
        events = sim(tmp_path, *options, "--method", "events", config=config)[1]
        assert (jump["deadlocks"], jump["cycle"]) == (events["deadlocks"], events["cycle"]), (model, test, config)
        assert jump["cycle"]["deadlocks"] <= jump["deadlocks"]


def test_the_paper_s_size_decides_as_the_events_do(tmp_path):
    options = ("--preset", "sync-3d-4x4x4-4e-3-4e-3", "--rounds", 300, "--seed", 11)
    jump, events = (sim(tmp_path, *options, "--method", method, seconds=120)[1] for method in ("jump", "events"))
    assert jump["deadlocks"] == events["deadlocks"] > 0 and jump["cycle"] == events["cycle"]


# ---- reproducible ----

def test_seed_and_threads(tmp_path):
    config = three_d(4, 4, 1, 40, 120)
    config["total_rounds"] = 2000
    first, second, other = (sim(tmp_path, "--seed", seed, "--threads", threads, config=config)[1]
                            for seed, threads in ((7, 1), (7, 3), (8, 1)))
    for key in ("deadlocks", "deadlock_ratio", "low", "high", "first_deadlock_round"):
        assert first[key] == second[key]
    assert first["first_deadlock_round"] != other["first_deadlock_round"]


def test_the_artifact_s_file(tmp_path):
    """Every key of the artifact's file is accepted; total_rounds run in each process."""
    _, found = sim(tmp_path, config=three_d(2, 2, 2, 10, 20, total_rounds=50, num_process=4, resource_limit=-1))
    assert found["rounds"] == 200 and found["seed"] == 2023
    assert sim(tmp_path, config=three_d(2, 2, 2, 10, 20, total_rounds=5, fix_seed=0))[1]["seed"] != 2023


def test_resource_limit(tmp_path):
    """Two GPUs that can execute one collective each deadlock whenever their first two differ."""
    p = 0.3
    config = free(2, [[0, 1]], [2], disorder_prob=p, sync_prob=0, resource_limit=1)
    _, found = sim(tmp_path, config=config)
    assert near(found, 2 * p * (1 - p)), found
    single = sim(tmp_path, config={**config, "model": "Single"})[1]
    assert near(single, 2 * p * (1 - p)) and single["cycle"]["deadlocks"] == single["deadlocks"]  # ignored
    config["resource_limit"] = 3
    assert sim(tmp_path, config=config)[1]["deadlocks"] == 0


# ---- the paper's table ----

def test_every_row_is_a_preset(tmp_path):
    listed = presets(tmp_path)
    assert len(listed) == 18 and len({row["name"] for row in listed}) == 18
    assert [row["paper_ratio"] for row in listed if row["name"] == "sync-free-32x64-double"] == [0.0694]


@pytest.mark.skipif(SANITIZED, reason="takes minutes there")
def test_small_table(tmp_path):
    output, table = sim(tmp_path, "--table", "--rounds", 400, seconds=60)
    names = [row["name"] for row in presets(tmp_path)]
    assert [row["name"] for row in table["rows"]] == names
    assert all(name in output for name in names)
    assert all(0 <= row["low"] <= row["deadlock_ratio"] <= row["high"] <= 1 and row["rounds"] == 400 for row in table["rows"])


@pytest.mark.parametrize("name, rounds", [("single-3d-4x4x4-1e-6", 32000), ("single-free-1x8-1e-5", 32000),
                                          ("sync-3d-4x4x4-4e-3-4e-3", 3000), ("sync-free-32x64-4e-5-8e-5", 8000)])
def test_the_paper_s_ratio(tmp_path, name, rounds):
    """Within a fifth of the paper's ratio, for the rows where no other value is expected (docs/guide/simulator.md)."""
    _, found = sim(tmp_path, "--preset", name, "--rounds", rounds, seconds=120)
    paper = {row["name"]: row["paper_ratio"] for row in presets(tmp_path)}[name]
    assert found["low"] / 1.2 <= paper <= found["high"] * 1.2, (paper, found)


@pytest.mark.skipif(SANITIZED, reason="of the plain build")
def test_speed(tmp_path):
    _, found = sim(tmp_path, "--preset", "sync-3d-4x4x4-4e-3-4e-3", "--test", "cycle", "--rounds", 8000)
    assert found["rounds_per_second"] >= 500, found


# ---- shown ----

@pytest.mark.parametrize("model", ["single", "sync"])
@pytest.mark.parametrize("config", [three_d(4, 4, 2, 30, 90, total_rounds=400),
                                    free(5, [[0, 1, 2], [2, 3, 4], [0, 4], [1, 3]], [20, 20, 20, 20], total_rounds=400)])
def test_show(tmp_path, model, config):
    output, found = sim(tmp_path, "--model", model, "--show", config=config)
    assert found["cycle"]["deadlocks"] > 0
    if model == "single":
        circle = re.findall(r"GPU (\d+) executes .* and waits for GPU (\d+), which", output)
    else:
        circle = re.findall(r"GPU (\d+), suspended .* which GPU (\d+) has not started", output)
    assert len(circle) >= 2 and int(re.search(r"(\d+) GPUs wait in a circle", output).group(1)) == len(circle), output
    assert [a for a, _ in circle[1:]] + [circle[0][0]] == [b for _, b in circle], output
    assert "not started" in output and "+--> GPU " + circle[0][0] in output
    assert f"round {found['first_deadlock_round']}:" in output


def test_nothing_to_show(tmp_path):
    output, _ = sim(tmp_path, "--show", config=free(2, [[0, 1]], [2], disorder_prob=0, total_rounds=5))
    assert "nothing to show" in output


# ---- under Rondo ----

@pytest.mark.parametrize("config", [three_d(4, 2, 2, 20, 40, disorder_prob=0.3, sync_prob=0.05),
                                    free(6, [[0, 1, 2, 3], [2, 3, 4, 5], [0, 5]], [15, 25, 5], disorder_prob=0.5, sync_prob=0.1),
                                    free(3, [[0], [1, 2]], [4, 0], disorder_prob=1.0, sync_prob=0.5)])
def test_rondo_never_deadlocks(tmp_path, config):
    output, found = sim(tmp_path, "--model", "rondo", "--rounds", 20, config=config)
    assert found["deadlock"] is False and found["finished"] == found["expected"] > 0
    assert found["finish_us"] >= found["ideal_us"] * 0.999 > 0 and "no deadlock" in output


def test_rondo_preempts_only_in_disorder(tmp_path):
    config = free(4, [[0, 1, 2, 3]], [40], model="Rondo", disorder_prob=0, sync_prob=0, total_rounds=1)
    assert sim(tmp_path, config=config)[1]["preemptions"] == 0
    config["disorder_prob"] = 0.5
    assert sim(tmp_path, "--start-us", 1, config=config)[1]["preemptions"] > 0


@pytest.mark.parametrize("cores", [0, 2])
def test_rondo_checks_readiness_before_a_visit(tmp_path, cores):
    """A task's wait is checked before the task is visited, unless RONDO_READINESS_CHECK=0: the result is the same, with few
    preemptions."""
    config = free(8, [list(range(8)), [0, 1, 2, 3], [4, 5, 6, 7]], [20, 20, 20], model="Rondo", disorder_prob=0.6, sync_prob=0.02)
    found = [sim(tmp_path, "--rounds", 5, "--start-us", 1, "--cores", cores, config=config, RONDO_READINESS_CHECK=check)[1] for check in (0, 1)]
    assert all(one["finished"] == one["expected"] > 0 for one in found)
    assert found[0]["preemptions"] > 3 * found[1]["preemptions"] > 0, found
    assert found[1]["finish_us"] < 1.5 * found[0]["finish_us"], found
    assert "RONDO_READINESS_CHECK" in sim(tmp_path, config=config, expect=2, RONDO_READINESS_CHECK=2)[0]


def test_rondo_on_4096_ranks(tmp_path):
    config = three_d(8, 8, 64, 2, 4, model="Rondo", total_rounds=1)
    _, found = sim(tmp_path, config=config, seconds=120)
    assert found["ranks"] == 4096 and found["finished"] == found["expected"] == 4096 * 6


def benchmark(tmp_path, ranks, *rows):
    bench = tmp_path / "bench.json"
    bench.write_text(json.dumps({"collective": "allreduce", "ranks": ranks,
                                 "rows": [{"bytes": size, "time_us": time} for size, time in rows]}))
    return bench


@pytest.mark.parametrize("ranks, steps", [(4, 3), (32, 62)])
def test_rondo_takes_its_times_from_a_benchmark(tmp_path, ranks, steps):
    """Pairwise, or around a ring: the primitive's time is chosen so that all of them together take the measured time."""
    config = free(ranks, [list(range(ranks))], [1], model="Rondo", disorder_prob=0, sync_prob=0, total_rounds=1)
    bench = benchmark(tmp_path, ranks, (1024, 90.0), (65536, 900.0), (1048576, 9000.0))
    small, middle, large = (sim(tmp_path, "--bench", bench, "--bytes", size, config=config)[1] for size in ("1K", "256K", "8M"))
    assert small["finish_us"] == pytest.approx(90, rel=0.1) and large["finish_us"] == pytest.approx(9000, rel=0.1)
    assert large["primitive_us"] == pytest.approx(9000 / steps, rel=0.02)
    assert middle["primitive_us"] == pytest.approx((900 * 9000) ** 0.5 / steps, rel=0.02)


@pytest.mark.parametrize("content", ["", "{}", '{"collective": "bcast", "ranks": 4, "rows": [{"bytes": 8, "time_us": 1}]}',
                                     '{"collective": "allreduce", "ranks": 1, "rows": [{"bytes": 8, "time_us": 1}]}',
                                     '{"collective": "allreduce", "ranks": 4, "rows": []}',
                                     '{"collective": "allreduce", "ranks": 4, "rows": [{"bytes": 8, "time_us": 0}]}',
                                     '{"collective": "allreduce", "ranks": 4, "rows": [{"bytes": 8, "time_us": 1}, {"bytes": 8}]}'])
def test_not_a_benchmark(tmp_path, content):
    (tmp_path / "other.json").write_text(content)
    output, _ = sim(tmp_path, "--bench", tmp_path / "other.json", config=free(2, [[0, 1]], [1], model="Rondo"), expect=2)
    assert "other.json" in output


# ---- beside a real run ----

def measured(tmp_path, **change):
    """The measurements of a `rondo stress`: 4 ranks, 10 iterations of 10 ms, of which 1 ms is filling and 2 ms are checking."""
    where = tmp_path / "stress.json"
    where.write_text(json.dumps({"ranks": 4, "collectives": 1, "iterations": 10, "order": "same", "sync": False, "seed": 1,
                                 "preempt": True, "deadlock": False, "program_ns": 400000000, "fill_ns": 40000000,
                                 "check_ns": 80000000, "preemptions": 120, "daemon_quits": 40, **change}))
    return where


@pytest.mark.parametrize("cores, low, high", [(0, 3.5, 3.5), (8, 3.5, 3.5), (1, 12.5, 12.5), (2, 6.5, 12.5)])
def test_a_program_whose_time_is_known(tmp_path, cores, low, high):
    """An all-reduce takes 0.5 ms however many processors are shared, and 3 ms of filling and checking for each rank have to
    share them; of two processors one is idle at times."""
    bench = benchmark(tmp_path, 4, (1 << 20, 500.0))
    output, found = sim(tmp_path, "--stress", measured(tmp_path), "--bench", bench, "--cores", cores)
    assert found["measured"] == pytest.approx({"iteration_us": 10000, "preemptions_per_collective": 3, "quits": 1})
    assert 900 * low <= found["model"]["iteration_us"] <= 1100 * high, found
    assert found["cores"] == cores and "no deadlock" not in output and "measured   10.000 ms" in output


def test_beside_a_real_run(tmp_path):
    """The comparison of docs/guide/simulator.md; the accuracy needs an idle machine (tools/sim/validate.py)."""
    for verb in (("bench", "allreduce", "-b", 256, "-e", "1M", "-f", 64, "-n", 20), ("stress", "--iterations", 20, "--sync")):
        run(program("rondo"), *verb, "--ranks", 4, "--device", "host", "--json", tmp_path / f"{verb[0]}.json")
    real = json.loads((tmp_path / "stress.json").read_text())
    assert 0 < real["fill_ns"] and 0 < real["check_ns"] and real["fill_ns"] + real["check_ns"] < real["program_ns"]
    _, found = sim(tmp_path, "--stress", tmp_path / "stress.json", "--bench", tmp_path / "bench.json", "--cores", 2)
    _, again = sim(tmp_path, "--stress", tmp_path / "stress.json", "--bench", tmp_path / "bench.json", "--cores", 2)
    assert found == again and found["deadlock"] is False and found["sync"] is True and found["random_order"] is True
    assert found["measured"]["preemptions_per_collective"] == pytest.approx(real["preemptions"] / (4 * 8 * 20))
    assert found["measured"]["quits"] == pytest.approx(real["daemon_quits"] / (4 * 20))
    assert found["model"]["preemptions_per_collective"] > 0 and found["model"]["quits"] >= 1


@pytest.mark.parametrize("change, words", [({"ranks": 8}, ["8", "4"]), ({"preempt": False}, ["preemption"]), ({"deadlock": True}, ["finished"]),
                                           ({"program_ns": 0}, ["stress.json"]), ({"iterations": 10**8}, ["100000000"]),
                                           ({"order": None}, ["stress.json"])])
def test_runs_that_cannot_be_modelled(tmp_path, change, words):
    bench = benchmark(tmp_path, 4, (1024, 10.0))
    output, _ = sim(tmp_path, "--stress", measured(tmp_path, **change), "--bench", bench, expect=2)
    assert len(output.splitlines()) == 1 and all(word in output for word in words), output


def test_a_real_run_needs_a_benchmark(tmp_path):
    assert "--bench" in sim(tmp_path, "--stress", measured(tmp_path), expect=2)[0]
    assert "nowhere" in sim(tmp_path, "--stress", "nowhere", "--bench", benchmark(tmp_path, 4, (8, 1.0)), expect=2)[0]


# ---- bad input ----

GOOD = free(4, [[0, 1], [2, 3]], [3, 3])


@pytest.mark.parametrize("change, words", [
    ({"disorder_prob": 1.5}, ["disorder_prob", "1.5"]),
    ({"disorder_prob": -0.1}, ["disorder_prob", "-0.1"]),
    ({"disorder_prob": "often"}, ["disorder_prob"]),
    ({"sync_prob": 2}, ["sync_prob", "2"]),
    ({"sync_prob": 1}, ["1", "no GPU ever starts"]),
    ({"sync_prob": None}, ["sync_prob"]),
    ({"total_rounds": 0}, ["total_rounds", "0"]),
    ({"total_rounds": 10**15}, ["total_rounds"]),
    ({"total_rounds": "all"}, ["total_rounds"]),
    ({"num_process": -2}, ["num_process", "-2"]),
    ({"model": "Double"}, ["model", "Double", "StreamWithSync"]),
    ({"grouping_policy": "2D"}, ["grouping_policy", "2D", "Megatron"]),
    ({"gpu_num": 5}, ["GPU 4", "no group"]),
    ({"gpu_num": 3}, ["group 1", "0 and 2"]),
    ({"gpu_num": 10**9}, ["gpu_num", "1000000000"]),
    ({"group_num": 3}, ["gpu_per_group", "3", "2"]),
    ({"gpu_per_group": [[0, 1], []]}, ["group 1"]),
    ({"gpu_per_group": [[0, 1], [2, 2, 3]]}, ["group 1", "GPU 2 twice"]),
    ({"gpu_per_group": [[0, 1], [2, "3"]]}, ["group 1"]),
    ({"coll_cnt_per_group": [3, -1]}, ["coll_cnt_per_group", "group 1"]),
    ({"coll_cnt_per_group": [3]}, ["coll_cnt_per_group", "2", "1"]),
    ({"coll_cnt_per_group": [60000000, 60000000]}, ["at most"]),
    ({"model": "Single", "deadlock_test": "intersection"}, ["intersection"]),
])
def test_bad_configurations(tmp_path, change, words):
    config = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    output, _ = sim(tmp_path, config=config, expect=2)
    assert len(output.splitlines()) == 1 and all(word in output for word in words), output


@pytest.mark.parametrize("change, words", [
    ({"tp_group_size": 0}, ["tp_group_size", "0"]),
    ({"dp_group_size": None}, ["dp_group_size"]),
    ({"pp_group_size": 100000, "tp_group_size": 1000}, ["GPUs", "100000"]),
    ({"coll_cnt_per_dp_group": 2.5}, ["coll_cnt_per_dp_group"]),
])
def test_impossible_three_d_groupings(tmp_path, change, words):
    config = {key: value for key, value in {**three_d(2, 2, 2, 3, 3), **change}.items() if value is not None}
    output, _ = sim(tmp_path, config=config, expect=2)
    assert all(word in output for word in words), output


def test_broken_files(tmp_path):
    for text in ("", "{", "[1, 2]", '{"total_rounds": 5, "total_rounds": 6}'):
        (tmp_path / "broken.json").write_text(text)
        assert "broken.json" in run(program("rondo"), "sim", tmp_path / "broken.json", expect=2)
    assert "nowhere.json" in run(program("rondo"), "sim", tmp_path / "nowhere.json", expect=2)


@pytest.mark.parametrize("arguments", [(), ("--preset", "none"), ("--preset",), ("--table", "--list"), ("--rounds", "0", "--table"),
                                       ("a.json", "b.json"), ("--model", "triple", "--table"), ("--table", "--model", "rondo"),
                                       ("--bytes", "x", "--table"), ("--disorder", "1.1", "--table"), ("--sync", "-1", "--table"), ("--frobnicate",)])
def test_bad_usage(arguments):
    run(program("rondo"), "sim", *arguments, expect=2)
