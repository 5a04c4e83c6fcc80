"""Digits to train on: the MNIST files below $SLIPWAY_DATA, else digits drawn here. Needs numpy only."""

import gzip
import os
import typing

import numpy as np


class Digits(typing.NamedTuple):
    name: str
    train_x: np.ndarray  # float32, 0 … 1, one row of 784 pixels a picture
    train_y: np.ndarray  # int32, 0 … 9
    test_x: np.ndarray
    test_y: np.ndarray

    def batch(self, step, size, worker=0):
        """The pictures of one step of one worker. They follow from the step, so a resumed run needs no other memory."""
        chosen = np.random.default_rng((step, worker)).integers(len(self.train_y), size=size)
        return self.train_x[chosen], self.train_y[chosen]


def load():
    """MNIST (or Fashion-MNIST) where $SLIPWAY_DATA says, drawn digits where it says nothing or `synthetic`."""
    folder = os.environ.get("SLIPWAY_DATA", "synthetic")
    if folder == "synthetic":
        return Digits("drawn digits", *_draw(12_000, seed=1), *_draw(2_000, seed=2))
    for inside in ("", "mnist", "fashion-mnist"):
        at = os.path.join(folder, inside)
        if _find(at, "train-images-idx3-ubyte"):
            train = _pictures(at, "train-images-idx3-ubyte"), _labels(at, "train-labels-idx1-ubyte")
            test = _pictures(at, "t10k-images-idx3-ubyte"), _labels(at, "t10k-labels-idx1-ubyte")
            return Digits(at, *train, *test)
    raise SystemExit(
        f"error: there is no MNIST in {folder}\n"
        "why:   SLIPWAY_DATA names it, and train-images-idx3-ubyte(.gz) is not there\n"
        "try:   another folder, or SLIPWAY_DATA=synthetic for drawn digits"
    )


def _find(folder, name):
    paths = (os.path.join(folder, name + ending) for ending in ("", ".gz"))
    return next(filter(os.path.exists, paths), None)


def _bytes_after(header_size, folder, name):
    path = _find(folder, name)
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return np.frombuffer(file.read(), np.uint8, offset=header_size)


def _pictures(folder, name):
    return _bytes_after(16, folder, name).reshape(-1, 784).astype(np.float32) / 255


def _labels(folder, name):
    return _bytes_after(8, folder, name).astype(np.int32)


# A digit as on a pocket calculator: which of the seven strokes are lit, and where each of them lies.
_STROKES = {
    "top": np.s_[4:6, 9:19],
    "left above": np.s_[4:14, 9:11],
    "right above": np.s_[4:14, 17:19],
    "middle": np.s_[13:15, 9:19],
    "left below": np.s_[14:24, 9:11],
    "right below": np.s_[14:24, 17:19],
    "bottom": np.s_[22:24, 9:19],
}
_LIT = ("1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011")


def _draw(count, seed):
    """Such digits, moved by up to two pixels, some strokes fainter than others, and with noise over all."""
    random = np.random.default_rng(seed)
    labels = random.integers(10, size=count).astype(np.int32)
    pictures = np.zeros((count, 28, 28), np.float32)
    for stroke, where in enumerate(_STROKES.values()):
        lit = np.array([digit[stroke] == "1" for digit in _LIT])[labels]
        ink = (lit * random.uniform(0.4, 1.0, count)).astype(np.float32)
        part = pictures[(np.s_[:], *where)]
        np.maximum(part, ink[:, None, None], out=part)
    moves = random.integers(-2, 3, (count, 2))
    for down in range(-2, 3):
        for right in range(-2, 3):
            moved = (moves == (down, right)).all(axis=1)
            pictures[moved] = np.roll(pictures[moved], (down, right), axis=(1, 2))
    pictures += random.normal(0, 0.25, pictures.shape).astype(np.float32)
    return np.clip(pictures, 0, 1).reshape(count, 784), labels
