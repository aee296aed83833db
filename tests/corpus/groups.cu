// Cooperative groups: tiles, coalesced groups, reductions, scans, block groups of warps.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "corpus.h"

namespace cg = cooperative_groups;

__global__ void tiles(const int *in, int *out)
{
    const auto block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<8>(block);
    const int i = blockIdx.x * blockDim.x + block.thread_rank();
    int value = in[i];
    for (int step = tile.size() / 2; step > 0; step /= 2) value += tile.shfl_down(value, step);
    out[i] = tile.shfl(value, 0) * 100 + tile.meta_group_rank();
}

__global__ void coalesced(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = -1;
    if (in[i] % 3 == 0) {
        const auto active = cg::coalesced_threads();
        out[i] = active.shfl(in[i], 0) * 64 + active.thread_rank() + active.size() * 1000000;
    }
}

__global__ void group_reduce(const int *in, int *out)
{
    const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = cg::reduce(tile, in[i], cg::plus<int>()) * 2 + cg::reduce(tile, in[i], cg::greater<int>());
}

__global__ void group_scan(const int *in, int *out)
{
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = cg::inclusive_scan(warp, in[i]) - cg::exclusive_scan(warp, in[i] & 3);
}

__global__ void block_group(const int *in, int *out)
{
    __shared__ int total;
    const auto block = cg::this_thread_block();
    const int i = blockIdx.x * block.size() + block.thread_rank();
    if (block.thread_rank() == 0) total = 0;
    block.sync();
    atomicAdd(&total, in[i]);
    block.sync();
    out[i] = total + block.thread_index().y * 10 + block.group_index().x;
}

__global__ void labelled(const int *in, int *out)
{
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const auto group = cg::labeled_partition(warp, in[i] % 4);
    out[i] = group.size() * 100 + group.thread_rank();
}

int main()
{
    tiles<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    coalesced<<<2, 96>>>(below(1000, 192), zeros<int>(192));
    group_reduce<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    group_scan<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    block_group<<<3, dim3(16, 3)>>>(below(1000, 144), zeros<int>(144));
    labelled<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    return finish();
}
