// Job files to begin with.
export const templates: Record<'single' | 'array' | 'sweep' | 'gang' | 'torchrun' | 'horovod', string> = {
  single: `name: hello
tasks:
  - name: main
    command: echo "hello from $(hostname)"
    resources: {cores: 1}
`,
  array: `name: shards
tasks:
  - name: shard
    count: 10
    command: echo "shard {index} of 10"
    retries: 2
`,
  sweep: `name: sweep
tasks:
  - name: fit
    count: 9
    command: |
      rates=(0.1 0.03 0.01)
      layers=(1 2 3)
      echo "rate \${rates[$(({index} / 3))]} layers \${layers[$(({index} % 3))]}"
`,
  gang: `name: digits
tasks:
  - name: train
    toolkit: tensorflow
    roles:
      ps: {count: 1, command: python3 train.py}
      worker: {count: 2, command: python3 train.py}
`,
  torchrun: `name: ddp
tasks:
  - name: train
    toolkit: torch
    launcher: torchrun
    nodes: 2
    processes_per_node: 1
    command: python3 train.py
`,
  horovod: `name: horovod
tasks:
  - name: train
    toolkit: horovod
    nodes: 2
    command: python3 train.py
`,
};
