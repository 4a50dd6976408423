"""The n-th call of a function fails on one rank of three: a sample of all such points, and the tool itself.

`make failure-injection` tries all points; a violation prints the options that repeat it.
"""
import re
import signal
import subprocess
import time

import pytest
from harness import BUILD, PATIENCE, ROOT, SANITIZED, environment, program, run

# What the library calls of libc that is not made to fail: it cannot fail, or not with these arguments, or its result is not used.
# One word stands for all functions that begin with it if it ends with *. nvcc writes calls of exit, in the host's unreachable bodies of
# device functions, and of atexit.
CANNOT_FAIL = """
    sigaddset sigismember sigpending sigtimedwait sysinfo msync prctl dlclose dl_iterate_phdr exit atexit
    mem* str* snprintf vsnprintf fprintf qsort abort free _* __* clock_gettime nanosleep sched_yield getenv getpid getppid geteuid
    environ explicit_bzero inet_ntop inet_pton in6addr_any gai_strerror dlerror freeifaddrs freeaddrinfo freelocale globfree stderr sigfillset
    sigemptyset pthread_mutex_* pthread_cond_* pthread_condattr_* pthread_attr_* pthread_once pthread_join pthread_self pthread_sigmask
    pthread_setname_np pthread_key_create pthread_getspecific pthread_setspecific pthread_atfork sysconf syscall
    close shutdown unlink mkdir closedir fclose fputc fgets ferror fflush readdir access glob getrlimit setrlimit
    numa_* math sin cos exp log pow floor ceil round fabs sqrt ldexp frexp rint lrint fmod toupper tolower atoi atol bsearch
""".split()


# The same of CUDA's runtime and driver. nvcc writes the calls that begin with __.
CUDA_CANNOT_FAIL = set("cudaGetErrorString cudaGetErrorName cudaGetLastError cudaPeekAtLastError cuGetErrorString".split())
NVCC_WRITES = re.compile(r"__cuda(Register|Unregister|PopCallConfiguration|PushCallConfiguration|GetKernel|InitModule)")


def named(file="functions.h"):
    text = (ROOT / "test/injection" / file).read_text()
    return set(re.findall(r"X\((\w+), ", text)) | set(re.findall(r"X\((\w+)\)", text))


