#!/usr/bin/env python3
"""Export one small module per operation of indexing, ordering and mathematics with torch.export, with
inputs and expected outputs at two shapes:  make_programs_index.py DIRECTORY [CASE...]

Every case becomes NAME.pt2, NAME.1.inputs.safetensors, NAME.1.expected.safetensors and the same with
2, unless the operation fixes all sizes. Inputs are called args_0, args_1, ...; the output is called output, several
ones 0, 1, ... Dimensions that differ between the two runs are dynamic.
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch.export import Dim, export

CASES = {}
F32, F16, I64, I32, BOOL = torch.float32, torch.float16, torch.int64, torch.int32, torch.bool


class Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        result = self.function(*args)
        return result if isinstance(result, torch.Tensor) else tuple(result)


class Make:
    """Reproducible tensors: floats are normal, integers within bounds, masks mostly mixed."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def floats(self, *shape, dtype=F32, scale=2.0):
        return (torch.randn(shape, generator=self.generator) * scale).to(dtype)

    def integers(self, low, high, *shape, dtype=I64):
        return torch.randint(low, high, shape, generator=self.generator).to(dtype)

    def mask(self, *shape, chance=0.5):
        return torch.rand(shape, generator=self.generator) < chance

    def permutation(self, n):
        return torch.randperm(n, generator=self.generator)


def case(name, function, inputs):
    """`inputs(make, n)` gives the arguments for a run; n is 4, then 7."""
    CASES[name] = (function, inputs)


def index_cases():
    x = lambda m, n: m.floats(n, 5, 6)
    case("index_first", lambda a, i: a[i], lambda m, n: (x(m, n), m.integers(-4, 4, 3)))
    case("index_first_2d", lambda a, i: a[i], lambda m, n: (x(m, n), m.integers(0, 4, n, 2)))
    case("index_scalar", lambda a, i: a[i], lambda m, n: (x(m, n), torch.tensor(-2)))
    case("index_middle", lambda a, i: a[:, i], lambda m, n: (x(m, n), m.integers(-5, 5, n)))
    case("index_last_int32", lambda a, i: a[..., i], lambda m, n: (x(m, n), m.integers(-6, 6, 2, 3, dtype=I32)))
    case("index_neighbours", lambda a, i, j: a[:, i, j], lambda m, n: (x(m, n), m.integers(-5, 5, n), m.integers(0, 6, n)))
    case("index_apart", lambda a, i, j: a[i, :, j], lambda m, n: (x(m, n), m.integers(-4, 4, 3), m.integers(-6, 6, 3)))
    case("index_apart_broadcast", lambda a, i, j: a[i, :, j], lambda m, n: (x(m, n), m.integers(0, 4, 3, 1), m.integers(0, 6, n)))
    case("index_all", lambda a, i, j, k: a[i, j, k], lambda m, n: (x(m, n), m.integers(0, 4, n), m.integers(0, 5, 1), m.integers(0, 6, n)))
    case("index_mask_gather", lambda a, i, j: a[i[:, None], j[None, :]], lambda m, n: (m.mask(n, 6), m.integers(0, 4, 2), m.integers(0, 6, 5)))
    case("index_empty", lambda a, i: a[i], lambda m, n: (x(m, n), torch.zeros(0, dtype=I64)))
    case("index_int64_data", lambda a, i: a[i], lambda m, n: (m.integers(-99, 99, n, 3), m.integers(0, 4, 5)))
    case("index_half_data", lambda a, i, j: a[i, j], lambda m, n: (m.floats(n, 3, dtype=F16), m.integers(0, 4, 5), m.integers(0, 3, 5)))
    case("index_mask", lambda a, b: a[b], lambda m, n: (m.floats(n, 3), m.mask(n)))
    case("index_mask_2d", lambda a, b: a[b], lambda m, n: (x(m, n), m.mask(n, 5)))
    case("index_mask_second", lambda a, b: a[:, b], lambda m, n: (x(m, n), m.mask(5)))
    case("index_mask_none", lambda a, b: a[b] * 2, lambda m, n: (m.floats(n, 3), torch.zeros(n, dtype=BOOL)))
    case("index_mask_sum", lambda a, b: a[b].sum(0), lambda m, n: (m.floats(n, 3), m.mask(n)))
    case("nonzero", lambda a: a.nonzero(), lambda m, n: (m.mask(n, 3),))
    case("nonzero_integers", lambda a: torch.nonzero(a), lambda m, n: (m.integers(0, 2, n, 3),))
    case("where_coordinates", lambda a: torch.where(a > 0), lambda m, n: (m.floats(n, 3),))
    case("argwhere", lambda a: torch.argwhere(a > 0), lambda m, n: (m.floats(n, 2, 2),))
    case("item", lambda a, b: a + torch.arange(b.item()).sum(), lambda m, n: (m.floats(n), torch.tensor(n + 1)))
    case("arange_centers", lambda a: a + torch.arange(0.5, a.shape[0]), lambda m, n: (m.floats(n),))
    case("arange_thirds", lambda a: torch.arange(-0.5, a.shape[0] - 0.25, 0.375) + a[:1], lambda m, n: (m.floats(n),))
    case("arange_down_whole", lambda a: torch.arange(a.shape[0], -a.shape[0], -1.0, dtype=I64), lambda m, n: (m.floats(n),))
    case("arange_down", lambda a: torch.arange(a.shape[0], 0.5, -0.75) + a[:1], lambda m, n: (m.floats(n),))
    case("take_along_dim", lambda a, i: torch.take_along_dim(a, i, 1), lambda m, n: (x(m, n), m.integers(0, 5, n, 2, 6)))


