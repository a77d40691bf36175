#!/usr/bin/env python3
"""Write the seeds of fuzz_executorch, corpus/executorch/<name>: small modules exported by ferry.

    build/venv/bin/python tests/fuzz/make_executorch_corpus.py build/check/ferry

Needs torch, unlike make_corpus.py; run it when the format changes.
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch import nn

ROOT = pathlib.Path(__file__).parent / "corpus/executorch"


class Elementwise(nn.Module):
    def forward(self, x):
        y = torch.where(x > 0, torch.sin(x), x.clamp(-1, 2)).pow(2).to(torch.int64)
        return nn.functional.gelu(x) + y.float(), y.cumsum(-1), torch.round(x) == 1


class Select(nn.Module):
    def forward(self, x, i):
        parts = x.split([1, 3], 1)
        y = x.index_put((i,), torch.ones(2, 4), True)
        return torch.cat(parts, 1)[:, 1:3], x.gather(0, i[:, None]), y.topk(2)[1], x.amax(-1), x[i].argmax(-1)


class Sizes(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        y = torch.arange(n)[:, None].expand(n, 4) * 2
        return x.reshape(2 * n, 2), y, torch.full((n // 2 + 1, 3), 1.5), x.repeat(2, 1)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.out = nn.Embedding(4, 8), nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, i):
        x = self.norm(self.embed(i))
        return self.out(torch.softmax(x @ x.mT, -1) @ x), torch.nonzero(i)


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.wise = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 2, groups=4)

    def forward(self, x):
        y = nn.functional.max_pool2d(torch.relu(self.dense(x)), 2)
        y = self.wise(y) - nn.functional.pad(y, (0, 1, 0, 1))[:, :, 1:3, 1:3].mean(-1, True)
        return nn.functional.interpolate(y, scale_factor=2, mode="bilinear"), nn.functional.avg_pool2d(y, 2)


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(3, 4))
        self.register_buffer("count", torch.tensor([0]))

    def forward(self, x):
        self.rows.index_copy_(0, self.count, x)
        self.count.add_(1)
        return self.rows.T @ self.rows


def main():
    seq = torch.export.Dim("seq", min=2, max=16)
    samples = {
        "elementwise": (Elementwise(), (torch.randn(2, 3),), None),
        "select": (Select(), (torch.randn(2, 4), torch.tensor([1, 0])), None),
        "sizes": (Sizes(), (torch.randn(6, 4),), ({0: seq},)),
        "layers": (Layers(), (torch.tensor([[1, 2, 3]]),), ({1: seq},)),
        "image": (Image(), (torch.randn(1, 2, 6, 6),), None),
        "kept": (Kept(), (torch.randn(1, 4),), None),
    }
    torch.manual_seed(0)
    ROOT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for name, (module, args, shapes) in samples.items():
            torch.export.save(torch.export.export(module.eval(), args, dynamic_shapes=shapes), f"{work}/{name}.pt2")
            for backend in ("portable", "xnnpack"):
                command = [sys.argv[1], "export", f"{work}/{name}.pt2", "-o", f"{work}/out", "--to", "executorch"]
                subprocess.run([*command, "--backend", backend, "-q"], check=True)
                (ROOT / f"{name}_{backend}").write_bytes(pathlib.Path(f"{work}/out/model.pte").read_bytes())


if __name__ == "__main__":
    main()
