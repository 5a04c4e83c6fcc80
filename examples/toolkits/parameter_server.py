"""Trains a small network with tf.distribute's ParameterServerStrategy. TF_CONFIG alone says who is who.

The chief runs the loop and hands its steps to whichever worker is free; the variables lie on the parameter servers.
Workers and parameter servers only serve: they are stopped when the chief is done.
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # a worker that is not there yet is waited for

import tensorflow as tf

import digits

STEPS = int(os.environ.get("STEPS", 1000))
ROUND = 100  # steps between reports, and between checkpoints
BATCH = 100
CHECKPOINTS = os.environ.get("SLIPWAY_CHECKPOINT_DIR", "checkpoints")


def batches_of_a_worker(data):
    """Every worker has such a dataset of its own; the number counts its own batches."""
    pictures = tf.data.Dataset.from_tensor_slices((data.train_x, data.train_y))
    return pictures.shuffle(len(data.train_y)).repeat().batch(BATCH).enumerate(start=1).prefetch(1)


def lead(resolver):
    data = digits.load()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    with strategy.scope():
        step = tf.Variable(0, dtype=tf.int64)
        hidden = tf.Variable(tf.random.truncated_normal([784, 100], stddev=1 / 28))
        hidden_bias = tf.Variable(tf.zeros([100]))
        output = tf.Variable(tf.random.truncated_normal([100, 10], stddev=0.1))
        output_bias = tf.Variable(tf.zeros([10]))
        checkpoint = tf.train.Checkpoint(step=step, hidden=hidden, hidden_bias=hidden_bias, output=output, output_bias=output_bias)
    variables = [hidden, hidden_bias, output, output_bias]
    manager = tf.train.CheckpointManager(checkpoint, CHECKPOINTS, max_to_keep=2)
    if manager.restore_or_initialize():
        print(f"resumed at step {int(step.numpy())}", flush=True)

    def scores_of(pixels):
        return tf.matmul(tf.sigmoid(tf.matmul(pixels, hidden) + hidden_bias), output) + output_bias

    @tf.function
    def train(batches):  # runs on a worker
        number, (pixels, labels) = next(batches)
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores_of(pixels))
            loss = tf.reduce_mean(losses)
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(0.5 * gradient)
        step.assign_add(1)
        if number % ROUND == 0:
            tf.print("this worker has done", number, "steps", output_stream=sys.stdout)
        return loss

    batches = iter(coordinator.create_per_worker_dataset(lambda: batches_of_a_worker(data)))
    print(f"{resolver.cluster_spec().num_tasks('worker')} workers train on {data.name}", flush=True)
    started, first_step = time.monotonic(), int(step.numpy())
    for end in range(first_step + ROUND, STEPS + 1, ROUND):
        losses = [coordinator.schedule(train, args=(batches,)) for _ in range(ROUND)]
        coordinator.join()
        print(f"step {end}  loss {sum(loss.fetch() for loss in losses) / ROUND:.4f}", flush=True)
        manager.save(checkpoint_number=end)

    seconds = time.monotonic() - started
    right = tf.equal(tf.argmax(scores_of(data.test_x), 1, output_type=tf.int32), data.test_y)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32)).numpy()
    rate = (STEPS - first_step) / seconds
    print(f"done: {STEPS} steps, {rate:.0f} steps/s, test accuracy {100 * accuracy:.2f} %", flush=True)


def main():
    tf.get_logger().setLevel("ERROR")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type == "chief":
        lead(resolver)
        return
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc")
    print(f"serving as {resolver.task_type} {resolver.task_id}", flush=True)
    server.join()


main()
