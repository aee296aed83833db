// Reduces the records of launches on the device: totals, a histogram of elapsed cycles, and sum
// and span of cycles for each SM. gpuwatch/device/cuda/reduction.py lays out what it writes.

using u64 = unsigned long long;

struct Map {
    u64 slots;
    unsigned size, capacity;
    int mark;  // offset of the u64 that is 0 where no record arrived; -1 where saves are counted
    int start, start_bytes, elapsed, elapsed_bytes, sm, sm_bytes, unused;
};

struct PerSm { u64 sum, first_complement, last, records; };

struct Launch {
    const unsigned char *bytes;
    const unsigned *saves;
    const u64 *firsts;  // of a dynamic map: each slot's first record, and the end
    PerSm *sms;         // scratch of this launch alone, zeroed before, as is the ticket
    unsigned *ticket;
};

struct Sums { u64 launches, records, missing, dropped, elapsed, least_complement, greatest, unused; };

constexpr int kBuckets = 1024;
constexpr int kSms = 512;
constexpr unsigned kWarp = 0xffffffffu;

__device__ u64 field(const unsigned char *record, int offset, int bytes)
{
    return bytes == 8 ? *reinterpret_cast<const u64 *>(record + offset)
                      : *reinterpret_cast<const unsigned *>(record + offset);
}

// Sixteen buckets to the octave: a value's leading bit and the four bits behind it.
__device__ int bucket(u64 value)
{
    if (value < 16) return int(value);
    const int top = 63 - __clzll(value);
    return (top - 3) * 16 + int(value >> (top - 4) & 15);
}

struct Add { __device__ u64 operator()(u64 a, u64 b) const { return a + b; } };
struct Greatest { __device__ u64 operator()(u64 a, u64 b) const { return a > b ? a : b; } };

// Over all lanes of the warp; the result is in lane 0.
template <typename Join>
__device__ u64 joined(u64 value, Join join)
{
    for (int apart = 16; apart; apart /= 2)
        value = join(value, __shfl_down_sync(kWarp, value, apart));
    return value;
}

// Records of one SM; none changes nothing.
__device__ void add(PerSm *row, const PerSm &more)
{
    if (!more.records) return;
    atomicAdd(&row->sum, more.sum);
    atomicMax(&row->first_complement, more.first_complement);
    atomicMax(&row->last, more.last);
    atomicAdd(&row->records, more.records);
}

// A record of each lane that has one, `sm` is -1 for the others. Warps of a block run on one SM,
// so most often few rows are added to: one lane does it for all records of a row.
__device__ void add_together(PerSm *rows, int sm, u64 start, u64 elapsed)
{
    unsigned left = __ballot_sync(kWarp, sm >= 0);
    while (left) {
        const int common = __shfl_sync(kWarp, sm, __ffs(left) - 1);
        const bool here = sm == common;
        const unsigned same = __ballot_sync(kWarp, here);
        const PerSm own = here ? PerSm{elapsed, ~start, start + elapsed, 1} : PerSm{};
        const PerSm all = {joined(own.sum, Add{}), joined(own.first_complement, Greatest{}),
                           joined(own.last, Greatest{}), (u64)__popc(same)};
        if (threadIdx.x % 32 == 0) add(&rows[common], all);
        left &= ~same;
    }
}

__device__ void add(Sums *sums, const Sums &more)
{
    atomicAdd(&sums->records, more.records);
    atomicAdd(&sums->missing, more.missing);
    atomicAdd(&sums->dropped, more.dropped);
    atomicAdd(&sums->elapsed, more.elapsed);
    atomicMax(&sums->least_complement, more.least_complement);
    atomicMax(&sums->greatest, more.greatest);
}

// One launch for each row of the grid; `total` grows over launches: sum, span, launches and
// records of each SM.
extern "C" __global__ void __launch_bounds__(512)
gpuwatch_reduce(Map map, int sm_count, Sums *sums, u64 *histogram, PerSm *total,
                const Launch *launches)
{
    __shared__ PerSm part[kSms];
    __shared__ unsigned counts[kBuckets];
    __shared__ Sums own;
    __shared__ bool last_block;
    const Launch launch = launches[blockIdx.y];
    const int thread = threadIdx.x;
    for (int i = thread; i < sm_count; i += blockDim.x) part[i] = {};
    for (int i = thread; i < kBuckets; i += blockDim.x) counts[i] = 0;
    if (thread == 0) own = {};
    __syncthreads();

    Sums mine = {};
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 base = (u64)blockIdx.x * blockDim.x; base < map.slots; base += stride) {
        const u64 at = base + thread;
        unsigned kept = 0;
        const unsigned char *record = nullptr;
        if (at < map.slots) {
            u64 first = at * map.capacity, room = map.capacity;
            if (launch.firsts) first = launch.firsts[at], room = launch.firsts[at + 1] - first;
            record = launch.bytes + first * map.size;
            const unsigned saves =
                map.mark < 0 ? launch.saves[at] : field(record, map.mark, 8) != 0;
            kept = unsigned(min((u64)saves, room));
            mine.missing += saves == 0;
            mine.dropped += saves - kept;
            mine.records += kept;
        }
        for (unsigned k = 0; __any_sync(kWarp, k < kept) && map.elapsed >= 0; ++k) {
            int sm = -1;
            u64 start = 0, elapsed = 0;
            if (k < kept) {
                elapsed = field(record, map.elapsed, map.elapsed_bytes);
                mine.elapsed += elapsed;
                mine.least_complement = max(mine.least_complement, ~elapsed);
                mine.greatest = max(mine.greatest, elapsed);
                atomicAdd(&counts[bucket(elapsed)], 1u);
                if (map.sm >= 0) {
                    const u64 found = field(record, map.sm, map.sm_bytes);
                    sm = found < (u64)sm_count ? int(found) : -1;
                    start = field(record, map.start, map.start_bytes);
                }
                record += map.size;
            }
            add_together(part, sm, start, elapsed);
        }
    }
    mine.records = joined(mine.records, Add{});
    mine.missing = joined(mine.missing, Add{});
    mine.dropped = joined(mine.dropped, Add{});
    mine.elapsed = joined(mine.elapsed, Add{});
    mine.least_complement = joined(mine.least_complement, Greatest{});
    mine.greatest = joined(mine.greatest, Greatest{});
    if (thread % 32 == 0) add(&own, mine);
    __syncthreads();

    for (int i = thread; i < kBuckets; i += blockDim.x)
        if (counts[i]) atomicAdd(&histogram[i], (u64)counts[i]);
    for (int i = thread; i < sm_count; i += blockDim.x) add(&launch.sms[i], part[i]);
    if (thread == 0) add(sums, own);
    __threadfence();
    __syncthreads();
    if (thread == 0) last_block = atomicAdd(launch.ticket, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last_block) return;

    __threadfence();
    for (int i = thread; i < sm_count; i += blockDim.x) {
        const volatile PerSm *seen = &launch.sms[i];
        if (seen->records == 0) continue;
        atomicAdd(&total[i].sum, seen->sum);
        atomicAdd(&total[i].first_complement, seen->last - ~seen->first_complement);
        atomicAdd(&total[i].last, 1ull);
        atomicAdd(&total[i].records, seen->records);
    }
    if (thread == 0) atomicAdd(&sums->launches, 1ull);
}
