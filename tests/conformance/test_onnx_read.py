"""Every operator that the ONNX reader takes computes what ONNX Runtime computes: small models as text,
run by the built-in runtime and by ONNX Runtime."""

import json

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from safetensors.numpy import load_file, save_file
from support import compare, ferry

SIZES = {"N": 3, "S": 5, "M": 2}
DTYPES = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}

# Numbers of both signs that are not 0.
SHIFTED = (
    "c = Constant<value_ints=[-7,-4,9,5,-8]>() d = Constant<value_ints=[2,-3,4,-5,3]>() a = Add(x, c) "
    "m = Add(z, z) n = Mul(m, d) b = Add(n, d)"
)
COMPARE = "Equal Less LessOrEqual Greater GreaterOrEqual".split()

PLACES = "i = Constant<value=int64[2,2] {0, 1, 2, 0}>()"

# Inputs, outputs and the body of a graph; sizes by name are dynamic.
CASES = {
    **{op: ("float[N,S,4] v", "float y", f"x = Exp(v) y = {op}(x)") for op in ("Sqrt", "Log", "Reciprocal")},
    **{
        op: ("float[N,S,4] x", "float y", f"y = {op}(x)")
        for op in (
            "Abs Neg Exp Sigmoid Tanh Erf Relu Cos Sin Softplus Elu LeakyRelu Softmax Atan Floor Ceil Round Sign"
        ).split()
    },
    **{op: ("float[N,S,4] x, float[S,1] z", "float y", f"y = {op}(x, z)") for op in "Add Sub Mul Div".split()},
    **{op: ("int64[N,S] x, int64[S] z", "bool y", f"y = {op}(x, z)") for op in COMPARE},
    **{
        op: ("bool[N,S] x, bool[N,1] z", "bool y", f"y = {op}(x, z)")
        for op in ("And", "Or", "Xor")
    },
    **{
        op: ("int64[N,S] x, int64[S] z", "int64 y", f"y = {op}(x, z)") for op in ("BitwiseAnd", "BitwiseOr")
    },
    **{
        op: ("float[N,S,4] x, float[S,1] z, float[4] u", "float y", f"y = {op}(x, z, u)")
        for op in ("Max", "Min", "Sum")
    },
    "Not": ("bool[N,S] x", "bool y", "y = Not(x)"),
    "BitwiseNot": ("int64[N,S] x", "int64 y", "y = BitwiseNot(x)"),
    "IsNaN": ("float[N,S] x", "bool y", "z = Sub(x, x) n = Div(z, z) y = IsNaN(n)"),
    "Where": ("bool[N,S,1] c, float[S,4] x, float[N,1,4] z", "float y", "y = Where(c, x, z)"),
    "Elu alpha": ("float[N,S] x", "float y", "y = Elu<alpha=0.3>(x)"),
    "LeakyRelu alpha": ("float[N,S] x", "float y", "y = LeakyRelu<alpha=0.3>(x)"),
    "Gelu": ("float[N,S] x", "float y", "y = Gelu(x)"),
    "Gelu tanh": ("float[N,S] x", "float y", 'y = Gelu<approximate="tanh">(x)'),
    "Pow": ("float[N,S] x", "float y", "e = Constant<value=float {3.0}>() y = Pow(x, e)"),
    "Pow int": ("float[N,S] x", "float y", "e = Constant<value_int=2>() y = Pow(x, e)"),
    "Pow base": ("float[N,S] x", "float y", "e = Constant<value=float {2.5}>() y = Pow(e, x)"),
    "Clip": ("float[N,S] x", "float y", "a = Constant<value_float=-0.5>() b = Constant<value_float=0.5>() y = Clip(x, a, b)"),
    "Clip lower": ("float[N,S] x", "float y", "a = Constant<value_float=-0.5>() y = Clip(x, a)"),
    "Clip upper": ("float[N,S] x", "float y", "a = Constant<value_float=-0.5>() y = Clip(x, , a)"),
    "Clip tensor": ("float[N,S] x, float a, float b", "float y", "y = Clip(x, a, b)"),
    "Pow tensors": ("float[N,S] v, float[S] z", "float y", "x = Exp(v) y = Pow(x, z)"),
    "Div int": ("int64[N,S] x, int64[S] z", "int64 y", f"{SHIFTED} y = Div(a, b)"),
    "Mod int": ("int64[N,S] x, int64[S] z", "int64 y", f"{SHIFTED} y = Mod(a, b)"),
    "Mod int C": ("int64[N,S] x, int64[S] z", "int64 y", f"{SHIFTED} y = Mod<fmod=1>(a, b)"),
    "Mod float": ("float[N,S] x, float[S] z", "float y", "y = Mod<fmod=1>(x, z)"),
    "Cast": ("float[N,S] x", "int64 y", "z = Mul(x, x) y = Cast<to=7>(z)"),
    "Cast bool": ("int64[N,S] x", "bool y", "y = Cast<to=9>(x)"),
    "Cast half": ("float[N,S] x", "float y", "h = Cast<to=10>(x) y = Cast<to=1>(h)"),
    "CastLike": ("int64[N,S] x, float[N] z", "float y", "y = CastLike(x, z)"),
    "MatMul": ("float[N,S,4] x, float[4,3] w", "float y", "y = MatMul(x, w)"),
    "MatMul batches": ("float[N,1,S,4] x, float[M,4,S] w", "float y", "y = MatMul(x, w)"),
    "Gemm": ("float[N,4] x, float[3,4] w, float[3] b", "float y", "y = Gemm<transB=1>(x, w, b)"),
    "Gemm scaled": (
        "float[4,N] x, float[4,3] w, float[N,1] b",
        "float y",
        "y = Gemm<transA=1, alpha=0.5, beta=2.0>(x, w, b)",
    ),
    "Gemm plain": ("float[N,4] x, float[3,4] w", "float y", "y = Gemm<transB=1>(x, w)"),
    "LayerNormalization": ("float[N,S,4] x, float[4] w, float[4] b", "float y", "y = LayerNormalization(x, w, b)"),
    "LayerNormalization axis": (
        "float[N,5,4] x, float[5,4] w",
        "float y",
        "y = LayerNormalization<axis=1, epsilon=0.1>(x, w)",
    ),
    "RMSNormalization": ("float[N,S,4] x, float[4] w", "float y", "y = RMSNormalization<epsilon=0.1>(x, w)"),
    "Softmax axis": ("float[N,S,4] x", "float y", "y = Softmax<axis=1>(x)"),
    **{
        f"{op} {name}": ("float[N,S,4] x", "float y", f"a = Constant<value_ints={axes}>() y = {op}<keepdims={keep}>(x, a)")
        for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")
        for name, axes, keep in (("one", "[-1]", 1), ("two", "[2, 0]", 0))
    },
    "ReduceSum all": ("float[N,S,4] x", "float y", "y = ReduceSum<keepdims=0>(x)"),
    "ReduceSum none": ("float[N,S,4] x", "float y", "y = ReduceSum<noop_with_empty_axes=1>(x)"),
    "ReduceSum int": ("int32[N,S] x", "int32 y", "a = Constant<value_ints=[1]>() y = ReduceSum(x, a)"),
    "ReduceMax int": ("int64[N,S] x", "int64 y", "a = Constant<value_ints=[1]>() y = ReduceMax(x, a)"),
    "ArgMax": ("float[N,S,4] x", "int64 y", "y = ArgMax<axis=-2, keepdims=0>(x)"),
    "CumSum": ("float[N,S,4] x", "float y", "a = Constant<value_int=-2>() y = CumSum(x, a)"),
    "CumSum int": ("int32[N,S] x", "int32 y", "a = Constant<value_int=1>() y = CumSum(x, a)"),
    "Transpose": ("float[N,S,4] x", "float y", "y = Transpose<perm=[2,0,1]>(x)"),
    "Transpose reversed": ("float[N,S,4] x", "float y", "y = Transpose(x)"),
    "Reshape": ("float[N,S,4] x", "float y", "s = Constant<value_ints=[0,-1,2,2]>() y = Reshape(x, s)"),
    "Reshape shape": (
        "float[N,S,4] x",
        "float y",
        "a = Shape<start=1, end=2>(x) b = Shape<end=1>(x) c = Constant<value_ints=[-1]>() "
        "s = Concat<axis=0>(a, b, c) y = Reshape<allowzero=1>(x, s)",
    ),
    "Reshape arithmetic": (
        "float[N,S,4] x",
        "float y",
        "s = Shape(x) i = Constant<value_int=1>() n = Gather(s, i) four = Constant<value_int=4>() "
        "m = Mul(n, four) z = Constant<value_ints=[0]>() m1 = Unsqueeze(m, z) c = Constant<value_ints=[-1]>() "
        "t = Concat<axis=0>(c, m1) y = Reshape(x, t)",
    ),
    "Reshape product": (
        "float[N,S,4] x",
        "float y",
        "s = Shape<start=0, end=2>(x) p = ReduceProd(s) c = Constant<value_ints=[4]>() "
        "t = Concat<axis=0>(p, c) y = Reshape(x, t)",
    ),
    "Reshape data": (
        "float[N,S,4] x, int64[1] ids",
        "float y",
        "z = Sub(ids, ids) one = Constant<value_ints=[1]>() o = Add(z, one) four = Constant<value_ints=[4,-1]>() "
        "t = Concat<axis=0>(o, four) y = Reshape(x, t)",
    ),
    "Flatten": ("float[N,S,4] x", "float y", "y = Flatten<axis=2>(x)"),
    "Flatten last": ("float[N,S,4] x", "float y", "y = Flatten<axis=-1>(x)"),
    "Shape": ("float[N,S,4] x", "int64 y", "y = Shape(x)"),
    "Shape part": ("float[N,S,4] x", "int64 y", "y = Shape<start=-2, end=-1>(x)"),
    "Size": ("float[N,S,4] x", "int64 y", "y = Size(x)"),
    "Squeeze": ("float[N,1,S,1] x", "float y", "a = Constant<value_ints=[-1,1]>() y = Squeeze(x, a)"),
    "Squeeze all": ("float[1,3,1] x", "float y", "y = Squeeze(x)"),
    "Unsqueeze": ("float[N,S] x", "float y", "a = Constant<value_ints=[-1,0]>() y = Unsqueeze(x, a)"),
    "Expand": ("float[N,1,4] x", "float y", "s = Constant<value_ints=[2,1,5,1]>() y = Expand(x, s)"),
    "Expand shape": ("float[N,1,4] x, float[N,S,1] z", "float y", "s = Shape(z) y = Expand(x, s)"),
    "Tile": ("float[N,S,4] x", "float y", "r = Constant<value_ints=[1,2,3]>() y = Tile(x, r)"),
    "Concat": ("float[N,S,4] x, float[N,M,4] z", "float y", "y = Concat<axis=1>(x, z, x)"),
    "Slice": (
        "float[N,S,4] x",
        "float y",
        "a = Constant<value_ints=[1,-3]>() b = Constant<value_ints=[9223372036854775807,-1]>() "
        "c = Constant<value_ints=[1,-1]>() y = Slice(x, a, b, c)",
    ),
    "Slice step": (
        "float[N,S,4] x",
        "float y",
        "a = Constant<value_ints=[-9223372036854775808,0]>() b = Constant<value_ints=[9223372036854775807,4]>() "
        "c = Constant<value_ints=[1,2]>() d = Constant<value_ints=[2,3]>() y = Slice(x, a, b, c, d)",
    ),
    "Slice size": (
        "float[N,8,4] x, float[S] z",
        "float y",
        "a = Constant<value_ints=[1]>() b = Shape(z) y = Slice(x, a, b, a)",
    ),
    "Slice last": ("float[N,S] x", "float y", "a = Constant<value_ints=[-2]>() b = Constant<value_ints=[2147483647]>() c = Constant<value_ints=[1]>() y = Slice(x, a, b, c)"),
    "Slice beyond": ("float[N,S] x", "float y", "a = Constant<value_ints=[-100]>() b = Constant<value_ints=[100]>() c = Constant<value_ints=[1]>() y = Slice(x, a, b, c)"),
    "Split": ("float[N,S,6] x", "float y, float z", "s = Constant<value_ints=[4,2]>() y, z = Split<axis=-1>(x, s)"),
    "Split equal": ("float[N,S,5] x", "float y, float z", "y, z = Split<axis=2, num_outputs=2>(x)"),
    "Split sizes": (
        "float[N,S,4] x",
        "float y",
        "s = Shape(x) a, b = Split<num_outputs=2>(s) c = Concat<axis=0>(b, a) y = Reshape(x, c)",
    ),
    "Gather embedding": ("int64[N,S] i, float[4,6] w", "float y", "y = Gather(w, i)"),
    "Gather axis": ("int64[M,2] i, float[N,4,S] x", "float y", "y = Gather<axis=1>(x, i)"),
    "Gather vector": ("int64[M] i, float[N,4,S] x", "float y", "y = Gather<axis=-2>(x, i)"),
    "Gather scalar": ("int64 i, float[N,4,S] x", "float y", "y = Gather<axis=1>(x, i)"),
    "Gather constant": ("float[N,4,S] x", "float y", "i = Constant<value_int=-1>() y = Gather<axis=1>(x, i)"),
    "Gather constants": ("float[N,4,S] x", "float y", "i = Constant<value_ints=[-1,0]>() y = Gather<axis=1>(x, i)"),
    "Gather last": (
        "float[N,S,4] x",
        "float y",
        "n = Shape<start=1, end=2>(x) one = Constant<value_ints=[1]>() m = Sub(n, one) k = Squeeze(m) "
        "y = Gather<axis=1>(x, k)",
    ),
    "GatherElements": ("int64[N,M] i, float[N,4] x", "float y", "y = GatherElements<axis=1>(x, i)"),
    "GatherND": ("int64[S,M,2] i, float[3,2,4] x", "float y", "y = GatherND(x, i)"),
    "GatherND full": ("int64[S,3] i, float[3,2,4] x", "float y", "y = GatherND(x, i)"),
    "GatherND negative": (
        "float[N,S,4] x",
        "float y",
        "i = Constant<value=int64[2,2] {-1, 1, 0, -2}>() y = GatherND(x, i)",
    ),
    "Gather negative": (
        "int64[M,2] i, float[N,4,S] x",
        "float y",
        "one = Constant<value_int=1>() j = Sub(i, one) y = Gather<axis=1>(x, j)",
    ),
    "ScatterND": ("float[3,2,4] x, float[M,4] u", "float y", f"{PLACES} y = ScatterND(x, i, u)"),
    "ScatterND add": (
        "float[3,2,4] x, float[M,4] u",
        "float y",
        f'{PLACES} y = ScatterND<reduction="add">(x, i, u)',
    ),
    **{
        f"ScatterElements {reduction}": (
            "float[N,4] x, float[N,2] u, int64[N,2] v",
            "float y",
            "z = Mul(v, v) o = Constant<value_ints=[0,2]>() i = Add(z, o) "
            f'y = ScatterElements<axis=1, reduction="{reduction}">(x, i, u)',
        )
        for reduction in ("none", "add", "mul", "max", "min")
    },
    "NonZero": ("bool[N,S] x", "int64 y", "y = NonZero(x)"),
    "NonZero sum": ("bool[N,S] x", "int64 y", "i = NonZero(x) n = Shape<start=1>(i) y = Add(n, n)"),
    "TopK": (
        "float[N,S,4] x",
        "float y, int64 i",
        "k = Constant<value_ints=[2]>() y, i = TopK<axis=1>(x, k)",
    ),
    "TopK smallest": (
        "float[N,S,4] x",
        "float y, int64 i",
        "k = Constant<value_ints=[3]>() y, i = TopK<largest=0>(x, k)",
    ),
    "ReduceProd": ("float[N,S,4] x", "float y", "a = Constant<value_ints=[0,-1]>() y = ReduceProd<keepdims=0>(x, a)"),
    "Conv": (
        "float[N,4,S,6] x, float[6,2,3,2] w, float[6] b",
        "float y",
        "y = Conv<group=2, strides=[2,1], dilations=[1,2], pads=[1,2,1,2]>(x, w, b)",
    ),
    "Conv sides": ("float[N,4,S] x, float[6,4,3] w", "float y", "y = Conv<pads=[2,0]>(x, w)"),
    "ConvTranspose": (
        "float[N,4,S,6] x, float[4,3,3,2] w, float[6] b",
        "float y",
        "y = ConvTranspose<group=2, strides=[2,3], pads=[1,0,1,0], output_padding=[1,2]>(x, w, b)",
    ),
    "MaxPool": ("float[N,4,S,6] x", "float y", "y = MaxPool<kernel_shape=[3,2], strides=[2,1], pads=[1,0,1,0]>(x)"),
    "MaxPool dilated": ("float[N,4,S,6] x", "float y", "y = MaxPool<kernel_shape=[2,2], dilations=[2,1]>(x)"),
    "MaxPool ceil": ("float[N,4,8,7] x", "float y", "y = MaxPool<kernel_shape=[3,2], strides=[2,2], ceil_mode=1>(x)"),
    "AveragePool": ("float[N,4,S,6] x", "float y", "y = AveragePool<kernel_shape=[3,2], pads=[1,1,1,1]>(x)"),
    "AveragePool pads": (
        "float[N,4,S,6] x",
        "float y",
        "y = AveragePool<kernel_shape=[3,2], pads=[1,1,1,1], count_include_pad=1>(x)",
    ),
    "AveragePool wide": ("float[N,4,8,7] x", "float y", "y = AveragePool<kernel_shape=[3,2], strides=[2,2], pads=[0,0,1,1]>(x)"),
    "BatchNormalization": (
        "float[N,4,S] x, float[4] w, float[4] b, float[4] m, float[4] v",
        "float y",
        "e = Exp(v) y = BatchNormalization<epsilon=0.1>(x, w, b, m, e)",
    ),
    "InstanceNormalization": ("float[N,4,S] x, float[4] w, float[4] b", "float y", "y = InstanceNormalization(x, w, b)"),
    "Pad": ("float[N,S,4] x", "float y", "p = Constant<value_ints=[0,1,2,0,0,3]>() v = Constant<value_float=1.5>() y = Pad(x, p, v)"),
    "Pad axes": (
        "float[N,S,4] x",
        "float y",
        'p = Constant<value_ints=[1,2,3,0]>() a = Constant<value_ints=[-1,1]>() y = Pad<mode="reflect">(x, p, , a)',
    ),
    "Pad edge": ("float[N,S,4] x", "float y", 'p = Constant<value_ints=[0,1,1,0,2,1]>() y = Pad<mode="edge">(x, p)'),
    "Resize nearest": (
        "float[N,2,S,6] x",
        "float y",
        "f = Constant<value_floats=[1.0,1.0,2.0,0.5]>() "
        'y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , f)',
    ),
    "Resize linear": (
        "float[N,2,S,6] x",
        "float y",
        "a = Shape<end=2>(x) b = Constant<value_ints=[7,4]>() s = Concat<axis=0>(a, b) "
        'y = Resize<mode="linear", coordinate_transformation_mode="pytorch_half_pixel">(x, , , s)',
    ),
    "Resize cubic": (
        "float[N,2,S,6] x",
        "float y",
        "b = Constant<value_ints=[7,4]>() "
        'y = Resize<mode="cubic", coordinate_transformation_mode="align_corners", axes=[2,3]>(x, , , b)',
    ),
    "GridSample": ("float[N,2,S,6] x, float[N,3,4,2] g", "float y", "y = GridSample<align_corners=1>(x, g)"),
    "GridSample border": (
        "float[N,2,S,6] x, float[N,3,4,2] g",
        "float y",
        'y = GridSample<mode="nearest", padding_mode="border">(x, g)',
    ),
    "Range": (
        "float[N,S] x",
        "int64 y",
        "n = Shape<start=1>(x) z = Squeeze(n) a = Constant<value_int=1>() b = Constant<value_int=3>() y = Range(a, z, b)",
    ),
    "Range float": (
        "float[N,S] x",
        "float y",
        "n = Shape<start=1>(x) z = Squeeze(n) f = Cast<to=1>(z) a = Constant<value_float=0.0>() "
        "b = Constant<value_float=1.0>() y = Range(a, f, b)",
    ),
    "Range constant": (
        "float[N,S] x",
        "int64 y",
        "a = Constant<value_int=2>() b = Constant<value_int=9>() c = Constant<value_int=3>() y = Range(a, b, c)",
    ),
    "Range data": (
        "int64 n",
        "int64 y",
        "a = Constant<value_int=-1>() b = Constant<value_int=1>() m = Add(n, b) y = Range(a, m, b)",
    ),
    "ConstantOfShape": (
        "float[N,S] x",
        "float y",
        "s = Shape(x) f = ConstantOfShape<value=float[1] {2.5}>(s) y = Add(x, f)",
    ),
    "ConstantOfShape zero": ("float[N,S] x", "float y", "s = Shape(x) f = ConstantOfShape(s) y = Add(x, f)"),
    "Expand through ones": (  # as the exporter through TorchScript writes expand()
        "float[N,1,4] x, float[S] z",
        "float y",
        "n = Shape(z) m = Constant<value_ints=[-1]>() t = Concat<axis=0>(m, n, m) c = Constant<value_ints=[3]>() "
        "ones = ConstantOfShape<value=int64[1] {1}>(c) minus = Mul(ones, m) e = Equal(t, minus) "
        "s = Where(e, ones, t) y = Expand(x, s)",
    ),
    "Trilu": ("float[N,S,4] x", "float y", "y = Trilu(x)"),
    "Trilu lower": ("float[N,S,4] x", "float y", "k = Constant<value_int=1>() y = Trilu<upper=0>(x, k)"),
    "Trilu bool": ("bool[N,S,4] x", "bool y", "k = Constant<value_int=-1>() y = Trilu(x, k)"),
    "sizes": (
        "float[N,S] x",
        "int64 y",
        "s = Shape(x) a = Constant<value_ints=[7,3]>() b = Add(s, a) c = Mul(b, s) d = Sub(c, s) "
        "e = Div(d, a) two = Constant<value_ints=[4]>() f = Mod(e, two) g = Max(e, a) h = Min(g, b) n = Neg(h) "
        "y = Concat<axis=0>(e, f, g, h, n)",
    ),
    "constants": (
        "float[N,S] x",
        "float y",
        "a = Constant<value_floats=[1.0,2.0,3.0,4.0,5.0]>() b = Add(x, a) c = Constant<value=double {0.5}>() "
        "d = Cast<to=1>(c) e = Constant<value=int32[5] {1,2,3,4,5}>() f = Cast<to=1>(e) g = Mul(b, d) y = Add(g, f)",
    ),
    "input is output": ("float[N,S] x", "float y, float z", "y = Identity(x) z = Identity(x)"),
    "constant is output": ("float[N,S] x", "float y", "y = Constant<value=float[2] {1.0,2.0}>()"),
    "half": ("float16[N,S] x, float16[S] z", "float16 y", "a = Mul(x, z) y = Softmax(a)"),
    "double": ("double[N,S] x, double[S] z", "double y", "a = Mul(x, z) y = Exp(a)"),
}

