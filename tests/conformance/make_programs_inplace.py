#!/usr/bin/env python3
"""Export one small module per way of writing in place with torch.export, with inputs and expected outputs
at two shapes:  make_programs_inplace.py DIRECTORY [CASE...]

Every case is written as make_programs_index.py does, once as it was traced and once, as
NAME.decomposed, after run_decompositions(), where torch has made the writes explicit itself. What an
input or a buffer holds after the call is among the expected outputs as mutated.args_0, mutated.count.
"""

import copy
import sys
from pathlib import Path

import torch
from make_programs_index import BOOL, F16, F32, I32, I64, Make, dynamic_shapes, named
from safetensors.torch import save_file
from torch.export import export

CASES = {}
F64 = torch.float64


class Call(torch.nn.Module):
    """`function` gets the tensors, and first the module itself where that has buffers."""

    def __init__(self, function, buffers):
        super().__init__()
        self.function = function
        self.stateful = bool(buffers)
        for name, value in buffers.items():
            self.register_buffer(name, value.clone())

    def forward(self, *args):
        result = self.function(self, *args) if self.stateful else self.function(*args)
        return result if isinstance(result, torch.Tensor) else tuple(result)


def case(name, function, inputs, decompose=True, **buffers):
    """`inputs(make, n)` gives the arguments for a run; n is 4, then 7."""
    CASES[name] = (function, inputs, buffers, decompose)


def floats(*shape):
    """Arguments: one tensor; "n" in the shape stands for the size that varies."""
    return lambda m, n: (m.floats(*(n if size == "n" else size for size in shape)),)


# Views that torch writes back with an operation of its own each.
DECOMPOSED = {"select", "slice", "slice_step", "slices", "narrow", "movedim", "squeeze", "diagonal_above", "split_sizes",
              "unbind_end", "view_split", "expand_new", "as_strided", "chain"}  # fmt: skip


def write_through(name, view, shape=("n", 5, 6)):
    """Copies, arithmetic and masks through a view of an input, a number through one of a clone."""

    def run(x, source):
        view(x).copy_(view(source))
        view(x).mul_(2).add_(view(source), alpha=0.5)
        v = view(x)
        v.masked_fill_(v > 1, 0.25)
        y = source.clone()
        before = y + 0
        w = view(y)
        w.fill_(7)
        return v + 1, x * 1, view(x) * 3, before, w, y

    pair = lambda m, n: floats(*shape)(m, n) + floats(*shape)(m, n)
    case(f"view_{name}", run, pair, decompose=name in DECOMPOSED)


