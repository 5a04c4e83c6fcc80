"""The 784-100-10 network in PyTorch, one thread, batches of 100. usage: pytorch_mlp.py SECONDS"""
import json
import sys
import time

import torch

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(784, 100), torch.nn.Sigmoid(), torch.nn.Linear(100, 10))
loss = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
images = torch.rand(2000, 784) * (torch.rand(2000, 784) < 0.2)
labels = torch.randint(10, (2000,))


def train(steps):
    for i in range(steps):
        at = i * 100 % 2000
        optimizer.zero_grad(set_to_none=True)
        loss(model(images[at:at + 100]), labels[at:at + 100]).backward()
        optimizer.step()


train(200)
done, begin = 0, time.perf_counter()
while time.perf_counter() - begin < float(sys.argv[1]):
    train(100)
    done += 100 * 100
print(json.dumps({"samples_per_s": round(done / (time.perf_counter() - begin))}))