def put(a, index, values, accumulate=False):
    return torch.index_put(a, index, values, accumulate)


def put_cases():
    x = lambda m, n: m.floats(n, 5, 6)
    case("index_put_rows", lambda a, i, v: put(a, (i,), v), lambda m, n: (x(m, n), torch.tensor([-1, 0, 2]), m.floats(3, 5, 6)))
    case("index_put_broadcast", lambda a, i, v: put(a, (i,), v), lambda m, n: (x(m, n), m.integers(0, 4, 3), m.floats(6) * 0 + 3))
    case("index_put_pairs", lambda a, i, j, v: put(a, (i, j), v), lambda m, n: (x(m, n), m.permutation(4), m.integers(0, 5, 4), m.floats(4, 6)))
    case("index_put_accumulate", lambda a, i, v: put(a, (i,), v, True), lambda m, n: (x(m, n), m.integers(-4, 4, 9), m.floats(9, 5, 6)))
    case("index_put_accumulate_int", lambda a, i, v: put(a, (i,), v, True), lambda m, n: (m.integers(-9, 9, n), m.integers(-4, 4, 9), m.integers(0, 9, 9)))
    case("index_put_mask_scalar", lambda a, b: put(a, (b,), torch.tensor(7.0)), lambda m, n: (x(m, n), m.mask(n, 5)))
    case("index_put_mask_rows", lambda a, b, v: put(a, (b,), v), lambda m, n: (x(m, n), m.mask(n, 5), m.floats(6)))
    case("index_put_mask_packed", lambda a, b: put(a, (b,), a[b] * 2), lambda m, n: (x(m, n), m.mask(n)))
    case("index_put_mask_packed_2d", lambda a, b: put(a, (b,), a[b] + 1, True), lambda m, n: (x(m, n), m.mask(n, 5)))
    case("index_put_mask_empty", lambda a, b: put(a, (b,), a[b] * 2), lambda m, n: (x(m, n), torch.zeros(n, dtype=BOOL)))

    def slices(a, i, v):
        a = a.clone()
        a[:, i] = v
        return a

    def inner(a, i, v):
        a = a.clone()
        a[:, :, i] = v
        a[0, ..., 1:5:2] = 9.0
        return a * 2

    case("index_put_second", slices, lambda m, n: (x(m, n), torch.tensor([3, 1]), m.floats(n, 2, 6)))
    case("index_put_third", inner, lambda m, n: (x(m, n), torch.tensor([-1, 0]), m.floats(5, 2)))

    def through_view(a, b):
        a = a.clone()
        a.view(-1)[b] = 1.5
        return a, a.sum()

    case("index_put_through_view", through_view, lambda m, n: (m.floats(n, 6), m.integers(0, 24, 3)))

    def diagonal(a):
        a = a.clone()
        a.diagonal(1).fill_(7.0)
        a.diagonal(dim1=-2, dim2=-1).mul_(2.0)
        return a

    case("write_diagonal", diagonal, lambda m, n: (m.floats(5, 5),))
    case("index_copy", lambda a, i, s: a.index_copy(2, i, s), lambda m, n: (m.floats(2, 3, 9, 4), m.permutation(9)[:3], m.floats(2, 3, 3, 4)))
    case("index_copy_cache", lambda a, i, s: a.index_copy(1, i, s), lambda m, n: (m.floats(n, 9, 4), torch.arange(2, 5), m.floats(n, 3, 4)))
    case("index_add", lambda a, i, s: a.index_add(1, i, s, alpha=2), lambda m, n: (m.floats(n, 5, 3), m.integers(0, 5, 8), m.floats(n, 8, 3)))
    case("index_fill", lambda a, i: a.index_fill(1, i, -1.0), lambda m, n: (m.floats(n, 5), torch.tensor([-1, 2])))
    case("masked_scatter", lambda a, b, s: a.masked_scatter(b, s), lambda m, n: (m.floats(n, 6), m.mask(n, 6), m.floats(n * 6)))
    case("masked_scatter_rows", lambda a, b, s: a.masked_scatter(b.unsqueeze(-1), s), lambda m, n: (x(m, n), m.mask(n, 5), m.floats(n * 5, 6)))
    case("masked_scatter_none", lambda a, b, s: a.masked_scatter(b, s), lambda m, n: (m.floats(n, 6), torch.zeros(n, 6, dtype=BOOL), m.floats(2)))


