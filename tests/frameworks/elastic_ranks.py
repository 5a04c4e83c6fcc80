"""What every rank runs in the tests of elastic gangs: sums over the ranks until GO exists, and says how many there are.

Started as the first argument says: torchrun or horovod.
"""

import os
import sys
import time


def over_torch():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    print(f"a world of {dist.get_world_size()}", flush=True)
    done = torch.zeros(1)
    while not done.item():
        one = torch.ones(1)
        dist.all_reduce(one)
        assert one.item() == dist.get_world_size()
        if dist.get_rank() == 0:
            done[0] = float(os.path.exists(os.environ["GO"]))
        dist.broadcast(done, src=0)
        time.sleep(0.02)
    dist.destroy_process_group()


def over_horovod():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    done = tf.Variable(0.0)

    @hvd.elastic.run
    def train(state):
        print(f"a world of {hvd.size()}", flush=True)
        while not done.numpy():
            one = hvd.allreduce(tf.ones(1), op=hvd.Sum, name="one")
            assert one[0] == hvd.size()
            if hvd.rank() == 0:
                done.assign(float(os.path.exists(os.environ["GO"])))
            done.assign(hvd.broadcast(done, root_rank=0, name="done"))
            state.commit()
            time.sleep(0.02)

    train(hvd.elastic.TensorFlowState(variables=[done]))


over_torch() if sys.argv[1] == "torchrun" else over_horovod()
print("all is done", flush=True)
