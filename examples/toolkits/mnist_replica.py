"""Trains a small network between a parameter server and workers, each with a graph of its own (TensorFlow 1 style).

Every process runs this script and is told by its flags what the cluster is and which part it plays:

    python3 mnist_replica.py --ps_hosts=h0:2222 --worker_hosts=h1:2222,h2:2222 --job_name=worker --task_index=0

Workers are asynchronous: each applies its gradients as soon as it has them. With --sync_replicas a step waits for the
gradients of all of them. Worker 0 is the chief: it makes the variables, or takes them from the last checkpoint.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow.compat.v1 as tf

import digits

flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
flags.add_argument("--ps_hosts", required=True, help="host:port of every parameter server, with commas")
flags.add_argument("--worker_hosts", required=True, help="host:port of every worker, with commas")
flags.add_argument("--job_name", required=True, choices=["ps", "worker"])
flags.add_argument("--task_index", required=True, type=int)
flags.add_argument("--sync_replicas", action="store_true", help="a step uses the gradients of all workers")
flags.add_argument("--train_steps", type=int, default=2000, help="global steps, over all attempts")
flags.add_argument("--batch_size", type=int, default=100)
flags.add_argument("--hidden_units", type=int, default=100)
flags.add_argument("--learning_rate", type=float, default=0.5)
flags.add_argument("--report_every", type=int, default=200, help="steps between reports, and between checkpoints")
flags.add_argument("--checkpoint_dir", default=os.environ.get("SLIPWAY_CHECKPOINT_DIR", "checkpoints"))
FLAGS = flags.parse_args()

# One thread computes: a worker has one core.
CONFIG = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)


def build_network():
    """784 pixels, one hidden layer, ten digits; the loss of a batch and the number of right answers in it."""
    pixels = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.int32, [None])
    with tf.variable_scope("network"):
        hidden = tf.get_variable("hidden", [784, FLAGS.hidden_units], initializer=tf.truncated_normal_initializer(stddev=1 / 28))
        hidden_bias = tf.get_variable("hidden_bias", [FLAGS.hidden_units], initializer=tf.zeros_initializer())
        output = tf.get_variable("output", [FLAGS.hidden_units, 10], initializer=tf.truncated_normal_initializer(stddev=0.1))
        output_bias = tf.get_variable("output_bias", [10], initializer=tf.zeros_initializer())
    scores = tf.matmul(tf.nn.sigmoid(tf.matmul(pixels, hidden) + hidden_bias), output) + output_bias
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores))
    right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(scores, 1, output_type=tf.int32), labels), tf.float32))
    return pixels, labels, loss, right


def work(cluster, server):
    worker, workers = FLAGS.task_index, cluster.num_tasks("worker")
    is_chief = worker == 0
    data = digits.load()

    # Variables go to the parameter servers in turn, everything else stays with this worker.
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{worker}")):
        global_step = tf.train.get_or_create_global_step()
        pixels, labels, loss, right = build_network()
        optimizer = tf.train.GradientDescentOptimizer(FLAGS.learning_rate)
        if FLAGS.sync_replicas:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=workers, total_num_replicas=workers)
        train = optimizer.minimize(loss, global_step=global_step)
        # Read after the step. Read beside it, a worker may see the last step before another does and leave, and with
        # --sync_replicas the other then waits for a token that takes the gradients of both.
        with tf.control_dependencies([train]):
            step_after = tf.identity(global_step.read_value())
        saver = tf.train.Saver(max_to_keep=2)

    # On the parameter server: every worker leaves a mark once, and trains when all marks are there. Otherwise the first
    # to come could do all the work, and with --sync_replicas its gradients would count for those of the others.
    with tf.device("/job:ps/task:0"):
        marks = tf.FIFOQueue(workers, [tf.int32], shapes=[[]], shared_name="workers_that_are_here")
    leave_mark, count_marks = marks.enqueue(worker), marks.size()

    in_step = {}
    if FLAGS.sync_replicas:
        in_step["local_init_op"] = optimizer.chief_init_op if is_chief else optimizer.local_step_init_op
        in_step["ready_for_local_init_op"] = optimizer.ready_for_local_init_op
        give_tokens, token_runner = optimizer.get_init_tokens_op(), optimizer.get_chief_queue_runner()

    last_checkpoint = tf.train.latest_checkpoint(FLAGS.checkpoint_dir) if is_chief else None
    supervisor = tf.train.Supervisor(
        is_chief=is_chief,
        logdir=FLAGS.checkpoint_dir,
        global_step=global_step,
        saver=saver,
        save_model_secs=0,  # saved below, by steps
        summary_op=None,
        recovery_wait_secs=1,  # how often a worker looks whether the chief has made the variables
        **in_step,
    )
    # A worker speaks with the parameter servers alone: another worker's end is no concern of its session.
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{worker}"])
    config.MergeFrom(CONFIG)

    with supervisor.prepare_or_wait_for_session(server.target, config=config, start_standard_services=False) as session:
        step = session.run(global_step)
        if last_checkpoint:
            print(f"resumed at step {step}", flush=True)
        if FLAGS.sync_replicas and is_chief:
            session.run(give_tokens)
            supervisor.start_queue_runners(session, [token_runner])
        session.run(leave_mark)
        while session.run(count_marks) < workers:
            time.sleep(0.1)

        print(f"worker {worker} of {workers} trains on {data.name}", flush=True)
        started, first_step, local_steps, reported = time.monotonic(), step, 0, step
        while step < FLAGS.train_steps:
            x, y = data.batch(step, FLAGS.batch_size, worker)
            _, step, batch_loss = session.run([train, step_after, loss], {pixels: x, labels: y})
            local_steps += 1
            if step - reported >= FLAGS.report_every or step >= FLAGS.train_steps:
                reported = step
                if is_chief:  # saved before it is reported: who reads of a step can count on its checkpoint
                    saver.save(session, os.path.join(FLAGS.checkpoint_dir, "model.ckpt"), global_step=global_step)
                print(f"step {step}  loss {batch_loss:.4f}  {local_steps} of them here", flush=True)

        seconds = time.monotonic() - started
        print(f"worker {worker} did {local_steps} local steps of {step - first_step} in {seconds:.1f} s", flush=True)
        if is_chief:
            accuracy = session.run(right, {pixels: data.test_x, labels: data.test_y})
            print(f"done: {step} steps, {(step - first_step) / seconds:.0f} steps/s, test accuracy {100 * accuracy:.2f} %", flush=True)
            if FLAGS.sync_replicas:
                session.run(give_tokens)  # who still waits for the next step is let go, and sees that it was the last


def main():
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index, config=CONFIG)
    if FLAGS.job_name == "ps":
        print("serving parameters", flush=True)
        server.join()  # never returns: a parameter server is stopped when the workers are done
    else:
        work(cluster, server)


tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()
main()