def scatter_cases():
    index = lambda m, n: m.integers(0, 5, n, 3)
    unique = lambda m, n: torch.stack([m.permutation(5)[:3] for _ in range(n)])
    x = lambda m, n: m.floats(n, 5)
    case("scatter_src", lambda a, i, s: a.scatter(1, i, s), lambda m, n: (x(m, n), unique(m, n), m.floats(n, 3)))
    case("scatter_src_larger", lambda a, i, s: a.scatter(-1, i, s), lambda m, n: (x(m, n), unique(m, n), m.floats(n, 5)))
    case("scatter_value", lambda a, i: a.scatter(1, i, 2.5), lambda m, n: (x(m, n), index(m, n)))
    case("scatter_bool", lambda a, i: a.scatter(1, i, True), lambda m, n: (m.mask(n, 5), index(m, n)))
    case("scatter_add", lambda a, i, s: a.scatter_add(1, i, s), lambda m, n: (x(m, n), index(m, n), m.floats(n, 3)))
    case("scatter_add_int", lambda a, i, s: a.scatter_add(0, i, s), lambda m, n: (m.integers(0, 9, 5), m.integers(0, 5, n), m.integers(0, 9, n)))
    for how in ("sum", "prod", "mean", "amax", "amin"):
        for keep in (True, False):
            case(f"scatter_reduce_{how}_{keep}".lower(),
                 lambda a, i, s, how=how, keep=keep: a.scatter_reduce(1, i, s, how, include_self=keep),
                 lambda m, n: (x(m, n), index(m, n), m.floats(n, 3)))