def view_cases():
    for name, view in dict(
        select=lambda x: x[1], select_end=lambda x: x[:, -2], select_middle=lambda x: x.select(1, 2),
        slice=lambda x: x[1:3], slice_step=lambda x: x[:, 1::2], slice_step_all=lambda x: x[:, ::3],
        slice_negative=lambda x: x[:, -3:-1], slice_whole=lambda x: x[:], slice_beyond=lambda x: x[:, 2:99],
        slice_last=lambda x: x[..., :-2], slices=lambda x: x[1:, 2:4, ::2],
        narrow=lambda x: x.narrow(1, 1, 3), narrow_negative=lambda x: x.narrow(2, -3, 2),
        view=lambda x: x.view(-1, 30), view_flat=lambda x: x.view(-1), view_split=lambda x: x.view(-1, 5, 2, 3),
        view_as=lambda x: x.view_as(x), reshape=lambda x: x.reshape(-1, 6), flatten=lambda x: x.flatten(1),
        flatten_all=lambda x: x.flatten(), ravel=lambda x: x.ravel(),
        unflatten=lambda x: x.unflatten(2, (2, 3)), unflatten_open=lambda x: x.unflatten(2, (-1, 2)),
        transpose=lambda x: x.transpose(0, 2), transpose_negative=lambda x: x.transpose(-1, -2),
        permute=lambda x: x.permute(2, 0, 1), permute_negative=lambda x: x.permute(-1, 0, -2),
        movedim=lambda x: x.movedim(0, -1), movedim_pairs=lambda x: x.movedim((0, 2), (1, 0)),
        moveaxis=lambda x: x.moveaxis(2, 0), swapaxes=lambda x: x.swapaxes(0, 1), swapdims=lambda x: x.swapdims(1, 2),
        mT=lambda x: x.mT, adjoint=lambda x: x.adjoint(), T=lambda x: x[:, 0].T, t=lambda x: x[:, :, 1].t(),
        unsqueeze=lambda x: x.unsqueeze(1), unsqueeze_end=lambda x: x.unsqueeze(-1), none=lambda x: x[:, None, 1:4],
        squeeze=lambda x: x[:, 2:3].squeeze(1), squeeze_all=lambda x: x[:, :1, 2:].squeeze(),
        squeeze_dims=lambda x: x[:, :1, :1].squeeze((1, 2)), squeeze_nothing=lambda x: x.squeeze(1),
        unfold_apart=lambda x: x.unfold(2, 2, 3), unfold_touching=lambda x: x.unfold(1, 2, 2),
        unfold_first=lambda x: x[:4].unfold(0, 1, 2),
        diagonal=lambda x: x.diagonal(0, 1, 2), diagonal_above=lambda x: x.diagonal(2, -2, -1),
        diagonal_below=lambda x: x.diagonal(-1, 1, 2), diagonal_swapped=lambda x: x.diagonal(1, 2, 1),
        diagonal_first=lambda x: x[:4].diagonal(0, 0, 2),
        split=lambda x: x.split(2, 1)[1], split_sizes=lambda x: x.split([1, 3, 2], -1)[1], split_rest=lambda x: x.split(2, 1)[2],
        chunk=lambda x: x.chunk(3, 2)[2], chunk_uneven=lambda x: x.chunk(2, 1)[1], tensor_split=lambda x: x.tensor_split(2, 1)[0],
        hsplit=lambda x: x.hsplit([2])[1], unbind=lambda x: x.unbind(1)[3], unbind_end=lambda x: x.unbind(-1)[-1],
        expand_none=lambda x: x.expand(-1, -1, -1), expand_as=lambda x: x.expand_as(x), broadcast_to=lambda x: x.broadcast_to(x.shape),
        expand_new=lambda x: x.expand(1, -1, -1, -1), alias=lambda x: torch.ops.aten.alias(x), detach=lambda x: x.detach(),
        contiguous=lambda x: x.contiguous(), to=lambda x: x.to(F32), type_as=lambda x: x.type_as(x),
        atleast=lambda x: torch.atleast_3d(x[0, 0]), narrow_view=lambda x: x.narrow(1, 0, 4).unflatten(1, (2, 2)),
        transpose_slice=lambda x: x.transpose(1, 2)[:, 1:4], slice_transpose=lambda x: x[:, 1:4].transpose(1, 2),
        slice_of_slice=lambda x: x[:, 1:][:, ::2], select_select=lambda x: x[:, 1][:, 2], view_select=lambda x: x.view(-1, 5, 2, 3)[:, :, 1],
        permute_unbind=lambda x: x.permute(2, 1, 0).unbind(1)[2], chain=lambda x: x.transpose(0, 1)[1:4].unsqueeze(2)[..., ::2].squeeze(2).movedim(0, 1),
        diagonal_slice=lambda x: x[:, 1:].diagonal(0, 1, 2), split_transpose=lambda x: x.split(3, 2)[1].transpose(0, 1),
        reshape_slice=lambda x: x[:, 1:3].reshape(-1, 2, 2, 3), flatten_slice=lambda x: x[1:3].flatten(1),
        dropout=lambda x: torch.nn.functional.dropout(x, training=False),
    ).items():
        write_through(name, view)
    write_through("as_strided", lambda x: x.as_strided((2, 3), (7, 2), 1), (4, 5))
    write_through("as_strided_slice", lambda x: x[1:].as_strided((2, 3), (5, 1), 6), (4, 5))
    write_through("scalar", lambda x: x[2], (5,))
    write_through("scalar_of_matrix", lambda x: x[-1, -2], ("n", 5))
    write_through("zero_dim_view", lambda x: x.view(1, 1), ())


