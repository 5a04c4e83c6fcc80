"""Trains a small network with JAX on several processes: each has a share of every batch, all have the same weights."""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import digits

STEPS = int(os.environ.get("STEPS", 1000))
REPORT_EVERY = 100  # steps between reports, and between checkpoints
BATCH = 100  # of each process
CHECKPOINT = os.path.join(os.environ.get("SLIPWAY_CHECKPOINT_DIR", "."), "model.npz")


def first_weights():
    random = np.random.default_rng(1)
    hidden = random.normal(0, 1 / 28, (784, 100)).astype(np.float32)
    output = random.normal(0, 0.1, (100, 10)).astype(np.float32)
    return {"hidden": hidden, "hidden_bias": np.zeros(100, np.float32), "output": output, "output_bias": np.zeros(10, np.float32)}


def scores_of(weights, pixels):
    return jax.nn.sigmoid(pixels @ weights["hidden"] + weights["hidden_bias"]) @ weights["output"] + weights["output_bias"]


def loss_of(weights, pixels, labels):
    right = jnp.take_along_axis(jax.nn.log_softmax(scores_of(weights, pixels)), labels[:, None], axis=1)
    return -jnp.mean(right)


@jax.jit
def train(weights, pixels, labels):
    """One step. The mean is over the whole batch, of all processes: JAX adds up their gradients where that is needed."""
    loss, gradients = jax.value_and_grad(loss_of)(weights, pixels, labels)
    return jax.tree.map(lambda weight, gradient: weight - 0.5 * gradient, weights, gradients), loss


def load():
    if not os.path.exists(CHECKPOINT):
        return first_weights(), 0
    saved = dict(np.load(CHECKPOINT))
    step = int(saved.pop("step"))
    print(f"resumed at step {step}", flush=True)
    return saved, step


def save(weights, step):
    """Written beside and then moved: a checkpoint is whole, whenever this process is killed."""
    with open(CHECKPOINT + ".new", "wb") as file:
        np.savez(file, step=step, **weights)
    os.replace(CHECKPOINT + ".new", CHECKPOINT)


def main():
    # The address comes from JAX_COORDINATOR_ADDRESS; number and count JAX does not look up by itself.
    jax.distributed.initialize(
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"])
    )
    process, processes = jax.process_index(), jax.process_count()
    data = digits.load()
    mesh = jax.make_mesh((jax.device_count(),), ("batch",))
    shared_out = NamedSharding(mesh, PartitionSpec("batch"))
    everywhere = NamedSharding(mesh, PartitionSpec())

    weights, first_step = load()
    weights = jax.tree.map(lambda weight: jax.make_array_from_process_local_data(everywhere, weight), weights)
    print(f"process {process} of {processes} trains on {data.name}", flush=True)
    started = time.monotonic()
    for step in range(first_step + 1, STEPS + 1):
        x, y = data.batch(step, BATCH, process)
        pixels = jax.make_array_from_process_local_data(shared_out, x)
        labels = jax.make_array_from_process_local_data(shared_out, y)
        weights, loss = train(weights, pixels, labels)
        if step % REPORT_EVERY == 0:
            print(f"step {step}  loss {float(loss):.4f}", flush=True)
            if process == 0:
                save({name: np.asarray(weight) for name, weight in weights.items()}, step)

    seconds = time.monotonic() - started
    here = {name: np.asarray(weight) for name, weight in weights.items()}
    # Processes that were in step have the same weights, so the sum of all weights is the same number everywhere.
    print(f"process {process}: the weights add up to {sum(weight.sum() for weight in here.values()):.6f}", flush=True)
    if process == 0:
        right = np.asarray(scores_of(here, data.test_x)).argmax(1) == data.test_y
        rate = (STEPS - first_step) / seconds
        print(f"done: {STEPS} steps, {rate:.0f} steps/s, test accuracy {100 * right.mean():.2f} %", flush=True)
    jax.distributed.shutdown()


main()
