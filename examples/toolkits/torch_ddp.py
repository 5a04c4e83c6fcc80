"""Trains a small network on every rank and averages the gradients (DistributedDataParallel over gloo).

torch.distributed reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT itself, whether Slipway or torchrun set them.
"""

import os
import time

import torch
import torch.distributed as dist

import digits

STEPS = int(os.environ.get("STEPS", 1000))
REPORT_EVERY = 100  # steps between reports, and between checkpoints
BATCH = 100
CHECKPOINT = os.path.join(os.environ.get("SLIPWAY_CHECKPOINT_DIR", "."), "model.pt")


def save(model, step):
    """Written beside and then moved: a checkpoint is whole, whenever this process is killed."""
    torch.save({"model": model.state_dict(), "step": step}, CHECKPOINT + ".new")
    os.replace(CHECKPOINT + ".new", CHECKPOINT)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    data = digits.load()
    model = torch.nn.Sequential(torch.nn.Linear(784, 100), torch.nn.Sigmoid(), torch.nn.Linear(100, 10))

    # Rank 0 alone reads the checkpoint; the others are given its step here and its weights by DistributedDataParallel.
    step = torch.zeros(1, dtype=torch.int64)
    if rank == 0 and os.path.exists(CHECKPOINT):
        saved = torch.load(CHECKPOINT)
        model.load_state_dict(saved["model"])
        step[0] = saved["step"]
        print(f"resumed at step {saved['step']}", flush=True)
    dist.broadcast(step, src=0)
    first_step = int(step)

    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.5)
    print(f"rank {rank} of {ranks} trains on {data.name}", flush=True)
    started = time.monotonic()
    for step in range(first_step + 1, STEPS + 1):
        x, y = data.batch(step, BATCH, rank)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(parallel(torch.from_numpy(x)), torch.from_numpy(y).long())
        loss.backward()  # the gradients are averaged over the ranks on the way
        optimizer.step()
        if step % REPORT_EVERY == 0:
            print(f"step {step}  loss {loss.item():.4f}", flush=True)
            if rank == 0:
                save(model, step)

    seconds = time.monotonic() - started
    with torch.no_grad():
        right = model(torch.from_numpy(data.test_x)).argmax(1).numpy() == data.test_y
    # Ranks that were in step have the same weights, so the sum of all weights is the same number everywhere.
    weights = sum(parameter.sum().item() for parameter in model.parameters())
    print(f"rank {rank}: the weights add up to {weights:.6f}", flush=True)
    if rank == 0:
        rate = (STEPS - first_step) / seconds
        print(f"done: {STEPS} steps, {rate:.0f} steps/s, test accuracy {100 * right.mean():.2f} %", flush=True)
    dist.destroy_process_group()


main()