def copies_cases():
    """What looks like a view but is a copy must not be written through."""
    for name, view in dict(
        reshape_transposed=lambda x: x.transpose(0, 1).reshape(-1, 6), flatten_transposed=lambda x: x.transpose(1, 2).flatten(1),
        contiguous_transposed=lambda x: x.transpose(0, 1).contiguous(), clone=lambda x: x.clone(),
        to_other=lambda x: x.to(F64), to_copy=lambda x: x.to(F32, copy=True),
        reshape_expanded=lambda x: x[:, :1].expand(-1, 5, -1).reshape(-1, 30), index=lambda x: x[[0, 2]],
        flip=lambda x: x.flip(1), repeat=lambda x: x.repeat(1, 1, 1), cat=lambda x: torch.cat([x]), masked=lambda x: torch.where(x > 0, x, x),
        flatten_slice=lambda x: x[:, 1:3, 1:].flatten(1), mul=lambda x: x * 1, add_zero=lambda x: x + 0,
    ).items():
        def run(x, view=view):
            x = x.clone()
            y = view(x)
            y.add_(1)
            return x, y
        case(f"copy_{name}", run, floats("n", 5, 6), decompose=False)
    case("copy_channels_last", lambda x: (lambda y: (y.add_(1), x * 1))(x.to(memory_format=torch.channels_last)), floats(2, 3, "n", 5))
    case("copy_contiguous_channels_last", lambda x: (lambda y: (y.add_(1), x * 1))(x.contiguous(memory_format=torch.channels_last)), floats(2, 3, "n", 5))


def order_cases():
    """Reads before and after writes, through the base and through other views of it."""
    x = floats("n", 6)

    def two_views(x):
        x = x.clone()
        a, b = x[:, :4], x[:, 2:]
        a.add_(10)
        first = b * 1
        b.mul_(2)
        return a, first, b, x

    def view_before_write(x):
        x = x.clone()
        rows = x.view(-1, 2, 3)
        x.add_(1)
        sums = rows.sum(-1)
        rows[:, 0].zero_()
        x[:, 5] = 9
        return rows, sums, x

    def write_base_after_view(x):
        x = x.clone()
        t = x.t()
        kept = t + 0
        x.copy_(x * 3)
        return t, kept

    def alternate(x):
        x = x.clone()
        parts = x.chunk(2, 1)
        for step in range(3):
            parts[step % 2].add_(parts[1 - step % 2])
            x.mul_(0.5)
        return x, *parts

    def chain_two_levels(x):
        x = x.clone()
        outer = x[:, 1:5]
        inner = outer[:, 1:3]
        inner.fill_(1)
        outer.add_(1)
        other = x.view(-1)
        other[3:5].mul_(10)
        return x, outer, inner, other

    def write_twice(x):
        x = x.clone()
        x[:, 0] = 1
        x[:, 0] += x[:, 1]
        x[:, 1:3] = x[:, 0:1]
        x[1] = x[0]
        return x

    def unused(x):
        scratch = x.clone()
        scratch[:, 2].zero_()
        return x * 2

    def loop(x):
        out = torch.zeros(x.shape[0], 6)
        state = torch.zeros(x.shape[0])
        for i in range(6):
            state = state * 0.5 + x[:, i]
            out[:, i] = state
        return out

    def swap(x):
        x = x.clone()
        first = x[:, 0].clone()
        x[:, 0] = x[:, 1]
        x[:, 1] = first
        return x

    def same_source(x):
        y = torch.empty_like(x)
        z = torch.empty_like(x)
        y.copy_(x)
        z.copy_(y)
        y.add_(1)
        return y, z

    def rotate(x):
        x = x.clone()
        x[:, :3], x[:, 3:] = x[:, 3:].clone(), x[:, :3] * -1
        return x

    def returned_view(x):
        x = x.clone()
        v = x[:, :2]
        y = v + 1
        x.zero_()
        return v, y

    def broadcast_views(x, y):
        x = x.clone()
        a, b = torch.broadcast_tensors(x, y)
        x.add_(1)
        return a + b, x

    def grid(x):
        row = x[0].clone()
        a, b = torch.meshgrid(row, row, indexing="ij")
        row.mul_(2)
        return a, b, row

    def cow(x):
        y = x.expand(2, -1, -1)
        x.add_(1)
        return y * 1, x * 1

    def windows(x):
        x = x.clone()
        w = x.unfold(1, 3, 1)
        x[:, 2] = 0
        return w * 1, w.sum(-1)

    for function in (two_views, view_before_write, write_base_after_view, alternate, chain_two_levels, write_twice,
                     unused, loop, swap, same_source, rotate, returned_view, grid, cow, windows):
        case(f"order_{function.__name__}", function, x, decompose=function in (two_views, chain_two_levels, loop))
    case("order_broadcast_views", broadcast_views, lambda m, n: (m.floats(n, 6), m.floats(1, 6)), decompose=False)


