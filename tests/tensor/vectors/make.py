"""Makes the vectors of this folder with numpy 1.24 and onnx 1.12: python3 make.py"""

import base64
import io
import json
import pathlib
import zlib

import numpy as np
from onnx import TensorProto, helper, mapping, numpy_helper

HERE = pathlib.Path(__file__).parent
INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
choose = np.random.RandomState(0)


def base64_of(data):
    return base64.b64encode(data).decode()


def bytes_of(array):
    return base64_of(np.ascontiguousarray(array).tobytes())


def write(name, vectors):
    (HERE / f"{name}.json").write_text(json.dumps(vectors))


# random.json


def draw(rng, kind, args, count):
    if kind == "random":
        return rng.random(count)
    if kind == "random32":
        return rng.random(count, dtype=np.float32)
    if kind == "uniform":
        return rng.uniform(args[0], args[1], count)
    dtype, low, high = args
    return rng.integers(int(low), int(high), count, dtype=dtype)


def call(rng, kind, args, count):
    return {"kind": kind, "args": args, "count": count, "bytes": bytes_of(draw(rng, kind, args, count))}


def ranges(dtype):
    """Ranges that reach every branch: full, nearly full, single values, powers of two and not."""
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    found = [(low, high + 1), (low, high), (low + 1, high + 1), (0, 1), (0, 2), (0, 3), (0, 80)]
    found += [(max(low, -40), 40), (high, high + 1), (low, low + 3), (5, 100), (0, 127), (0, high // 2 + 2)]
    if info.bits >= 32:
        found += [(0, 2**31 - 5), (low, low + 2**31 + 12345), (0, 3 * 2**29)]
    if info.bits == 64:
        found += [(0, 2**32 - 1), (0, 2**32), (0, 2**32 + 1), (low, low + 2**63 + 1)]
        found += [(0, 2**53 + 3), (high - 2**33, high)]
    return [[dtype, str(a), str(b)] for a, b in found if low <= a < b <= high + 1]


def seeds():
    for seed in [0, 1, 42, 1234, 2**32 - 1, 2**32, 2**53 - 1, 2**64 + 5, 2**127 + 12345, 2**200 + 7]:
        rng = np.random.default_rng(seed)
        calls = [call(rng, "random", [], 3), call(rng, "random32", [], 3), call(rng, "uniform", [-40, 40], 3)]
        yield {"seed": str(seed), "calls": calls}


def integer_streams():
    for seed, dtype in enumerate(INTEGERS, 1001):
        rng = np.random.default_rng(seed)
        yield {"seed": str(seed), "calls": [call(rng, "integers", args, 37) for args in ranges(dtype)]}
    rng = np.random.default_rng(7)
    bools = [("0", "2", 70), ("1", "2", 5), ("0", "1", 5), ("0", "2", 3)]
    yield {"seed": "7", "calls": [call(rng, "integers", ["bool", a, b], count) for a, b, count in bools]}


def mixed_stream():
    """Half a 64-bit word that one call leaves over is the next call's."""
    rng = np.random.default_rng(99)
    calls = []
    for _ in range(60):
        kind = ["random", "random32", "uniform", "integers"][choose.randint(4)]
        args = []
        if kind == "uniform":
            args = [float(choose.randint(-9, 0)), float(choose.randint(1, 9))]
        if kind == "integers":
            options = ranges(INTEGERS[choose.randint(8)]) + [["bool", "0", "2"]]
            args = options[choose.randint(len(options))]
        calls.append(call(rng, kind, args, int(choose.randint(1, 6))))
    return {"seed": "99", "calls": calls}


def tweaked():
    for dtype in ["float32", "float64", "float16"]:
        for shape in [[], [3], [2, 3, 4]]:
            yield dtype, shape, np.random.default_rng(1234).uniform(-40, 40, shape).astype(dtype)
    for dtype in INTEGERS:
        low, high = (0, 80) if dtype.startswith("u") else (-40, 40)
        yield dtype, [2, 3, 5], np.random.default_rng(1234).integers(low, high, (2, 3, 5), dtype=dtype)
    yield "bool", [2, 3, 7], np.random.default_rng(1234).integers(0, 2, (2, 3, 7), dtype=bool)


def long_streams():
    count = 200_000
    integers = [("int8", "-40", "40"), ("int64", "-40", "40"), ("uint16", "0", "50000"), ("uint32", "0", str(3 * 2**30))]
    kinds = [("random", []), ("uniform", [-40, 40])] + [("integers", list(args)) for args in integers]
    for kind, args in kinds:
        drawn = draw(np.random.default_rng(5), kind, args, count)
        yield {"kind": kind, "args": args, "count": count, "crc": zlib.crc32(drawn.tobytes())}


def random_vectors():
    return {
        "streams": [*seeds(), *integer_streams(), mixed_stream()],
        "tweaked": [
            {"dtype": dtype, "seed": 1234, "shape": shape, "bytes": bytes_of(array)}
            for dtype, shape, array in tweaked()
        ],
        "long": [*long_streams()],
    }


# float16.json


def float16_vectors():
    edges = [0.0, -0.0, 1.0, -1.0, 65504.0, 65519.999, 65520.0, 65536.0, 1e300, -1e300, np.inf, -np.inf]
    edges += [2**-24, 2**-25, np.nextafter(2**-25, 1), np.nextafter(2**-25, 0), 1.5 * 2**-24]
    edges += [2**-14, 2**-14 - 2**-24, 2**-14 - 2**-25, 1e-320, 0.1, 1 / 3, 2049.0, 2051.0]
    edges += [1 + 2**-11, 1 + 2**-11 + 2**-40, 1 + 3 * 2**-11]
    values = np.concatenate([edges, np.ldexp(choose.uniform(-1, 1, 900), choose.randint(-30, 20, 900))])
    with np.errstate(over="ignore"):
        return {"float64": bytes_of(values), "float16": bytes_of(values.astype("f2"))}


# npy.json


def npy(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    return base64_of(file.getvalue())


def npy_numbers():
    base = np.arange(24).reshape(2, 3, 4)
    one_byte = ["|b1", "|i1", "|u1"]
    larger = ["i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
    for descr in one_byte + [order + name for name in larger for order in "<>"]:
        values = base % 2 if "b" in descr else base * (1 + 0.5j) if "c" in descr else base if "u" in descr else base - 3
        array = values.astype(descr)
        little = bytes_of(array.astype(array.dtype.newbyteorder("<")))
        for order in "CF":
            file = npy(np.asfortranarray(array) if order == "F" else array)
            yield {"descr": descr, "order": order, "shape": [2, 3, 4], "file": file, "bytes": little}
    floats = base.astype("f4")
    for array, version in [
        *((floats, (major, 0)) for major in (1, 2, 3)),
        (np.array(1.5, "f4"), None),
        (np.zeros((0, 3), "f4"), None),
        (np.arange(5), None),
    ]:
        shape = [*array.shape]
        file = npy(array, version)
        yield {"descr": array.dtype.str, "order": "C", "shape": shape, "file": file, "bytes": bytes_of(array)}


def npy_strings():
    texts = ["", "a", "héé", "日本", "😀 end"]
    grid = np.array([["a", "bb", "c"], ["dd", "e", "f"]])
    for array in [np.array(texts), np.array(texts).astype(">U8"), np.array([text.encode() for text in texts])]:
        yield {"file": npy(array), "texts": texts, "shape": [5]}
    yield {"file": npy(np.asfortranarray(grid)), "texts": grid.flatten().tolist(), "shape": [2, 3]}


def npz(save, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return base64_of(file.getvalue())


def npy_vectors():
    floats = np.arange(24).reshape(2, 3, 4).astype("f4")
    return {
        "numbers": [*npy_numbers()],
        "strings": [*npy_strings()],
        "object": npy(np.array([1, "x"], dtype=object)),
        "structured": npy(np.zeros(2, dtype=[("a", "f4"), ("b", "i4")])),
        "npz": npz(np.savez, a=floats, b=np.array(["x", "yy"]), empty=np.zeros(0, "i4")),
        "npzCompressed": npz(np.savez_compressed, a=floats, zeros=np.zeros((50, 50), "f8")),
    }


# tensor-proto.json


def samples(dtype):
    kind = np.dtype(dtype).kind
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, info.max, info.min, info.max // 2, 100], dtype)
    if kind == "b":
        return np.array([1, 0, 0, 1, 1, 0], dtype)
    if kind == "c":
        return np.array([1 + 2j, -3.5j, 0, 1e3, -1, 0.1], dtype)
    return np.array([0, -0.0, 1.5, -2.25, np.inf, 0.1], dtype)


def protos():
    for dtype in ["float32", "float64", *INTEGERS, "bool", "float16", "complex64", "complex128"]:
        array = samples(dtype).reshape(2, 3)
        code = mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(dtype)]
        values = array.flatten() if dtype == "float16" else array.flatten().tolist()
        yield dtype, helper.make_tensor(f"{dtype}_typed", code, [2, 3], values), bytes_of(array)
        if not dtype.startswith("complex"):
            yield dtype, numpy_helper.from_array(array, f"{dtype}_raw"), bytes_of(array)
    values = [1.0, -2.0, 0.5, 3.0]
    upper_halves = (np.array(values, "f4").view("u4") >> 16).astype("u2")
    yield "bfloat16", helper.make_tensor("bfloat16_typed", TensorProto.BFLOAT16, [4], values), bytes_of(upper_halves)


def proto_vectors():
    texts = ["", "abc", "日本", "x y"]
    strings = helper.make_tensor("strings", TensorProto.STRING, [2, 2], [text.encode() for text in texts])
    return {
        "protos": [
            {
                "name": proto.name,
                "dtype": dtype,
                "dims": [*proto.dims],
                "proto": base64_of(proto.SerializeToString()),
                "bytes": data,
            }
            for dtype, proto, data in protos()
        ],
        "strings": {"texts": texts, "proto": base64_of(strings.SerializeToString())},
    }


write("random", random_vectors())
write("float16", float16_vectors())
write("npy", npy_vectors())
write("tensor-proto", proto_vectors())
