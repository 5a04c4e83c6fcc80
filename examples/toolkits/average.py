"""Fits a line on every rank and averages the gradients over plain sockets. Needs Python alone.

For programs that bring a launcher or a protocol of their own: $SLIPWAY_HOSTFILE names the nodes (`host slots=n`, as
DeepSpeed and mpirun read it), MASTER_ADDR and MASTER_PORT are a place on the first of them where the ranks can meet.
"""

import json
import os
import random
import socket
import struct
import time

STEPS = int(os.environ.get("STEPS", 20_000))
REPORT_EVERY = 1000  # steps between reports, and between checkpoints
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
MEETING_PLACE = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
CHECKPOINT = os.path.join(os.environ.get("SLIPWAY_CHECKPOINT_DIR", "."), "line.json")
NUMBERS = struct.Struct("!3d")


def read_hostfile():
    with open(os.environ["SLIPWAY_HOSTFILE"]) as file:
        for line in filter(str.strip, file):
            host, slots = line.split()
            yield host, int(slots.removeprefix("slots="))


def receive(peer):
    got = b""
    while len(got) < NUMBERS.size:
        more = peer.recv(NUMBERS.size - len(got))
        if not more:
            raise SystemExit("error: another rank has ended")
        got += more
    return NUMBERS.unpack(got)


def meet():
    """Rank 0 waits for all others; they try until it is there. Gives rank 0 its peers, the others rank 0."""
    if RANK == 0:
        with socket.create_server(MEETING_PLACE) as server:
            return [server.accept()[0] for _ in range(RANKS - 1)]
    for _ in range(600):
        try:
            return [socket.create_connection(MEETING_PLACE)]
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise SystemExit(f"error: rank 0 was not at {MEETING_PLACE} within a minute")


def tell(numbers, peers):
    """Rank 0's numbers, on every rank."""
    if RANK != 0:
        return receive(peers[0])
    for peer in peers:
        peer.sendall(NUMBERS.pack(*numbers))
    return numbers


def average(numbers, peers):
    """The mean over all ranks, on every rank: rank 0 adds up."""
    if RANK == 0:
        rows = [numbers, *map(receive, peers)]
        numbers = [sum(column) / RANKS for column in zip(*rows)]
    else:
        peers[0].sendall(NUMBERS.pack(*numbers))
    return tell(numbers, peers)


def load():
    try:
        with open(CHECKPOINT) as file:
            slope, height, step = json.load(file)
    except FileNotFoundError:
        return 0.0, 0.0, 0
    print(f"resumed at step {step}", flush=True)
    return slope, height, step


def save(*line_and_step):
    """Written beside and then moved: a checkpoint is whole, whenever this process is killed."""
    with open(CHECKPOINT + ".new", "w") as file:
        json.dump(line_and_step, file)
    os.replace(CHECKPOINT + ".new", CHECKPOINT)


def gradients_and_loss(slope, height, points):
    """Of a hundred points beside the line y = 3 x + 2."""
    along = up = loss = 0.0
    for _ in range(100):
        x = points.uniform(-1, 1)
        error = slope * x + height - (3 * x + 2 + points.gauss(0, 0.1))
        along += error * x / 100
        up += error / 100
        loss += error * error / 100
    return along, up, loss


def main():
    hosts = dict(read_hostfile())
    assert sum(hosts.values()) == RANKS, f"{hosts} have not {RANKS} slots"
    print(f"rank {RANK} of {RANKS}; the nodes are {', '.join(hosts)}", flush=True)
    peers = meet()
    slope, height, first_step = tell(load() if RANK == 0 else None, peers)
    for step in range(int(first_step) + 1, STEPS + 1):
        gradients = gradients_and_loss(slope, height, random.Random(f"{RANK} {step}"))
        along, up, loss = average(gradients, peers)
        slope, height = slope - 0.005 * along, height - 0.005 * up
        if step % REPORT_EVERY == 0:
            print(f"step {step}  loss {loss:.4f}", flush=True)
            if RANK == 0:
                save(slope, height, step)
    print(f"done: rank {RANK} has y = {slope:.3f} x + {height:.3f}", flush=True)


main()