def operation_cases():
    """Every operation in place on a clone, on a view, and on the input itself."""
    x = lambda m, n: (m.floats(n, 5),)
    pair = lambda m, n: (m.floats(n, 5), m.floats(n, 5))
    masked = lambda m, n: (m.floats(n, 5), m.mask(n, 5))
    index = lambda m, n: (m.floats(n, 5), m.permutation(5)[:3], m.floats(n, 3))
    scatter = lambda m, n: (m.floats(n, 5), torch.stack([m.permutation(5)[:3] for _ in range(n)]), m.floats(n, 3))
    operations = dict(
        fill=(lambda a: a.fill_(2.5), x), fill_tensor=(lambda a: a.fill_(a.new_tensor(1.5)), x), zero=(lambda a: a.zero_(), x),
        add=(lambda a, b: a.add_(b), pair), add_alpha=(lambda a, b: a.add_(b, alpha=-2), pair), add_scalar=(lambda a: a.add_(3), x),
        add_broadcast=(lambda a, b: a.add_(b[0]), pair), add_int=(lambda a, b: a.add_(b.to(I32)), pair),
        sub=(lambda a, b: a.sub_(b), pair), mul=(lambda a, b: a.mul_(b), pair), mul_mask=(lambda a, b: a.mul_(b), masked),
        div=(lambda a, b: a.div_(b.abs() + 1), pair), div_floor=(lambda a: a.div_(0.3, rounding_mode="floor"), x),
        floor_divide=(lambda a: a.floor_divide_(0.3), x), remainder=(lambda a: a.remainder_(0.7), x), fmod=(lambda a: a.fmod_(0.7), x),
        pow=(lambda a: a.pow_(2), x), neg=(lambda a: a.neg_(), x), abs=(lambda a: a.abs_(), x), exp=(lambda a: a.exp_(), x),
        sqrt=(lambda a: a.abs_().sqrt_(), x), rsqrt=(lambda a: a.abs_().add_(1).rsqrt_(), x), log=(lambda a: a.abs_().add_(1).log_(), x),
        sin=(lambda a: a.sin_(), x), cos=(lambda a: a.cos_(), x), tanh=(lambda a: a.tanh_(), x), sigmoid=(lambda a: a.sigmoid_(), x),
        floor=(lambda a: a.floor_(), x), ceil=(lambda a: a.ceil_(), x), round=(lambda a: a.round_(), x), trunc=(lambda a: a.trunc_(), x),
        sign=(lambda a: a.sign_(), x), reciprocal=(lambda a: a.add_(9).reciprocal_(), x), square=(lambda a: a.square_(), x),
        erf=(lambda a: a.erf_(), x), expm1=(lambda a: a.expm1_(), x), log1p=(lambda a: a.abs_().log1p_(), x),
        relu=(lambda a: a.relu_(), x), relu6=(lambda a: torch.nn.functional.relu6(a, inplace=True), x), silu=(lambda a: torch.nn.functional.silu(a, inplace=True), x),
        leaky_relu=(lambda a: torch.nn.functional.leaky_relu(a, inplace=True), x), elu=(lambda a: torch.nn.functional.elu(a, inplace=True), x),
        hardtanh=(lambda a: torch.nn.functional.hardtanh(a, inplace=True), x), hardswish=(lambda a: torch.nn.functional.hardswish(a, inplace=True), x),
        clamp=(lambda a: a.clamp_(-0.5, 0.5), x), clamp_min=(lambda a: a.clamp_min_(0.1), x), clamp_max=(lambda a: a.clamp_max_(0.1), x), clamp_one=(lambda a: a.clamp_(max=0.2), x),
        masked_fill=(lambda a, b: a.masked_fill_(b, -7.0), masked), masked_fill_row=(lambda a, b: a.masked_fill_(b[0], float("-inf")), masked),
        masked_scatter=(lambda a, b: a.masked_scatter_(b, a * 3), masked), where_assign=(lambda a, b: a.copy_(torch.where(b, a, a * 2)), masked),
        copy=(lambda a, b: a.copy_(b), pair), copy_row=(lambda a, b: a.copy_(b[1]), pair), copy_cast=(lambda a, b: a.copy_(b.to(I64)), pair), copy_bool=(lambda a, b: a.copy_(b), masked),
        lerp=(lambda a, b: a.lerp_(b, 0.25), pair), addcmul=(lambda a, b: a.addcmul_(b, b, value=0.5), pair), addcdiv=(lambda a, b: a.addcdiv_(b, b.abs() + 1), pair),
        lt=(lambda a, b: a.lt_(b), pair), ge_scalar=(lambda a: a.ge_(0), x), logical_not=(lambda a: a.logical_not_(), x),
        cumsum=(lambda a: a.cumsum_(1), x), tril=(lambda a: a.tril_(), x), triu=(lambda a: a.triu_(1), x),
        index_fill=(lambda a, i, s: a.index_fill_(1, i, 4.0), index), index_fill_tensor=(lambda a, i, s: a.index_fill_(1, i, s[0, 0]), index),
        index_copy=(lambda a, i, s: a.index_copy_(1, i, s), index), index_add=(lambda a, i, s: a.index_add_(1, torch.cat([i, i]), torch.cat([s, s], 1), alpha=2), index),
        index_put=(lambda a, i, s: a.index_put_((torch.arange(3), i), s[0]), index), index_put_row=(lambda a, i, s: a.index_put_((torch.tensor([-1]),), s[0, 0]), index),
        index_put_accumulate=(lambda a, i, s: a.index_put_((torch.tensor([0, 1, 0, 1, 0, 1]), torch.cat([i, i])), torch.cat([s[0], s[1]]), accumulate=True), index),
        assign_index=(lambda a, i, s: operator_set(a, (slice(None), i), s), index), assign_mask=(lambda a, b: operator_set(a, b, 0.5), masked),
        add_at_index=(lambda a, i, s: operator_set(a, (slice(None), i), a[:, i] + s), index), add_at_mask=(lambda a, b: operator_set(a, b, a[b] * 2), masked),
        scatter=(lambda a, i, s: a.scatter_(1, i, s), scatter), scatter_value=(lambda a, i, s: a.scatter_(1, i, 3.0), scatter),
        scatter_add=(lambda a, i, s: a.scatter_add_(1, torch.cat([i, i], 1), torch.cat([s, s], 1)), scatter),
        scatter_reduce=(lambda a, i, s: a.scatter_reduce_(1, i, s, "amax"), scatter), baddbmm=(lambda a, b: a.unsqueeze(0).baddbmm_(b[None, :, :4], b[None, :4]), pair),
        addmm=(lambda a, b: a.addmm_(b[:, :4], b[:4]), pair),
    )
    for name, (function, inputs) in operations.items():
        def run(x, *more, function=function):
            base = torch.cat([x, x, x], 1)
            through = function(base[:, 5:10], *more)
            return base, through + 1, function(x, *more) * 2
        case(f"op_{name}", run, inputs, decompose=False)

    def bits(a, b):
        a, b = a.clone(), b.clone()
        a &= b
        b |= a
        a ^= b
        a <<= 1
        b >>= 1
        a[:, 1:].bitwise_not_()
        return a, b

    def flags(a, b):
        a, b = a.clone(), b.clone()
        a &= b
        b[0] |= a[1]
        b[1:].logical_xor_(a[1:])
        a[:, 0] = True
        return a, b

    case("op_bits", bits, lambda m, n: (m.integers(0, 99, n, 5), m.integers(0, 99, n, 5)))
    case("op_flags", flags, lambda m, n: (m.mask(n, 5), m.mask(n, 5)))
    case("op_integers", lambda a, b: (a.add_(b), a.mul_(2), a.floor_divide_(3), a.clamp_(min=-2)), lambda m, n: (m.integers(-9, 9, n), m.integers(-9, 9, n)))
    case("op_half", lambda a, b: (a.add_(b), a[1:].mul_(b[1:])), lambda m, n: (m.floats(n, 3, dtype=F16), m.floats(n, 3)))
    def shapes(x):
        a = x.clone()
        b = a[:, 1:4]
        b.unsqueeze_(1)
        b.add_(1)
        b.transpose_(0, 2).mul_(3)
        b.squeeze_(1)
        b[0] = 5
        return a, b

    case("op_unsqueeze", lambda a: a.clone().unsqueeze_(0).add_(1).squeeze_(0), x)
    case("op_transpose", lambda a: a.clone().transpose_(0, 1).mul_(2), x)
    case("op_shapes", shapes, x)
    case("op_t", lambda a: (lambda b: (b.t_().detach_().add_(1), b * 1))(a.clone()), x)


