"""The tests that need GPUs. `make gpu-test` runs them (make/gpu-test), one line a step; `pytest -m gpu test/gpu` does so in pytest's
own form. Any other run of pytest deselects them and says so in one line.

A test is marked with the name of its step, in which the fields of gpu_harness.Machine and the test's parameters may stand:

    @pytest.mark.gpu("matrix, {ranks} processes", seconds=60)

gpus=2: skipped on fewer. on_request=True: skipped unless --only names it.
"""
import os
import re
import time

import pytest

import gpu_harness
import step_report


def pytest_addoption(parser):
    group = parser.getgroup("gpu", "tests that need GPUs")
    group.addoption("--only", metavar="WORD", help="only the steps whose name has the word")
    group.addoption("--except", metavar="WORD", dest="left_out", help="not the steps whose name has the word")
    group.addoption("--limit", metavar="SECONDS", type=float, default=470.0,
                    help="that all steps together may take (470); those that do not begin in time fail")
    group.addoption("--list", action="store_true", help="print the names of the steps")
    group.addoption("--settle", metavar="SECONDS", type=float, default=8.0,
                    help="how long operations run on a stream before a rank is killed (8)")
    group.addoption("--steps", action="store_true", help="one line a step, and 'N passed, N failed' (what make/gpu-test asks for)")


def asked(config):
    return config.getoption("steps", False) or re.search(r"\bgpu\b", config.getoption("markexpr", "") or "") is not None


@pytest.hookimpl(trylast=True)  # after pytest's own report is there, whose place another may take
def pytest_configure(config):
    config.addinivalue_line("markers", "gpu(name, seconds, gpus=1, on_request=False): a step of `make gpu-test`; needs a GPU")
    config.gpu_count = gpu_harness.count_gpus() if asked(config) else 0
    config.machine = gpu_harness.Machine(max(config.gpu_count, 1))
    config.gpu_steps = {}  # by the tests' ids
    config.deselected_steps = 0
    if config.gpu_count == 1:  # Several ranks share the GPU: with CUDA's 8 connections their streams would wait for each other.
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    if config.getoption("steps", False):
        step_report.take_over(config)


def pytest_generate_tests(metafunc):
    """host_count: sizes of the jobs over a network, which do not depend on the GPUs beyond four."""
    if "host_count" in metafunc.fixturenames:
        metafunc.parametrize("host_count", sorted({2, 4, max(metafunc.config.machine.ranks, 4)}))


def pytest_collection_modifyitems(config, items):
    steps = [item for item in items if item.get_closest_marker("gpu") is not None]
    left_out = []
    for item in steps:
        mark = item.get_closest_marker("gpu")
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        name = mark.args[0].format(**{**vars(config.machine), **parameters})
        item.step = gpu_harness.Step(name, mark.kwargs["seconds"], config.machine)
        config.gpu_steps[item.nodeid] = item.step
        only, excepted = config.getoption("only", None), config.getoption("left_out", None)
        if not asked(config) or (only is not None and only not in name) or (excepted is not None and excepted in name):
            left_out.append(item)
    if not asked(config):
        config.deselected_steps = len(left_out)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter, config):
    if config.deselected_steps:
        terminalreporter.write_line(f"{config.deselected_steps} steps need GPUs: make gpu-test runs them")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    config = session.config
    config.end = time.monotonic() + config.getoption("limit", 470.0)
    if config.getoption("list", False):
        names = [item.step.name for item in session.items if hasattr(item, "step")]
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print("\n".join(names), flush=True)
        return True
    if config.getoption("steps", False) and config.gpu_count == 0:
        return True  # the report says so
    return None


def pytest_runtest_setup(item):
    mark = item.get_closest_marker("gpu")
    if mark is None:
        return
    config = item.config
    if config.gpu_count == 0:
        pytest.skip("there is no GPU that CUDA can use (rondo info says why)")
    if mark.kwargs.get("on_request") and config.getoption("only", None) is None:
        pytest.skip("takes long; --only nccl --limit 1000 runs it")
    if config.gpu_count < mark.kwargs.get("gpus", 1):
        pytest.skip(f"needs {mark.kwargs['gpus']} GPUs")
    item.step.begin(config.end)
    if time.monotonic() >= config.end:
        pytest.fail("no time is left for it", pytrace=False)


@pytest.fixture
def step(request):
    return request.node.step
