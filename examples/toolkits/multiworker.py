"""Trains a Keras model on equal workers that add up their gradients (MultiWorkerMirroredStrategy), told by TF_CONFIG.

Keras 3 does not work with this strategy; the tf_keras package is Keras 2, which does.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf
import tf_keras as keras

import digits

EPOCHS = int(os.environ.get("EPOCHS", 8))
EPOCH_STEPS = 50
BATCH = 200  # of all workers together
CHECKPOINTS = os.environ.get("SLIPWAY_CHECKPOINT_DIR", "checkpoints")


class Report(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        if step:
            print(f"resumed at step {step}", flush=True)

    def on_epoch_end(self, epoch, logs=None):
        print(f"step {(epoch + 1) * EPOCH_STEPS}  loss {logs['loss']:.4f}", flush=True)


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # waits for the other workers
    resolver = strategy.cluster_resolver
    worker, workers = resolver.task_id, strategy.num_replicas_in_sync
    data = digits.load()
    print(f"worker {worker} of {workers} trains on {data.name}", flush=True)

    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(100, activation="sigmoid", input_shape=(784,)), keras.layers.Dense(10)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.5), loss, metrics=["accuracy"])

    # Every worker reads all pictures and takes its share of each batch.
    train = tf.data.Dataset.from_tensor_slices((data.train_x, data.train_y))
    train = train.shuffle(len(data.train_y), seed=1).repeat().batch(BATCH)
    # Saves after every epoch. When it finds something at the start it goes on from there.
    backup = keras.callbacks.BackupAndRestore(CHECKPOINTS, delete_checkpoint=False)
    model.fit(train, epochs=EPOCHS, steps_per_epoch=EPOCH_STEPS, callbacks=[backup, Report()], verbose=0)

    right = tf.equal(tf.argmax(model(data.test_x), 1, output_type=tf.int32), data.test_y)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32)).numpy()
    print(f"done: {EPOCHS * EPOCH_STEPS} steps, test accuracy {100 * accuracy:.2f} %", flush=True)


main()
