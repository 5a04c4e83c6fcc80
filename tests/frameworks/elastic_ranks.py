"""What every rank runs in the tests of elastic gangs: sums over the ranks until GO exists, and says how many there are.

Started as the first argument says: torchrun or horovod.
"""

import os
import sys
import time


last_size = 0


def say_world(size):
    """As many as have added their one; only what is new."""
    global last_size
    if size != last_size:
        print(f"a world of {size}", flush=True)
    last_size = size


def over_torch():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    done = torch.zeros(1)
    while not done.item():
        one = torch.ones(1)
        dist.all_reduce(one)
        say_world(int(one))
        if dist.get_rank() == 0:
            done[0] = float(os.path.exists(os.environ["GO"]))
        dist.broadcast(done, src=0)
        time.sleep(0.02)
    dist.destroy_process_group()


def over_horovod():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import horovod.tensorflow as hvd
    import tensorflow as tf
    from horovod.common.elastic import ObjectState

    hvd.init()

    @hvd.elastic.run
    def train(state):
        while not state.done:
            say_world(int(hvd.allreduce(tf.ones(1), op=hvd.Sum, name="one")[0]))
            state.done = hvd.broadcast_object(os.path.exists(os.environ["GO"]), root_rank=0, name="done")
            state.commit()
            time.sleep(0.02)

    # Not TensorFlowState: in eager mode that broadcasts when it is made, which only newcomers do.
    train(ObjectState(bcast_object=hvd.broadcast_object, get_rank=hvd.rank, done=False))


over_torch() if sys.argv[1] == "torchrun" else over_horovod()
print("all is done", flush=True)