# ONNX Runtime has kernels for these from other opsets on.
OPSETS = {"RMSNormalization": (23, 24), "BitwiseAnd": (18, 22)}


def make_model(inputs, outputs, body, opset):
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> g ({inputs}) => ({outputs}) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model


def make_inputs(model):
    random = np.random.default_rng(0)
    inputs = {}
    for port in model.graph.input:
        tensor = port.type.tensor_type
        shape = [SIZES.get(d.dim_param, d.dim_value) for d in tensor.shape.dim]
        dtype = DTYPES[tensor.elem_type]
        if np.issubdtype(dtype, np.floating):
            inputs[port.name] = random.standard_normal(shape).astype(dtype)
        else:
            inputs[port.name] = np.asarray(random.integers(0, 2, shape)).astype(dtype)
    return inputs


def save_export(directory, model):
    onnx.save(model, directory / "model.onnx")
    component = {"file": "model.onnx", "metadata": {"architecture": "Case"}}
    manifest = {"schema_version": 1, "export_format": "onnx", "components": {"model": component}}
    (directory / "export.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("name", CASES)
def test_operator(tmp_path, name):
    inputs, outputs, body = CASES[name]
    for opset in OPSETS.get(name, (18, 22)):
        if opset < 20 and ("Gelu" in body or "IsNaN" in body):
            continue
        model = make_model(inputs, outputs, body, opset)
        feeds = make_inputs(model)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        names = [port.name for port in session.get_outputs()]
        expected = dict(zip(names, session.run(None, feeds)))
        save_export(tmp_path, model)
        save_file(feeds, tmp_path / "in.safetensors")
        ferry("run", tmp_path, "-i", tmp_path / "in.safetensors", "-o", tmp_path / "out.safetensors", "--runtime", "reference")
        actual = load_file(tmp_path / "out.safetensors")
        for output, wanted in expected.items():
            assert actual[output].dtype == wanted.dtype
        compare(actual, expected, 1e-3 if name in ("half", "Cast half") else 1e-5)
