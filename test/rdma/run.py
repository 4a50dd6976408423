#!/usr/bin/env python3
"""The rdma transport on a real RDMA stack without a NIC: a small virtual machine (QEMU's software emulation) boots Debian's
kernel with SoftRoCE (rdma_rxe) and runs this build's multi-rank programs in it. The steps are printed as they run; the exit
status is 0 if every step passed.

Usage: run.py BUILD [STEP...] (STEP: only those of guest.sh whose name contains one of these words)
"""
import gzip
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "rdma": "iproute2",
            "ibv_devinfo": "ibverbs-utils", "rping": "rdmacm-utils", "insmod": "kmod", "cpio": "cpio"}
MODULES = ["crc32_generic", "udp_tunnel", "ip6_udp_tunnel", "ib_core", "ib_uverbs", "rdma_rxe", "configfs", "ib_cm", "iw_cm",
           "rdma_cm", "rdma_ucm", "veth"]
PROGRAMS = ["test/matrix", "test/mix", "test/p2p", "test/faults", "rondo"]
SECONDS = 560


def fail(message):
    print(f"test-rdma: {message}", file=sys.stderr)
    sys.exit(1)


def require():
    missing = sorted({package for command, package in PACKAGES.items() if shutil.which(command) is None})
    if not list(Path("/usr/lib").glob("*/libibverbs/librxe-rdmav*.so")):
        missing.append("ibverbs-providers")
    if not missing:
        return
    line = f"apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {' '.join(missing)}"
    if os.geteuid() != 0:
        fail(f"these packages are missing: {' '.join(missing)}; install them as root with:\n    sudo sh -c '{line}'")
    print(f"installing: {' '.join(missing)}", flush=True)
    done = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        fail(done.stdout[-2000:])


def kernel(work):
    """The folder with Debian's kernel and its modules, unpacked; not the cloud flavour, which has no rdma_rxe."""
    folder = work / "kernel"
    if not list(folder.glob("boot/vmlinuz-*")):
        text = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], stdout=subprocess.PIPE, text=True, check=True).stdout
        package = re.search(r"linux-image-\d\S+", text)
        if package is None:
            fail("no package linux-image-amd64 here: this needs a Debian")
        downloads = work / "download"
        downloads.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package.group()], cwd=downloads, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        archive, = downloads.glob("linux-image-*.deb")
        subprocess.run(["dpkg", "-x", archive, folder], check=True)
        shutil.rmtree(downloads)
    return folder


def libraries(files):
    """The libraries that the dynamic linker would load for them."""
    found = set()
    for file in files:
        text = subprocess.run(["ldd", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        found.update(re.findall(r"(/\S+) \(0x", text))
    return found


def find(pattern):
    found = sorted(Path("/usr/lib").glob(pattern))
    if not found:
        fail(f"/usr/lib/{pattern} is missing")
    return str(found[0])


def put(root, source, place=None):
    target = root / (place if place is not None else str(source)).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def image(work, build, folder):
    root = work / "root"
    shutil.rmtree(root, ignore_errors=True)
    for name in ("proc", "sys", "dev", "tmp", "bin", "test", "modules"):
        (root / name).mkdir(parents=True)
    put(root, shutil.which("busybox"), "bin/busybox")
    commands = [shutil.which("ip"), shutil.which("rdma"), shutil.which("ibv_devinfo"), shutil.which("rping")]
    for command in commands:
        put(root, command, f"/bin/real-{Path(command).name}")
    programs = [build / name for name in PROGRAMS]
    for program in programs:
        if not program.exists():
            fail(f"{program} has not been built")
        put(root, program, f"test/{program.name}")
    plugins = [find("*/libibverbs.so.1"), find("*/librdmacm.so.1"), find("*/libibverbs/librxe-rdmav*.so"),
               find("*/libgcc_s.so.1")]
    for file in {*plugins, *libraries([*commands, *programs, *plugins])}:
        put(root, file)
    shutil.copytree("/etc/libibverbs.d", root / "etc/libibverbs.d")
    modules = {path.name.split(".ko")[0]: path for path in folder.glob("**/*.ko*")}
    for number, name in enumerate(MODULES):
        if name not in modules:
            fail(f"the kernel has no module {name}")
        put(root, modules[name], f"modules/{number:02d}-{name}.ko{''.join(modules[name].suffixes[1:])}")
    put(root, HERE / "guest.sh", "init")
    (root / "init").chmod(0o755)
    names = subprocess.run(["find", ".", "-print0"], cwd=root, stdout=subprocess.PIPE, check=True).stdout
    archive = subprocess.run(["cpio", "--null", "-o", "--quiet", "-H", "newc"], cwd=root, input=names, stdout=subprocess.PIPE,
                             check=True).stdout
    packed = work / "initramfs.gz"
    packed.write_bytes(gzip.compress(archive, 1))
    return packed


def boot(folder, packed, steps):
    vmlinuz, = folder.glob("boot/vmlinuz-*")
    only = ",".join(steps)
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1536", "-smp", "2", "-nographic",
               "-no-reboot", "-net", "none", "-kernel", vmlinuz, "-initrd", packed, "-append",
               f"console=ttyS0 quiet panic=-1 steps={only}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace")
    deadline = time.monotonic() + SECONDS
    passed, failed, ended = [], [], False
    watchdog = subprocess.Popen([sys.executable, "-c", f"import os,time; time.sleep({SECONDS}); os.kill({process.pid}, 9)"])
    try:
        for line in process.stdout:
            line = line.rstrip()
            if line.startswith(("STEP ", "  |", "NOTE ")):
                print(line, flush=True)
            if match := re.match(r"STEP (\S+) (ok|FAILED)", line):
                (passed if match.group(2) == "ok" else failed).append(match.group(1))
            ended |= line.startswith("END")
    finally:
        watchdog.kill()
        watchdog.wait()
        process.kill()
        process.wait()
    if not ended:
        print(f"the guest did not end by itself{' within its time' if time.monotonic() >= deadline else ''}")
    print(f"{len(passed)} passed, {len(failed)} failed")
    return 0 if ended and passed and not failed else 1


def main():
    if len(sys.argv) < 2:
        fail(__doc__)
    build = Path(sys.argv[1]).resolve()
    require()
    work = build / "rdma"
    work.mkdir(parents=True, exist_ok=True)
    folder = kernel(work)
    return boot(folder, image(work, build, folder), sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