def order_cases():
    distinct = lambda m, *shape: torch.randperm(torch.Size(shape).numel(), generator=m.generator).reshape(shape)
    case("topk", lambda a: torch.topk(a, 3), lambda m, n: (m.floats(n, 6),))
    case("topk_smallest", lambda a: torch.topk(a, 2, 0, largest=False), lambda m, n: (distinct(m, n, 6),))
    case("topk_int32", lambda a: torch.topk(a, 2), lambda m, n: (distinct(m, n, 6).to(I32),))
    case("topk_half", lambda a: torch.topk(a, 2), lambda m, n: (distinct(m, n, 6).to(F16),))
    case("sort", lambda a: torch.sort(a), lambda m, n: (m.floats(3, n),))
    case("sort_descending", lambda a: torch.sort(a, 0, descending=True), lambda m, n: (distinct(m, n, 3),))
    case("sort_ties", lambda a: torch.sort(a).values, lambda m, n: (m.integers(0, 3, 2, n),))
    case("sort_stable", lambda a: torch.sort(a, stable=True, dim=1), lambda m, n: (m.integers(0, 3, 2, n),))
    case("sort_stable_down", lambda a: torch.sort(a, stable=True, dim=1, descending=True), lambda m, n: (m.integers(0, 3, 2, n),))
    case("argsort", lambda a: torch.argsort(a, 1), lambda m, n: (distinct(m, 2, n),))
    case("one_hot", lambda a: F.one_hot(a, 6), lambda m, n: (m.integers(0, 6, n, 2),))
    case("histc", lambda a: torch.histc(a, 4, 0, 3), lambda m, n: (m.integers(0, 4, n * 3).float(),))
    case("histc_outside", lambda a: torch.histc(a, 5, -1, 1), lambda m, n: (m.floats(n * 5),))
    case("bincount", lambda a: torch.bincount(a, minlength=9), lambda m, n: (m.integers(0, 6, n * 2),))
    case("bucketize", lambda a: torch.bucketize(a, torch.tensor([-1.0, 0.0, 0.5, 2.0])), lambda m, n: (torch.cat([m.floats(n), torch.tensor([0.0, 0.5])]),))
    case("bucketize_right", lambda a: torch.bucketize(a, torch.tensor([-1, 0, 2]), right=True, out_int32=True), lambda m, n: (m.integers(-2, 4, n, 3),))
    case("searchsorted", lambda a, b: torch.searchsorted(a, b), lambda m, n: (m.floats(n, 6).sort(-1).values, m.floats(n, 4)))
    case("searchsorted_right", lambda a, b: torch.searchsorted(a, b, side="right"), lambda m, n: (m.integers(0, 9, 6).sort().values, m.integers(0, 9, n)))


UNARY = dict(
    floor=torch.floor, ceil=torch.ceil, round=torch.round, trunc=torch.trunc, sign=torch.sign, sgn=torch.sgn,
    expm1=torch.expm1, exp2=torch.exp2, atan=torch.atan, tan=torch.tan, sinh=torch.sinh, cosh=torch.cosh,
    asinh=torch.asinh, square=torch.square, mish=F.mish, selu=F.selu, celu=lambda a: F.celu(a, 0.7),
    hardsigmoid=F.hardsigmoid, logsigmoid=F.logsigmoid, softsign=F.softsign, tanhshrink=F.tanhshrink,
    threshold=lambda a: F.threshold(a, 0.3, -2.0), softmin=lambda a: F.softmin(a, dim=1), glu=F.glu,
    round_decimals=lambda a: torch.round(a, decimals=1), isnan=torch.isnan, isfinite=torch.isfinite,
)
OPEN = dict(asin=torch.asin, acos=torch.acos, atanh=torch.atanh, erfinv=torch.erfinv)
POSITIVE = dict(log1p=torch.log1p, log2=torch.log2, log10=torch.log10)