def symbols(*options):
    return subprocess.run(["nm", *options, BUILD / "librondo.a"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout


def test_every_function_is_injected_or_cannot_fail():
    """A function that the library begins to call needs a wrapper."""
    called = set(re.findall(r"^ +U (\w+)", symbols("-u"), re.MULTILINE))
    defined = set(re.findall(r"^[0-9a-f]+ [TtWVDBR] (\w+)", symbols(), re.MULTILINE))
    exact = {word for word in CANNOT_FAIL if not word.endswith("*")}
    begins = tuple(word[:-1] for word in CANNOT_FAIL if word.endswith("*"))
    lacking = {name for name in called - defined - named() - exact
               if not name.startswith(begins) and not name.startswith(("rondo_", "cuda", "cu"))}
    assert "calloc" in called, "nm has not shown what the library calls"
    assert not lacking, f"test/injection/functions.h has no row for {sorted(lacking)}"


def has_cuda():
    return "cudaMalloc" in symbols("-u")


def test_every_function_of_cuda_is_injected_or_cannot_fail():
    """A function of CUDA that the library begins to call needs a wrapper too: of the runtime, which it links, or of the driver,
    which it asks for by name. A row without a wrapper does not compile."""
    driver = set(re.findall(r"X\((cu\w+)\)", (ROOT / "transport/memory/cuda_driver.h").read_text()))
    assert "cuMemCreate" in driver, "transport/memory/cuda_driver.h does not list the driver's functions"
    called = {name for name in re.findall(r"^ +U (\w+)", symbols("-u"), re.MULTILINE) if re.match(r"(__)?cu(da)?[A-Z]", name)}
    lacking = {name for name in called | driver if not NVCC_WRITES.match(name)} - named("cuda_functions.h") - CUDA_CANNOT_FAIL
    assert not lacking, f"test/injection/cuda_functions.h has no row for {sorted(lacking)}"


def test_wrappers_of_cuda():
    """The n-th call fails and no other; each rank's calls count by themselves; what is released is released."""
    output = run(program("test_cuda_wrappers"))
    assert ("FAILED" not in output and "test_driver" in output) or not has_cuda(), output


@pytest.mark.parametrize("number", [1, 2, 3])
def test_that_call_of_cuda_fails(number):
    """The one that is asked for and no other, and the one function that the patterns name."""
    if not has_cuda():
        pytest.skip("built without CUDA")
    output = run(program("injection"), "--part", "planted-cuda", "--function", "cuIpc*,cudaM[a]lloc", "--rank", 1, "--number", number,
                 expect=1)
    assert f"element 0 of 1 is {3 + 10 ** number}, not 3" in output, output
    assert "injection: 1 points" in output, output


def test_parts_on_a_gpu():
    """They are listed, and where no GPU is, skipped with the reason."""
    output = run(program("injection"), "--part", "gpu-*", "--list")
    assert {"gpu-life", "gpu-blocking", "gpu-stream", "gpu-memory", "gpu-communicators"} <= set(output.split()), output
    if re.search(r"^skipped: ", output, re.MULTILINE):
        assert re.search(r"^skipped: \d+ parts on a GPU: \S", output, re.MULTILINE), output
        assert "injection: 0 points" in run(program("injection"), "--part", "gpu-*")


@pytest.mark.parametrize("reuse", [0, 1])
@pytest.mark.parametrize("bug, found", [("unchecked", "crashed"), ("leak", "left 1 allocations"), ("leak-threads", "left 1 allocations"),
                                        ("silence", "(hang:|rank 0: after planted_silence)"),
                                        ("wrong", "element 0 of 1 is 4, not 3")])
def test_planted_bugs_are_found(bug, found, reuse):
    """A function that does not stand a failed malloc, in new processes and in some that have made a run before."""
    output = run(program("injection"), "--part", f"planted-{bug}", "--function", "malloc", "--rank", 1, "--most", 2, "--limit", 2,
                 "--reuse", reuse, expect=1)
    assert re.search(rf"VIOLATION --part planted-{bug} --rank 1 --function malloc .* {found}", output) or (
        found == "crashed" and "AddressSanitizer" in output), output


def test_a_sample_of_all_points():
    """A point of each place in the library that calls such a function, within the time that there is. Parts on a GPU are for `make
    gpu-test`."""
    output = run(program("injection"), "--part", "[!g]*", "--sample", 500, "--seconds", 45 if SANITIZED else 30, "--jobs", 3, seconds=120)
    points = int(re.search(r"injection: (\d+) points", output).group(1))
    assert points >= (3 if SANITIZED else 50), output  # beside other work a run takes tens of seconds there


def test_a_driver_that_is_stopped():
    """It tells what was under way and what came of the rest, and leaves no process."""
    command = [program("injection"), "--part", "planted-silence", "--function", "malloc", "--rank", "1", "--most", "1", "--limit", "100"]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        assert "planted-silence: about" in driver.stdout.readline()
        time.sleep(1)
        driver.send_signal(signal.SIGINT)
        output = driver.communicate(timeout=30 * PATIENCE)[0]  # at its end, no process has the pipe
    finally:
        driver.kill()
    assert driver.returncode == 128 + signal.SIGINT, output
    assert re.search(r"^under way --part planted-silence --rank 1 --function malloc --way 0 --number 1 .* s$", output, re.MULTILINE), output
    assert re.search(r"^injection: 0 points, ", output, re.MULTILINE), output


def test_calls_of_a_first_run_alone():
    """--first 1 tries those and no others, each in new processes; which of them a run makes can depend on what comes when."""
    output = run(program("injection"), "--part", "life", "--rank", 0, "--reuse", 1, "--first", 1)
    of_first, tried, without = (int(re.search(text, output).group(1)) for text in (
        r", (\d+) of them by new processes", r"injection: (\d+) points", r" (\d+) without the call"))
    assert 0 < tried and tried + without == of_first, output


def test_processes_make_several_runs():
    """As on a GPU: the places are those that runs of new processes come to, and the last run is judged as the first."""
    samples = []
    for reuse in (0, 1):
        output = run(program("injection"), "--part", "life,memory", "--rank", 1, "--function", "open,mmap,fopen,socket", "--sample", 60,
                     "--reuse", reuse, seconds=120)
        samples.append(re.search(r"^sample: (\d+) of \d+ places and ways$", output, re.MULTILINE).group(1))
    assert samples[0] == samples[1] != "0"