def operator_set(a, index, value):
    a[index] = value
    return a


def fill_cases():
    """A number may be written through a view that shows an element more than once."""
    case("fill_expanded", lambda x: (x[:, :1].expand(-1, 4).fill_(3), x * 1), floats("n", 5))
    case("fill_expanded_new", lambda x: (x.expand(3, -1, -1).zero_(), x * 1), floats("n", 5))
    case("fill_windows", lambda x: (x.unfold(1, 3, 2).fill_(3), x * 1), floats("n", 6), decompose=False)


def state_cases():
    """Buffers: counters, caches, running statistics; they are outputs."""
    numbers = torch.arange(6.0)
    count = torch.tensor(5)

    def counter(s, x):
        s.count.add_(1)
        return x + s.count

    def counter_before(s, x):
        y = x + s.count
        s.count += 2
        return y

    def cache(s, x, at):
        s.keys.index_copy_(1, at, x)
        return s.keys * 2, x.sum()

    def cache_at_count(s, x):
        s.keys[:, 3:5] = x
        s.length.add_(x.shape[1])
        return (s.keys * (torch.arange(9)[:, None] < s.length)).sum((1, 2))

    def running(s, x):
        s.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - s.mean

    def last(s, x):
        s.last.copy_(x[0])
        return x * 2

    def ring(s, x):
        s.window[:-1] = s.window[1:].clone()
        s.window[-1] = x.sum()
        return s.window.mean()

    def conv_state(s, x):
        s.copy = torch.cat([s.state[:, 1:], x[:1, :, None][:, 0]], 1)
        s.state.copy_(torch.roll(s.state, -1, 1))
        s.state[:, -1] = x[0, 0]
        return s.state @ s.state.t()

    def shared(s, x):
        s.table.view(2, 3)[1] = x[0, :3]
        top = s.table[:3]
        top += 1
        return s.table + x[0]

    def untouched(s, x):
        y = s.table * x
        y.add_(s.table)
        return y

    def returned(s, x):
        return s.table.add_(x[0])

    def assigned(s, x):
        s.table = s.table + x[0]
        return s.table * 2

    case("state_counter", counter, floats("n", 3), count=count)
    case("state_counter_before", counter_before, floats("n", 3), count=count)
    case("state_cache", cache, lambda m, n: (m.floats(2, 3, 4), m.permutation(9)[:3]), keys=torch.ones(2, 9, 4))
    case("state_cache_at_count", cache_at_count, floats(2, 2, 4), keys=torch.ones(2, 9, 4), length=torch.tensor(3))
    case("state_running", running, floats("n", 3), mean=torch.tensor([1.0, 2.0, 3.0]))
    case("state_last", last, floats("n", 6), last=torch.zeros(6))
    case("state_ring", ring, floats("n", 3), window=numbers)
    case("state_shared", shared, floats("n", 6), table=numbers)
    case("state_untouched", untouched, floats("n", 6), table=numbers)
    case("state_returned", returned, floats("n", 6), table=numbers)
    case("state_assigned", assigned, floats("n", 6), table=numbers)
    case("state_scatter_mask", lambda s, x: (s.seen.scatter_(0, x.argmax(1), True), x * s.seen), floats("n", 6), seen=torch.zeros(6, dtype=BOOL))


