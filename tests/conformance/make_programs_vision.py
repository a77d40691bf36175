#!/usr/bin/env python3
"""Export one small module per vision operation with torch.export, with inputs and expected outputs at
two shapes:  make_programs_vision.py DIRECTORY [CASE...]

Every case becomes NAME.pt2, NAME.1.inputs.safetensors, NAME.1.expected.safetensors and the same with
2. Inputs are called args_0, args_1, ...; the output is called output, several ones 0, 1, ...
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch.export import Dim, export

CASES = {}


class Call(torch.nn.Module):
    def __init__(self, function, *modules):
        super().__init__()
        self.function = function
        self.modules_ = torch.nn.ModuleList(modules)

    def forward(self, *args):
        return self.function(*self.modules_, *args)


def case(name, function, *shapes, modules=(), dynamic=(0,), dtype=torch.float32, second=None):
    """`shapes` of the inputs; `second`: the sizes of the dynamic dimensions in the second run."""
    CASES[name] = (function, modules, shapes, dynamic, dtype, second or {0: 3})


def image(name, function, shape=(2, 4, 12, 16), modules=(), second=None, **more):
    """All but the channels are dynamic."""
    case(name, function, shape, modules=modules, dynamic=(0, 2, 3), second=second or {0: 3, 2: 15, 3: 18}, **more)


def conv_cases():
    nn = torch.nn
    for name, module in {
        "conv2d": nn.Conv2d(4, 6, 3, padding=1),
        "conv2d_stride": nn.Conv2d(4, 6, (3, 5), stride=(2, 3), padding=(1, 2), bias=False),
        "conv2d_patch": nn.Conv2d(4, 8, 4, stride=4),
        "conv2d_dilated": nn.Conv2d(4, 6, 3, dilation=(2, 1), padding=2),
        "conv2d_grouped": nn.Conv2d(4, 8, 3, groups=2),
        "conv2d_depthwise": nn.Conv2d(4, 8, 3, groups=4, padding=1, stride=2),
        "conv2d_pointwise": nn.Conv2d(4, 7, 1),
        "conv2d_same": nn.Conv2d(4, 6, 4, padding="same", dilation=(1, 2)),
        "conv2d_valid": nn.Conv2d(4, 6, 3, padding="valid", stride=2),
        "conv_transpose2d": nn.ConvTranspose2d(4, 6, 4, stride=2, padding=1),
        "conv_transpose2d_output": nn.ConvTranspose2d(4, 6, 3, stride=(2, 3), output_padding=(1, 2), groups=2),
        "conv_transpose2d_dilated": nn.ConvTranspose2d(4, 3, 3, dilation=2, bias=False),
    }.items():
        image(name, lambda m, x: m(x), modules=(module,))
    for name, module in {
        "conv1d": nn.Conv1d(4, 6, 5, padding=2, stride=2),
        "conv1d_causal": nn.Conv1d(4, 4, 4, groups=4, padding=3),
        "conv1d_same": nn.Conv1d(4, 6, 4, padding="same"),
        "conv_transpose1d": nn.ConvTranspose1d(4, 6, 8, stride=4, padding=2),
    }.items():
        case(name, lambda m, x: m(x), (2, 4, 20), modules=(module,), dynamic=(0, 2), second={0: 3, 2: 27})
    for name, module in {
        "conv3d": nn.Conv3d(3, 4, (2, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1)),
        "conv_transpose3d": nn.ConvTranspose3d(3, 4, 2, stride=2),
    }.items():
        case(name, lambda m, x: m(x), (2, 3, 4, 8, 8), modules=(module,), dynamic=(0, 3), second={0: 3, 3: 10})
    case("conv2d_single", lambda m, x: m(x), (4, 9, 8), modules=(nn.Conv2d(4, 6, 3),), dynamic=(1,), second={1: 11})
    case("conv2d_double", lambda m, x: m(x), (2, 4, 9, 8), modules=(nn.Conv2d(4, 6, 3),), dtype=torch.float64)
    norm = torch.nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 4, 3), dim=2)
    case("conv1d_weight_norm", lambda m, x: m(x), (2, 4, 20), modules=(norm,), dynamic=(0, 2), second={0: 3, 2: 27})
    old = torch._weight_norm
    case("weight_norm", lambda x, y: old(x, y, 0), (6, 4, 3), (6, 1, 1), dynamic=())
    image("unfold", lambda x: F.unfold(x, 3, padding=1, stride=2))
    image("unfold_dilated", lambda x: F.unfold(x, (2, 3), dilation=2))
    case("unfold_tiles", lambda x: F.unfold(x, 2, stride=2), (2, 4, 12, 16))
    case("fold_tiles", lambda x: F.fold(x, (8, 6), 2, stride=2), (2, 16, 12))
    case("fold", lambda x: F.fold(x, (8, 7), 3, stride=2, padding=1), (2, 18, 16))


def norm_cases():
    nn = torch.nn
    batch_norm = nn.BatchNorm2d(4, eps=1e-3)
    batch_norm.running_mean.normal_()
    batch_norm.running_var.uniform_(0.5, 2)
    nn.init.normal_(batch_norm.weight)
    nn.init.normal_(batch_norm.bias)
    plain = nn.BatchNorm2d(4, affine=False)
    plain.running_mean.normal_()
    flat = nn.BatchNorm1d(4)
    flat.running_var.uniform_(0.5, 2)
    image("batch_norm", lambda m, x: m(x), modules=(batch_norm,))
    image("batch_norm_plain", lambda m, x: m(x), modules=(plain,))
    case("batch_norm_flat", lambda m, x: m(x), (3, 4), modules=(flat,), second={0: 5})
    case("batch_norm_statistics", lambda x: F.batch_norm(x, None, None, training=True), (3, 4, 10), second={0: 5})
    case("batch_norm_weight", lambda x: F.batch_norm(x, None, None, training=True, eps=1e-8), (1, 4, 10), dynamic=())
    for groups in (1, 2, 4):
        group_norm = nn.GroupNorm(groups, 4)
        nn.init.normal_(group_norm.weight)
        nn.init.normal_(group_norm.bias)
        image(f"group_norm{groups}", lambda m, x: m(x), modules=(group_norm,))
    case("group_norm_plain", lambda x: F.group_norm(x, 2), (2, 4, 9), dynamic=(0, 2), second={0: 3, 2: 11})
    image("instance_norm", lambda m, x: m(x), modules=(nn.InstanceNorm2d(4, affine=True),))
    case("native_layer_norm", lambda x: torch.native_layer_norm(x, [5], None, None, 1e-5), (2, 3, 5))
    case("native_group_norm", lambda x: torch.native_group_norm(x, None, None, 2, 4, 6, 2, 1e-5), (2, 4, 6), dynamic=())


def pool_cases():
    image("max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1))
    image("max_pool2d_ceil", lambda x: F.max_pool2d(x, 3, 2, 0, ceil_mode=True))
    image("max_pool2d_ceil_padded", lambda x: F.max_pool2d(x, 2, 3, 1, ceil_mode=True))
    image("max_pool2d_dilated", lambda x: F.max_pool2d(x, 3, 1, 1, dilation=(1, 2)))
    case("max_pool2d_ceil_fixed", lambda x: F.max_pool2d(x, 2, 3, 1, ceil_mode=True), (2, 4, 12, 15))
    case("max_pool2d_single", lambda x: F.max_pool2d(x, 3, 1, 1), (4, 9, 8), dynamic=(1,), second={1: 11})
    image("max_pool2d_indices", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True))
    case("max_pool1d", lambda x: F.max_pool1d(x, 3, 2), (2, 4, 20))
    case("max_pool1d_indices", lambda x: F.max_pool1d(x, 3, 2, return_indices=True), (2, 4, 20), dynamic=(0, 2), second={0: 3, 2: 27})
    case("max_pool3d", lambda x: F.max_pool3d(x, 2, 2, 1), (2, 3, 4, 6, 8), dynamic=(0, 3), second={0: 3, 3: 9})
    image("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1))
    image("avg_pool2d_exclude", lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False))
    image("avg_pool2d_ceil", lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True))
    image("avg_pool2d_ceil_padded", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True))
    image("avg_pool2d_ceil_exclude", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False))
    case("avg_pool2d_ceil_fixed", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 4, 12, 15))
    image("avg_pool2d_divisor", lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5))
    case("avg_pool1d", lambda x: F.avg_pool1d(x, 2, 2), (2, 4, 20), dynamic=(0, 2), second={0: 3, 2: 27})
    case("avg_pool3d", lambda x: F.avg_pool3d(x, 3, 2, 1), (2, 3, 4, 6, 8), dynamic=(0, 3), second={0: 3, 3: 9})
    image("adaptive_avg_pool2d_1", lambda x: F.adaptive_avg_pool2d(x, 1))
    image("adaptive_avg_pool2d_3", lambda x: F.adaptive_avg_pool2d(x, (3, 5)))
    case("adaptive_avg_pool2d_fixed", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), (2, 4, 12, 16))
    case("adaptive_avg_pool2d_uneven", lambda x: F.adaptive_avg_pool2d(x, (5, 6)), (2, 4, 12, 16))
    case("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), (2, 4, 20), dynamic=(0, 2), second={0: 3, 2: 27})
    case("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 4)), (2, 4, 12, 16))
    case("adaptive_max_pool2d_uneven", lambda x: F.adaptive_max_pool2d(x, (5, 6)), (2, 4, 12, 16))


def image_cases():
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        smooth = mode.startswith("bi")
        for align in (False, True) if smooth else (None,):
            tag = mode.replace("-", "_") + ("_align" if align else "")
            more = {"mode": mode, "align_corners": align}
            image(f"upsample_{tag}_size", lambda x, more=more: F.interpolate(x, size=(20, 9), **more))
            image(f"upsample_{tag}_scale", lambda x, more=more: F.interpolate(x, scale_factor=2.0, **more))
            image(f"upsample_{tag}_fraction", lambda x, more=more: F.interpolate(x, scale_factor=(0.75, 1.6), **more))
        image(f"upsample_{mode.replace('-', '_')}_like",
              lambda x, mode=mode, smooth=smooth: F.interpolate(x, size=(x.shape[2] * 3, x.shape[3] // 2), mode=mode, align_corners=False if smooth else None))
    for mode in ("bilinear", "bicubic"):
        image(f"upsample_{mode}_aa", lambda x, mode=mode: F.interpolate(x, size=(7, 20), mode=mode, antialias=True))
    signal = dict(dynamic=(0, 2), second={0: 3, 2: 27})
    case("upsample_nearest1d", lambda x: F.interpolate(x, scale_factor=2.5), (2, 4, 20), **signal)
    case("upsample_linear1d", lambda x: F.interpolate(x, size=33, mode="linear"), (2, 4, 20), **signal)
    volume = dict(dynamic=(0, 3), second={0: 3, 3: 9})
    case("upsample_nearest3d", lambda x: F.interpolate(x, scale_factor=2.0), (2, 3, 4, 6, 8), **volume)
    case("upsample_trilinear3d", lambda x: F.interpolate(x, size=(6, 9, 5), mode="trilinear"), (2, 3, 4, 6, 8), **volume)
    image("pad_constant", lambda x: F.pad(x, (1, 2, 3, 0), value=0.5))
    image("pad_negative", lambda x: F.pad(x, (-1, 2, 3, -2)))
    image("pad_channels", lambda x: F.pad(x, (0, 0, 0, 0, 2, 1)))
    image("pad_symbolic", lambda x: F.pad(x, (0, 8 - x.shape[3] % 8)))
    case("pad_bool", lambda x: F.pad(x > 0, (1, 1), value=True), (2, 5))
    for mode in ("reflect", "replicate", "circular"):
        image(f"pad_{mode}", lambda x, mode=mode: F.pad(x, (1, 2, 3, 0), mode=mode))
    case("pad_reflect1d", lambda x: F.pad(x, (4, 3), mode="reflect"), (2, 4, 20), **signal)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                case(f"grid_{mode}_{padding}_{int(align)}",
                     lambda x, y, a=(mode, padding, align): F.grid_sample(x, y * 1.3, a[0], a[1], a[2]), (2, 3, 6, 7), (2, 4, 5, 2))
    case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), (2, 8, 5, 6), dynamic=(0, 2), second={0: 3, 2: 7})
    case("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), (2, 3, 6, 8))
    case("channel_shuffle", lambda x: F.channel_shuffle(x, 2), (2, 8, 5, 6), dynamic=(0, 2), second={0: 3, 2: 7})


def write(directory, name):
    function, modules, shapes, dynamic, dtype, second = CASES[name]
    torch.manual_seed(0)
    module = Call(function, *modules).eval()
    if dtype == torch.float64:
        module = module.double()
    dims = tuple({d: Dim.AUTO for d in dynamic if d == 0 or i == 0} for i in range(len(shapes)))
    inputs = tuple(torch.randn(shape, dtype=dtype) for shape in shapes)
    program = export(module, inputs, dynamic_shapes=(dims,))
    torch.export.save(program, directory / f"{name}.pt2")
    for run in (1, 2):
        if run == 2:
            sizes = [[second.get(d, n) if d in dynamic else n for d, n in enumerate(shape)] for shape in shapes]
            inputs = tuple(torch.randn(size, dtype=dtype) for size in sizes)
        with torch.no_grad():
            outputs = module(*inputs)
        outputs = {"output": outputs} if torch.is_tensor(outputs) else {str(i): o for i, o in enumerate(outputs)}
        save_file({f"args_{i}": x for i, x in enumerate(inputs)}, directory / f"{name}.{run}.inputs.safetensors")
        save_file({k: v.detach().contiguous() for k, v in outputs.items()}, directory / f"{name}.{run}.expected.safetensors")


def main():
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for make in (conv_cases, norm_cases, pool_cases, image_cases):
        make()
    wanted = sys.argv[2:] or CASES
    for name in wanted:
        write(directory, name)
    print(f"{len(wanted)} programs in {directory}")


if __name__ == "__main__":
    main()
