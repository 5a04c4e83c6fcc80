#!/bin/sh
# Trains a little, then lets the real readers look: TensorBoard loads the event files, ONNX Runtime computes the
# same outputs as our own model, NumPy opens the arrays. Exit 77: the packages cannot be had here.
# usage: check_readers.sh SLIPWAY_TRAIN VENV
set -eu
program=$1
venv=$2
here=$(cd "$(dirname "$0")" && pwd)
if ! "$venv/bin/python" -c 'import onnxruntime, tensorboard' 2>/dev/null; then
  python3 -m venv "$venv" && "$venv/bin/pip" install --quiet numpy onnxruntime tensorboard || {
    echo "skipped: TensorBoard and ONNX Runtime could not be installed from PyPI"
    exit 77
  }
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/net.yaml" <<'MODEL'
name: everything
layers:
  - conv: {filters: 6, kernel: 5, padding: 2}
  - batch_norm
  - sigmoid
  - avg_pool: 2
  - conv: {filters: 20, kernel: 3, stride: 2}
  - tanh
  - max_pool: {kernel: 3, stride: 2}
  - dropout: 0.2
  - dense: 40
  - batch_norm
  - relu
  - dense: 10
MODEL
for model in mlp cnn "$work/net.yaml"; do
  name=$(basename "$model" .yaml)
  "$program" --data synthetic --model "$model" --steps 150 --output "$work/$name" --log-dir "$work/logs/$name" > "$work/$name.log"
  for format in onnx npz; do
    "$program" export "$work/$name/model.slipway" --output "$work/$name/model.$format" > /dev/null
  done
done
"$venv/bin/python" "$here/check_readers.py" "$work" "$program" mlp cnn net