def input_cases():
    """Arguments that are written; what they hold afterwards is an output."""
    x = lambda m, n: (m.floats(n, 6), m.floats(n, 3))

    def static_cache(keys, values, at, k, v):
        keys.index_copy_(1, at, k)
        values[:, at] = v
        return (keys * values).sum(-1)

    def two_inputs(a, b):
        a[:, :3].add_(b)
        b.copy_(a[:, 3:])
        return a.sum() + b.sum()

    def swap(a, b):
        c = a[:, :3].clone()
        a[:, :3] = b
        b.copy_(c)
        return ()

    def only_read(a, b):
        c = a + 0
        c[:, :3].add_(b)
        return c

    def counter(a, n):
        n.add_(1)
        return a * n

    def both_returned(a, b):
        a.add_(1)
        return a, b, a[:, :2]

    def same_value(a, b):
        c = b * 2
        a[:, :3].copy_(c)
        b.copy_(c)
        return c

    cache = lambda m, n: (m.floats(n, 9, 4), m.floats(n, 9, 4), m.permutation(9)[:2], m.floats(n, 2, 4), m.floats(n, 2, 4))
    case("input_static_cache", static_cache, cache)
    case("input_two", two_inputs, x)
    case("input_swap", lambda a, b: (swap(a, b), a * 1)[1:], x)
    case("input_only_read", only_read, x)
    case("input_counter", counter, lambda m, n: (m.floats(n), torch.tensor(3)))
    case("input_returned", both_returned, x)
    case("input_same_value", same_value, x)
    case("input_returned_itself", lambda a, b: a.add_(b[:, :1]), x)
    case("input_overwritten", lambda a, b: (a.copy_(b[:, :1]), b * 1)[1:], x)