def math_cases():
    for name, function in UNARY.items():
        case(name, function, lambda m, n: (m.floats(n, 6),))
        if name in ("floor", "sign", "mish", "trunc", "glu"):
            case(f"{name}_half", function, lambda m, n: (m.floats(n, 6, dtype=F16),))
    for name, function in OPEN.items():
        case(name, function, lambda m, n: (torch.tanh(m.floats(n, 6)) * 0.999,))
    for name, function in POSITIVE.items():
        case(name, function, lambda m, n: (m.floats(n, 6).abs() + 1e-3,))
    case("log1p_small", torch.log1p, lambda m, n: (m.floats(n) * 1e-6,))
    case("acosh", torch.acosh, lambda m, n: (m.floats(n).abs() + 1,))
    case("round_halves", torch.round, lambda m, n: (torch.arange(-n, n) / 2,))
    case("sign_int", torch.sign, lambda m, n: (m.integers(-3, 3, n),))
    case("floor_int", torch.floor, lambda m, n: (m.integers(-3, 3, n),))
    odd = lambda m, n: (torch.cat([m.floats(n), torch.tensor([float("nan"), float("inf"), -float("inf")])]),)
    case("isinf", torch.isinf, odd)
    case("isnan_odd", torch.isnan, odd)
    case("isfinite_odd", torch.isfinite, odd)
    case("nan_to_num", lambda a: torch.nan_to_num(a, 1.0, 2.0, -3.0), odd)
    case("nan_to_num_default", lambda a: torch.nan_to_num(a) * 1e-38, odd)
    case("prelu", lambda a, w: F.prelu(a, w), lambda m, n: (m.floats(n, 3, 2), m.floats(3)))


