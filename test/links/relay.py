"""The cable between two hosts: it drops packets, delays them, and can be cut.

usage: relay.py NAMESPACE NAMESPACE [--drop SHARE] [--delay SECONDS] [--seed N]

In each namespace it makes an interface net0 (a TUN device) and says READY. What comes from one goes to the other, in order, after the delay;
the share of it is lost at random. Of the lines of standard input, "cut" loses all that comes from then on, "join" ends that. It ends with
its input, and then says how many packets it has passed on and dropped.
"""
import argparse
import collections
import ctypes
import fcntl
import os
import random
import select
import struct
import sys
import time

CLONE_NEWNET, TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x40000000, 0x400454CA, 0x0001, 0x1000
DEVICE = "/dev/net/tun"
WAITING_MOST = 1000  # packets on their way in one direction; more are lost, as in a switch


def open_device(namespace):
    """Its file, which stays in the namespace wherever its owner goes."""
    with open(f"/run/netns/{namespace}") as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    device = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"net0", IFF_TUN | IFF_NO_PI))
    return device


class Direction:
    """From one device to the other."""

    def __init__(self, source, target):
        self.source, self.target = source, target
        self.waiting = collections.deque()  # (when it is due, packet)

    def take(self, now, delay, is_lost):
        """Reads what has come. Returns how many packets are lost."""
        lost = 0
        while True:
            try:
                packet = os.read(self.source, 65536)
            except BlockingIOError:
                return lost
            if is_lost() or len(self.waiting) >= WAITING_MOST:
                lost += 1
            else:
                self.waiting.append((now + delay, packet))

    def give(self, now):
        """Writes what is due. Returns how many packets."""
        given = 0
        while self.waiting and self.waiting[0][0] <= now:
            try:
                os.write(self.target, self.waiting.popleft()[1])
                given += 1
            except OSError:
                pass  # the interface is down
        return given


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("namespaces", nargs=2)
    parser.add_argument("--drop", type=float, default=0)
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    noise = random.Random(options.seed)
    first, second = map(open_device, options.namespaces)
    directions = {first: Direction(first, second), second: Direction(second, first)}
    passed = dropped = 0
    cut = False
    print("READY", flush=True)
    while True:
        due = [direction.waiting[0][0] for direction in directions.values() if direction.waiting]
        pause = max(0, min(due) - time.monotonic()) if due else None
        readable, _, _ = select.select([*directions, 0], [], [], pause)
        now = time.monotonic()
        if 0 in readable:
            words = os.read(0, 4096).decode().split()
            if not words:
                break
            cut = words[-1] == "cut"
        for source in directions.keys() & set(readable):
            dropped += directions[source].take(now, options.delay, lambda: cut or noise.random() < options.drop)
        for direction in directions.values():
            passed += direction.give(now)
    print(passed, dropped)


if __name__ == "__main__":
    main()
