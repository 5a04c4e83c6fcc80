"""Trains a small network on every rank with TensorFlow; Horovod averages the gradients."""

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import horovod.tensorflow as hvd
import tensorflow as tf

import digits

STEPS = int(os.environ.get("STEPS", 600))
REPORT_EVERY = 100  # steps between reports, and between checkpoints
BATCH = 100
CHECKPOINTS = os.environ.get("SLIPWAY_CHECKPOINT_DIR", "checkpoints")


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.keras.utils.set_random_seed(1)
    hvd.init()
    rank, ranks = hvd.rank(), hvd.size()
    data = digits.load()
    layers = [tf.keras.layers.Dense(100, activation="sigmoid", input_shape=(784,)), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.legacy.SGD(0.5)
    step = tf.Variable(0, dtype=tf.int64)

    # Rank 0 alone reads and writes checkpoints; the others are given what it has.
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, step=step), CHECKPOINTS, max_to_keep=2)
    if rank == 0 and manager.restore_or_initialize():
        print(f"resumed at step {int(step.numpy())}", flush=True)
    hvd.broadcast_variables([*model.variables, step], root_rank=0)

    @tf.function
    def train(pixels, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(pixels, training=True))
            loss = tf.reduce_mean(losses)
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        step.assign_add(1)
        return loss

    print(f"rank {rank} of {ranks} trains on {data.name}", flush=True)
    started, first_step = time.monotonic(), int(step.numpy())
    for number in range(first_step + 1, STEPS + 1):
        loss = train(*data.batch(number, BATCH, rank))
        if number % REPORT_EVERY == 0:
            print(f"step {number}  loss {float(loss):.4f}", flush=True)
            if rank == 0:
                manager.save(checkpoint_number=number)

    seconds = time.monotonic() - started
    # Ranks that were in step have the same weights, so the sum of all weights is the same number everywhere.
    weights = sum(float(tf.reduce_sum(variable)) for variable in model.variables)
    print(f"rank {rank}: the weights add up to {weights:.6f}", flush=True)
    if rank == 0:
        right = model(data.test_x).numpy().argmax(1) == data.test_y
        rate = (STEPS - first_step) / seconds
        print(f"done: {STEPS} steps, {rate:.0f} steps/s, test accuracy {100 * right.mean():.2f} %", flush=True)


main()
