"""The 784-100-10 network in TensorFlow, one thread, batches of 100, a compiled step called from Python as programs do. usage: tensorflow_mlp.py SECONDS"""
import json
import os
import sys
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import tensorflow as tf  # noqa: E402

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
w1, b1 = tf.Variable(tf.random.normal([784, 100], stddev=0.03)), tf.Variable(tf.zeros([100]))
w2, b2 = tf.Variable(tf.random.normal([100, 10], stddev=0.1)), tf.Variable(tf.zeros([10]))
images = tf.random.uniform([2000, 784]) * tf.cast(tf.random.uniform([2000, 784]) < 0.2, tf.float32)
labels = tf.random.uniform([2000], maxval=10, dtype=tf.int32)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        logits = tf.matmul(tf.sigmoid(tf.matmul(x, w1) + b1), w2) + b2
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    for value, gradient in zip((w1, b1, w2, b2), tape.gradient(loss, (w1, b1, w2, b2))):
        value.assign_sub(0.5 * gradient)


def train(steps):
    for i in range(steps):
        at = i * 100 % 2000
        step(images[at:at + 100], labels[at:at + 100])


train(200)
done, begin = 0, time.perf_counter()
while time.perf_counter() - begin < float(sys.argv[1]):
    train(100)
    done += 100 * 100
print(json.dumps({"samples_per_s": round(done / (time.perf_counter() - begin))}))
