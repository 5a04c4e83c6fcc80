"""Reads what slipway-train wrote with the programs it was written for. See check_readers.sh."""
import json
import subprocess
import sys

import numpy as np
import onnxruntime
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

work, program, names = sys.argv[1], sys.argv[2], sys.argv[3:]

for name in names:
    events = EventAccumulator(f"{work}/logs/{name}", size_guidance={"tensors": 0}).Reload()
    tags = events.Tags()["tensors"]
    for tag in ("train/loss", "train/accuracy", "test/accuracy"):
        assert tag in tags, (tag, tags)
    losses = [t.tensor_proto for t in events.Tensors("train/loss")]
    assert losses and all(np.isfinite(np.frombuffer(t.tensor_content, np.float32)).all() for t in losses)
    histograms = [t for t in tags if t.startswith("weights/")]
    assert histograms, tags
    rows = np.frombuffer(events.Tensors(histograms[0])[0].tensor_proto.tensor_content, np.float64).reshape(-1, 3)
    arrays = np.load(f"{work}/{name}/model.npz")
    assert rows[:, 2].sum() == arrays[histograms[0].removeprefix("weights/")].size
    metadata = events.SummaryMetadata("_hparams_/session_start_info")
    assert metadata.plugin_data.plugin_name == "hparams"

    session = onnxruntime.InferenceSession(f"{work}/{name}/model.onnx", providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    samples = (rng.random((37, 1, 28, 28)) * (rng.random((37, 1, 28, 28)) < 0.3)).astype(np.float32)
    theirs = session.run(["output"], {"input": samples})[0]
    samples.tofile(f"{work}/samples.f32")
    ours = json.loads(subprocess.run(
        [program, "predict", f"{work}/{name}/model.slipway", "--data", f"{work}/samples.f32"],
        check=True, capture_output=True, text=True).stdout)["predictions"]
    difference = np.abs(theirs - np.array(ours, np.float32)).max()
    assert difference < 1e-4, difference
    print(f"{name}: TensorBoard has {len(tags)} tags, ONNX Runtime differs by {difference:.1e}")
