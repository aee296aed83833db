"""A matrix product, a softmax and a Triton kernel; prints a digest of what they gave."""

import hashlib
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
torch.manual_seed(1)
matrix = torch.randn(512, 512, device="cuda")
x = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
out = torch.empty_like(x)
for _ in range(rounds):
    soft = torch.softmax(matrix @ matrix, dim=1)
    add[(1024,)](x, x, out, 1 << 20, size=1024)
torch.cuda.synchronize()
print(hashlib.sha256(soft.cpu().numpy().tobytes() + out.cpu().numpy().tobytes()).hexdigest())