def mutations(module, run, before):
    """What was written: arguments by position, and buffers, by torch's own counters of writes."""
    tensors = {f"args_{i}": t for i, t in enumerate(run)} | dict(module.named_buffers())
    return {f"mutated.{k}": t.clone().contiguous() for k, t in tensors.items()
            if t._version != before.get(k, (None, 0))[1] or t is not before.get(k, (t,))[0]}


def call(module, run):
    """Outputs, and what inputs and buffers hold afterwards, of a fresh copy of the module."""
    module, run = copy.deepcopy(module), tuple(t.clone() for t in run)
    tensors = {f"args_{i}": t for i, t in enumerate(run)} | dict(module.named_buffers())
    before = {k: (t, t._version) for k, t in tensors.items()}
    outputs = {k: t.detach().clone() for k, t in named(module(*run)).items()}
    return outputs | mutations(module, run, before)


def same(a, b):
    return a.keys() == b.keys() and all(torch.allclose(a[k].double(), b[k].double(), atol=1e-4, equal_nan=True) for k in b)


def accepts(program, run):
    """Whether the sizes that tracing fixed are those of the arguments."""
    places = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"][-len(run):]
    return all(not str(size).isdigit() or size == found for place, t in zip(places, run) for size, found in zip(place.shape, t.shape))


def agrees(program, module, run):
    """Whether torch itself gets from a program that it took apart what the module gives."""
    traced = copy.deepcopy(program).module()
    return same(named(traced(*(t.clone() for t in run))), named(copy.deepcopy(module)(*(t.clone() for t in run))))


def write(directory, name, function, inputs, buffers, decompose):
    runs = [inputs(Make(number), size) for number, size in ((1, 4), (2, 7))]
    module = Call(function, buffers).eval()
    arguments = tuple(t.clone() for t in runs[0])
    programs = {name: export(copy.deepcopy(module), arguments, dynamic_shapes=(dynamic_shapes(*runs),))}
    apart = programs[name].run_decompositions() if decompose else None
    if apart and agrees(apart, module, runs[0]):
        programs[f"{name}.decomposed"] = apart
    expected = [call(module, run) for run in runs]
    for label, program in programs.items():
        torch.export.save(program, directory / f"{label}.pt2")
        for number, run in enumerate(runs, 1):
            if not accepts(program, run):
                continue
            save_file({f"args_{i}": t for i, t in enumerate(run)}, directory / f"{label}.{number}.inputs.safetensors")
            save_file(expected[number - 1], directory / f"{label}.{number}.expected.safetensors")


def main():
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for build in (view_cases, copies_cases, order_cases, operation_cases, fill_cases, state_cases, input_cases):
        build()
    for name, arguments in CASES.items():
        if not sys.argv[2:] or name in sys.argv[2:]:
            write(directory, name, *arguments)


if __name__ == "__main__":
    main()
