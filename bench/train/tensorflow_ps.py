"""The classic between-graph script: one parameter server and two workers on the 784-100-10 network, in TensorFlow.

usage: tensorflow_ps.py ps|worker INDEX SECONDS sync|async PS_PORT WORKER_PORTS
Worker 0 prints samples per second of the whole cluster as JSON."""
import json
import os
import sys
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
role, index, seconds, mode = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
cluster = tf.train.ClusterSpec({"ps": [f"127.0.0.1:{sys.argv[5]}"],
                                "worker": [f"127.0.0.1:{p}" for p in sys.argv[6].split(",")]})
config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
server = tf.train.Server(cluster, job_name=role, task_index=index, config=config)
if role == "ps":
    server.join()
workers = len(sys.argv[6].split(","))
with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
    w1, b1 = tf.Variable(tf.random_normal([784, 100], stddev=0.03)), tf.Variable(tf.zeros([100]))
    w2, b2 = tf.Variable(tf.random_normal([100, 10], stddev=0.1)), tf.Variable(tf.zeros([10]))
    logits = tf.matmul(tf.sigmoid(tf.matmul(x, w1) + b1), w2) + b2
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    hooks = []
    if mode == "sync":
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=workers, total_num_replicas=workers)
        hooks = [optimizer.make_session_run_hook(index == 0)]
    train = optimizer.minimize(loss, global_step=step)
images = (np.random.rand(2000, 784) * (np.random.rand(2000, 784) < 0.2)).astype(np.float32)
labels = np.eye(10, dtype=np.float32)[np.random.randint(10, size=2000)]
filters = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"], intra_op_parallelism_threads=1,
                         inter_op_parallelism_threads=1)
with tf.train.MonitoredTrainingSession(master=server.target, is_chief=index == 0, hooks=hooks, config=filters) as session:
    # Both workers must be at work: the second looks for the chief's variables only every 30 s. Asynchronously its
    # steps show in the count; synchronously every step counts once, so there only the clock tells.
    started, begin, first = time.time(), None, None
    done = 0
    while begin is None or time.time() - begin < seconds:
        at = done * 100 % 1900
        _, now = session.run([train, step], {x: images[at:at + 100], y: labels[at:at + 100]})
        done += 1
        both = now > done + 20 if mode == "async" else time.time() - started > 35
        if begin is None and (both or done > 20000):
            begin, first = time.time(), now
    took = time.time() - begin
    if index == 0:
        per_step = 100 * (workers if mode == "sync" else 1)
        print(json.dumps({"samples_per_s": round((now - first) * per_step / took)}), flush=True)
os._exit(0)  # the server's threads never end by themselves