def binary_cases():
    floats = lambda m, n: (m.floats(n, 5), m.floats(5) + 0.1)
    whole = lambda m, n: (m.integers(-9, 9, n, 5), torch.tensor([3, -2, 1, -5, 4]))
    for kind, inputs in (("float", floats), ("int", whole)):
        case(f"floor_divide_{kind}", torch.floor_divide, inputs)
        case(f"remainder_{kind}", torch.remainder, inputs)
        case(f"fmod_{kind}", torch.fmod, inputs)
        for mode in ("floor", "trunc"):
            case(f"div_{mode}_{kind}", lambda a, b, mode=mode: torch.div(a, b, rounding_mode=mode), inputs)
    case("floor_divide_scalar", lambda a: a // 3, lambda m, n: (m.integers(-9, 9, n),))
    case("floor_divide_int32", lambda a: a // 2, lambda m, n: (m.integers(-9, 9, n, dtype=I32),))
    case("remainder_scalar", lambda a: a % 3, lambda m, n: (m.integers(-9, 9, n),))
    case("remainder_scalar_float", lambda a: a % -1.5, lambda m, n: (m.floats(n),))
    case("pow_tensors", torch.pow, lambda m, n: (m.floats(n, 3).abs(), m.floats(3)))
    case("pow_int", torch.pow, lambda m, n: (m.integers(-4, 4, n), m.integers(0, 4, n)))
    case("pow_mixed", torch.pow, lambda m, n: (torch.tensor(2.0), m.integers(-4, 4, n, dtype=I32)))
    case("atan2", torch.atan2, lambda m, n: (m.floats(n, 5), m.floats(5)))
    for name, function in dict(xor=torch.bitwise_xor, logical_xor=torch.logical_xor).items():
        case(f"{name}_bool", function, lambda m, n: (m.mask(n), m.mask(n)))
    case("xor_int", torch.bitwise_xor, lambda m, n: (m.integers(-9, 9, n), m.integers(-9, 9, n)))
    case("logical_xor_float", torch.logical_xor, lambda m, n: (m.integers(0, 2, n).float(), m.floats(n)))
    case("and_scalar", lambda a: a & 6, lambda m, n: (m.integers(-9, 9, n),))
    case("shift_left", lambda a, b: a << b, lambda m, n: (m.integers(-9, 9, n), m.integers(0, 5, n)))
    case("shift_right", lambda a: a >> 2, lambda m, n: (m.integers(-99, 99, n),))
    case("lerp", lambda a, b: torch.lerp(a, b, 0.3), floats)
    case("addcmul", lambda a, b: torch.addcmul(a, a, b, value=0.5), floats)
    case("addcdiv", lambda a, b: torch.addcdiv(a, a, b, value=0.5), floats)


def arrange_cases():
    square = lambda m, n: (m.floats(2, n, 5),)
    for offset in (-1, 0, 2):
        case(f"tril_{offset}", lambda a, o=offset: torch.tril(a, o), square)
        case(f"triu_{offset}", lambda a, o=offset: torch.triu(a, o), square)
        case(f"diagonal_{offset}", lambda a, o=offset: torch.diagonal(a, o, 1, 2), lambda m, n: (m.floats(n, 4, 5),))
        case(f"diag_{offset}", lambda a, o=offset: torch.diag(a, o), lambda m, n: (m.floats(5),))
    case("tril_bool", torch.tril, lambda m, n: (m.mask(n, n),))
    case("diagonal_first", lambda a: torch.diagonal(a), lambda m, n: (m.floats(4, 5, n),))
    case("diag_embed", torch.diag_embed, lambda m, n: (m.floats(n, 4),))
    case("eye", lambda a: a + torch.eye(5), lambda m, n: (m.floats(n, 5, 5),))
    case("flip", lambda a: torch.flip(a, (0, -1)), lambda m, n: (m.floats(n, 3, 4),))
    case("roll", lambda a: torch.roll(a, (1, -2), (0, 2)), lambda m, n: (m.floats(n, 3, 5),))
    case("roll_flat", lambda a: torch.roll(a, 3), lambda m, n: (m.floats(3, 5),))
    case("roll_far", lambda a: torch.roll(a, 8, 1), lambda m, n: (m.floats(n, 5),))
    case("meshgrid", lambda a, b: torch.meshgrid(a, b, indexing="ij"), lambda m, n: (m.floats(n), m.floats(3)))
    case("meshgrid_xy", lambda a, b: torch.meshgrid(a, b, indexing="xy"), lambda m, n: (m.floats(n), m.floats(3)))
    case("broadcast_tensors", lambda a, b: torch.broadcast_tensors(a, b), lambda m, n: (m.floats(n, 1), m.floats(3)))
    case("tile", lambda a: torch.tile(a, (2, 3)), lambda m, n: (m.floats(n, 2),))
    case("tile_short", lambda a: torch.tile(a, (2,)), lambda m, n: (m.floats(n, 2),))
    case("repeat_interleave", lambda a: torch.repeat_interleave(a, 2, 0), lambda m, n: (m.floats(n, 2),))
    case("repeat_interleave_tensor", lambda a, r: torch.repeat_interleave(a, r, 0), lambda m, n: (m.floats(n, 2), m.integers(0, 3, n)))
    case("linspace", lambda a: a + torch.linspace(-1, 2, 5), lambda m, n: (m.floats(n, 5),))
    case("unfold", lambda a: a.unfold(1, 3, 2), lambda m, n: (m.floats(n, 9, 2),))
    case("unfold_dynamic", lambda a: a.unfold(0, 2, 1), lambda m, n: (m.floats(n, 2),))
    case("as_strided", lambda a: torch.as_strided(a, (3, 2), (2, 1), 1), lambda m, n: (m.floats(4, 3),))
    case("narrow", lambda a: a.narrow(1, 1, 3) * 1, lambda m, n: (m.floats(n, 6),))


def product_cases():
    for name, equation, shapes in (
        ("matmul", "ij,jk->ik", ("n3", "34")),
        ("batched", "bhid,bhjd->bhij", ("n234", "n254")),
        ("shared", "bhld,lrd->bhlr", ("n2n3", "n43")),
        ("swapped", "bclhn,bcshn->bclsh", ("n2323", "n2423")),
        ("outer", "i,j->ji", ("n", "3")),
        ("elementwise", "ij,ij->ij", ("n3", "n3")),
        ("summed", "ij,ij->", ("n3", "n3")),
        ("lone", "ijk->kj", ("n34",)),
        ("three", "ij,jk,kl->il", ("n3", "34", "42")),
        ("ellipsis", "...pd,...qd->...pq", ("n234", "n254")),
        ("ellipsis_broadcast", "...pd,qd->...pq", ("n234", "54")),
        ("implicit", "ij,jk", ("n3", "34")),
        ("spaces", "bqc, bchw -> bqhw", ("n23", "n342")),
    ):
        shape = lambda text, n: [n if c == "n" else int(c) for c in text]
        case(f"einsum_{name}", lambda *t, e=equation: torch.einsum(e, *t),
             lambda m, n, shapes=shapes: tuple(m.floats(*shape(s, n)) for s in shapes))
    case("tensordot", lambda a, b: torch.tensordot(a, b, ([1, 2], [1, 0])), lambda m, n: (m.floats(n, 3, 4), m.floats(4, 3, 2)))
    case("outer", torch.outer, lambda m, n: (m.floats(n), m.floats(3)))
    case("dot", torch.dot, lambda m, n: (m.floats(n), m.floats(n)))
    case("cross", lambda a, b: torch.linalg.cross(a, b), lambda m, n: (m.floats(n, 3), m.floats(n, 3)))
    case("cdist", torch.cdist, lambda m, n: (m.floats(2, n, 3), m.floats(2, 5, 3)))
    case("cdist_1", lambda a, b: torch.cdist(a, b, p=1.0), lambda m, n: (m.floats(n, 3), m.floats(5, 3)))
    case("complex_rotation", lambda a, f: torch.view_as_real(torch.view_as_complex(a) * torch.polar(torch.ones_like(f), f)[:, None]), lambda m, n: (m.floats(n, 2, 3, 2), m.floats(n, 3)))


def stats_cases():
    x = lambda m, n: (m.floats(n, 3, 4),)
    for name, function in dict(
        prod=lambda a: torch.prod(a), prod_dim=lambda a: torch.prod(a, 1), prod_keep=lambda a: torch.prod(a, -1, keepdim=True),
        cumprod=lambda a: torch.cumprod(a, 1), std=lambda a: torch.std(a), std_dim=lambda a: torch.std(a, (0, 2)),
        std_biased=lambda a: torch.std(a, -1, unbiased=False, keepdim=True), var=lambda a: torch.var(a),
        var_dim=lambda a: torch.var(a, 1), var_correction=lambda a: torch.var(a, 0, correction=2),
        var_mean=lambda a: torch.var_mean(a, 1), logsumexp=lambda a: torch.logsumexp(a, (0, 1)),
        logsumexp_keep=lambda a: torch.logsumexp(a, -1, keepdim=True), norm=lambda a: torch.norm(a),
        norm_dim=lambda a: torch.norm(a, dim=-1), norm_1=lambda a: torch.norm(a, p=1, dim=1),
        norm_3=lambda a: torch.linalg.vector_norm(a, 3, dim=1), norm_inf=lambda a: torch.linalg.vector_norm(a, float("inf"), dim=1),
        norm_0=lambda a: torch.linalg.vector_norm(a, 0, dim=1), linalg_norm=lambda a: torch.linalg.norm(a, dim=-1, keepdim=True),
        normalize=lambda a: F.normalize(a, dim=1),
    ).items():
        case(name, function, x)
    case("prod_int", lambda a: torch.prod(a, 1), lambda m, n: (m.integers(-3, 4, n, 3),))
    case("cumsum_int32", lambda a: torch.cumsum(a, 0, dtype=I32), lambda m, n: (m.integers(-3, 4, n, 3),))


def fourier_cases():
    """Transforms of real and complex signals, of even and odd lengths, and arithmetic on spectra."""
    fft = torch.fft
    x = lambda m, n: (m.floats(2, n + 1, 6),)
    for norm in ("backward", "ortho", "forward"):
        case(f"fft_{norm}", lambda a, norm=norm: torch.view_as_real(fft.fft(a, norm=norm)), x)
        case(f"ifft_{norm}", lambda a, norm=norm: torch.view_as_real(fft.ifft(fft.fft(a, dim=1), dim=1, norm=norm)), x)
        case(f"rfft_{norm}", lambda a, norm=norm: torch.view_as_real(fft.rfft(a, dim=1, norm=norm)), x)
    case("fftn_real_part", lambda a: fft.fftn(a, dim=(1, 2)).real, x)
    case("fft2_abs", lambda a: torch.abs(fft.fft2(a)), x)
    case("ifft2", lambda a: fft.ifft2(fft.fft2(a)).real, x)
    case("irfft", lambda a: fft.irfft(fft.rfft(a, dim=-1) * 0.5, dim=-1), x)
    case("irfft_odd", lambda a: fft.irfft(fft.rfft(a, dim=-1), n=5, dim=-1), lambda m, n: (m.floats(n, 5),))
    case("filter", lambda a, b: fft.irfft(fft.rfft(a) * fft.rfft(b)), lambda m, n: (m.floats(n, 8), m.floats(n, 8)))
    case("scaled_spectrum", lambda a, b: torch.view_as_real(fft.fft(a) * b), lambda m, n: (m.floats(n, 4), m.floats(n, 4)))
    case("spectrum_sum", lambda a, b: torch.view_as_real(fft.fft(a) + -fft.fft(b) - fft.fft(a * b)), lambda m, n: (m.floats(n, 4), m.floats(n, 4)))
    case("fft_double", lambda a: fft.fft(a).imag, lambda m, n: (m.floats(n, 6, dtype=torch.float64),))


def range_cases():
    x = lambda m, n: (m.floats(n, 3, 4),)
    case("log_softmax_far", lambda a: F.log_softmax(a * 100, -1), x)
    case("any_dims", lambda a: torch.any(a > 1, (0, 2)), x)
    case("all_dims_keep", lambda a: torch.all(a > -1, (1, -1), keepdim=True), x)
    case("clamp_tensors", lambda a, b, c: torch.clamp(a, b, c), lambda m, n: (m.floats(n, 3), m.floats(3) - 1, m.floats(1)))
    case("clamp_max_tensor", lambda a, b: torch.clamp_max(a, b), lambda m, n: (m.floats(n, 3), m.floats(n, 1)))
    case("clip", lambda a: torch.clip(a, -1, 0.5), x)
    for reduction in ("none", "mean", "sum"):
        case(f"mse_{reduction}", lambda a, r=reduction: F.mse_loss(a, a * 0.5, reduction=r), x)


def dynamic_shapes(first, second):
    return tuple(
        {d: Dim.AUTO for d, (p, q) in enumerate(zip(a.shape, b.shape)) if p != q} for a, b in zip(first, second)
    )


def named(value):
    if isinstance(value, torch.Tensor):
        return {"output": value.contiguous()}
    return {str(i): v.contiguous() for i, v in enumerate(value)}


def write(directory, name, function, inputs):
    runs = [inputs(Make(number), size) for number, size in ((1, 4), (2, 7))]
    module = Call(function).eval()
    program = export(module, runs[0], dynamic_shapes=(dynamic_shapes(*runs),))
    torch.export.save(program, directory / f"{name}.pt2")
    for number, run in enumerate(runs, 1):
        try:
            program.module()(*run)
        except (AssertionError, RuntimeError):
            if number == 1:
                raise
            continue
        save_file({f"args_{i}": t for i, t in enumerate(run)}, directory / f"{name}.{number}.inputs.safetensors")
        save_file(named(module(*run)), directory / f"{name}.{number}.expected.safetensors")


def main():
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for build in (index_cases, put_cases, scatter_cases, order_cases, math_cases, binary_cases, arrange_cases, product_cases, stats_cases,
                  fourier_cases, range_cases):
        build()
    for name, (function, inputs) in CASES.items():
        if not sys.argv[2:] or name in sys.argv[2:]:
            write(directory, name, function, inputs)


if __name__ == "__main__":
    main()
