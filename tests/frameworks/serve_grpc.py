"""Asks a model server by gRPC's own Python library, which TensorFlow's environment has. usage: serve_grpc.py PORT, for a model `m` of y = x / 2 + 2"""

import struct
import sys

import grpc


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def request(values, model=b"m", name=b"input"):
    shape = field(2, field(1, len(values))) + field(2, field(1, 1))
    tensor = field(1, 1) + field(2, shape) + field(4, struct.pack(f"<{len(values)}f", *values))
    return field(1, field(1, model)) + field(2, field(1, name) + field(2, tensor))


def error_of(call, message):
    try:
        call(message, timeout=60)
    except grpc.RpcError as error:
        return error.code(), error.details()
    raise AssertionError("it should have been refused")


with grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}") as channel:
    predict = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    assert struct.pack("<2f", 2.5, 3) in predict(request([1.0, 2.0]), timeout=60)
    assert struct.pack("<1f", 5) * 500_000 in predict(request([6.0] * 500_000), timeout=60)  # 2 MB there and back
    waiting = [predict.future(request([float(i)]), timeout=60) for i in range(2000)]
    for i, answer in enumerate(waiting):
        assert struct.pack("<f", i / 2 + 2) in answer.result(), i
    assert error_of(predict, request([1.0], "nöne".encode())) == (grpc.StatusCode.NOT_FOUND, "Servable not found for request: Latest(nöne)")
    assert error_of(predict, request([1.0], name=b"x"))[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert error_of(channel.unary_unary("/a/b"), b"")[0] == grpc.StatusCode.UNIMPLEMENTED
    assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=60) == b"\x08\x01"
print("all answered")
