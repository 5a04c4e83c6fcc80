"""Reads handwritten digits with parameter servers and workers, as scripts for Batch AI did: a graph in every process, TensorFlow 1 style.

job.json beside this file starts it. The four MNIST files are read from --data_dir as they come (gzip); the chief, worker 0, leaves
the model in --train_dir. Reports go to standard error, which Batch AI kept in stderr-wk-0.txt.
"""
import argparse
import gzip
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--job_name", choices=["ps", "worker"], required=True)
parser.add_argument("--task_index", type=int, required=True)
parser.add_argument("--ps_hosts", required=True, help="host:port,host:port …")
parser.add_argument("--worker_hosts", required=True)
parser.add_argument("--data_dir", default="", help="where the MNIST files are; workers need them")
parser.add_argument("--train_dir", default="", help="where the chief leaves the model")
parser.add_argument("--train_steps", type=int, default=1500, help="of all workers together")
parser.add_argument("--batch_size", type=int, default=100)
parser.add_argument("--hidden_units", type=int, default=100)
parser.add_argument("--learning_rate", type=float, default=0.1)
options = parser.parse_args()


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def read(name, header):
    with gzip.open(os.path.join(options.data_dir, name + ".gz")) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def read_digits(which):
    pictures = read(which + "-images-idx3-ubyte", 16).reshape(-1, 784).astype(np.float32) / 255
    return pictures, read(which + "-labels-idx1-ubyte", 8).astype(np.int64)


def weights(name, shape):
    start = tf.truncated_normal_initializer(stddev=shape[0] ** -0.5) if len(shape) == 2 else tf.zeros_initializer()
    return tf.get_variable(name, shape, initializer=start)


def network(pictures):
    hidden = tf.nn.relu(pictures @ weights("hid_w", [784, options.hidden_units]) + weights("hid_b", [options.hidden_units]))
    return hidden @ weights("sm_w", [options.hidden_units, 10]) + weights("sm_b", [10])


def train(cluster, target):
    me = options.task_index
    is_chief = me == 0
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{me}")):
        step_of_all = tf.train.get_or_create_global_step()
        pictures, labels = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int64, [None])
        scores = network(pictures)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, scores)
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(scores, 1), labels), tf.float32))
        learn = tf.train.GradientDescentOptimizer(options.learning_rate).minimize(loss, step_of_all)
        saver = tf.train.Saver(sharded=False)
    supervisor = tf.train.Supervisor(is_chief=is_chief, logdir=None, saver=None, summary_op=None, global_step=step_of_all,
                                     init_op=tf.global_variables_initializer(), recovery_wait_secs=1)
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{me}"])
    say(f"Worker {me}: " + ("making the variables" if is_chief else "waiting for the variables"))
    with supervisor.prepare_or_wait_for_session(target, config=config) as session:
        x, y = read_digits("train")
        chosen = np.random.default_rng(me)
        began, own, step = time.monotonic(), 0, 0
        while step < options.train_steps:
            batch = chosen.integers(len(y), size=options.batch_size)
            feed = {pictures: x[batch], labels: y[batch]}
            _, step, now = session.run([learn, step_of_all, loss], feed)
            own += 1
            if own % 100 == 0:
                say(f"Worker {me}: training step {own} done (global step: {step}) loss {now:.4f}")
        say(f"Training elapsed time: {time.monotonic() - began:f} s, {own} steps of {step} by worker {me}")
        if is_chief:
            test_x, test_y = read_digits("t10k")
            say(f"test accuracy = {session.run(right, {pictures: test_x, labels: test_y}):.4f}")
            say("model in", saver.save(session, os.path.join(options.train_dir, "model.ckpt"), step_of_all))


def main():
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": options.ps_hosts.split(","), "worker": options.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=options.job_name, task_index=options.task_index)
    if options.job_name == "ps":
        server.join()  # never returns; it is stopped when the master is done
    train(cluster, server.target)


if __name__ == "__main__":
    main()
