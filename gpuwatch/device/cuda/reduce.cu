// Reduces the records of one launch on the device: totals, a histogram of elapsed cycles, and
// sum and span of cycles for each SM. gpuwatch/device/cuda/reduction.py lays out what it writes.

struct Record {
    const unsigned char *bytes;
    const unsigned *saves;
    const unsigned long long *firsts;  // of a dynamic map: each slot's first record, and the end
    unsigned long long slots;
    unsigned size, capacity;
    int start, start_bytes, elapsed, elapsed_bytes, sm, sm_bytes;
};

struct Sums {
    unsigned long long launches, records, missing, dropped;
    unsigned long long elapsed, least_complement, greatest, unused;
};

constexpr int kBuckets = 1024;
constexpr int kSms = 512;

__device__ unsigned long long field(const unsigned char *record, int offset, int bytes)
{
    return bytes == 8 ? *reinterpret_cast<const unsigned long long *>(record + offset)
                      : *reinterpret_cast<const unsigned *>(record + offset);
}

// Sixteen buckets to the octave: a value's leading bit and the four bits behind it.
__device__ int bucket(unsigned long long value)
{
    if (value < 16) return int(value);
    const int top = 63 - __clzll(value);
    return (top - 3) * 16 + int(value >> (top - 4) & 15);
}

struct PerSm { unsigned long long sum, first_complement, last, records; };

// `launch` is scratch of this launch alone (zeroed before), `total` grows over launches:
// sum, span, records and launches of each SM.
extern "C" __global__ void __launch_bounds__(1024)
gpuwatch_reduce(Record map, int sms, Sums *sums, unsigned long long *histogram, PerSm *launch,
                PerSm *total, unsigned *ticket)
{
    __shared__ PerSm part[kSms];
    __shared__ unsigned counts[kBuckets];
    __shared__ Sums own;
    __shared__ bool last_block;
    const int thread = threadIdx.x;
    for (int i = thread; i < sms; i += blockDim.x) part[i] = {};
    for (int i = thread; i < kBuckets; i += blockDim.x) counts[i] = 0;
    if (thread == 0) own = {};
    __syncthreads();

    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + thread;
    unsigned long long records = 0, missing = 0, dropped = 0, cycles = 0, least = 0, most = 0;
    for (; at < map.slots; at += stride) {
        const unsigned saves = map.saves[at];
        if (saves == 0) { ++missing; continue; }
        unsigned long long first = at * map.capacity, room = map.capacity;
        if (map.firsts) first = map.firsts[at], room = map.firsts[at + 1] - first;
        const unsigned kept = unsigned(min((unsigned long long)saves, room));
        dropped += saves - kept;
        const unsigned char *record = map.bytes + first * map.size;
        for (unsigned k = 0; k < kept; ++k, record += map.size) {
            ++records;
            if (map.elapsed < 0) continue;
            const unsigned long long elapsed = field(record, map.elapsed, map.elapsed_bytes);
            cycles += elapsed;
            least = max(least, ~elapsed);
            most = max(most, elapsed);
            atomicAdd(&counts[bucket(elapsed)], 1u);
            if (map.sm < 0) continue;
            const unsigned long long sm = field(record, map.sm, map.sm_bytes);
            if (sm >= (unsigned long long)sms) continue;
            const unsigned long long start = field(record, map.start, map.start_bytes);
            atomicAdd(&part[sm].sum, elapsed);
            atomicAdd(&part[sm].records, 1ull);
            atomicMax(&part[sm].first_complement, ~start);
            atomicMax(&part[sm].last, start + elapsed);
        }
    }
    atomicAdd(&own.records, records);
    atomicAdd(&own.missing, missing);
    atomicAdd(&own.dropped, dropped);
    atomicAdd(&own.elapsed, cycles);
    atomicMax(&own.least_complement, least);
    atomicMax(&own.greatest, most);
    __syncthreads();

    for (int i = thread; i < kBuckets; i += blockDim.x)
        if (counts[i]) atomicAdd(&histogram[i], (unsigned long long)counts[i]);
    for (int i = thread; i < sms; i += blockDim.x) {
        if (part[i].records == 0) continue;
        atomicAdd(&launch[i].sum, part[i].sum);
        atomicAdd(&launch[i].records, part[i].records);
        atomicMax(&launch[i].first_complement, part[i].first_complement);
        atomicMax(&launch[i].last, part[i].last);
    }
    if (thread == 0) {
        atomicAdd(&sums->records, own.records);
        atomicAdd(&sums->missing, own.missing);
        atomicAdd(&sums->dropped, own.dropped);
        atomicAdd(&sums->elapsed, own.elapsed);
        atomicMax(&sums->least_complement, own.least_complement);
        atomicMax(&sums->greatest, own.greatest);
    }
    __threadfence();
    __syncthreads();
    if (thread == 0) last_block = atomicAdd(ticket, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last_block) return;

    __threadfence();
    for (int i = thread; i < sms; i += blockDim.x) {
        const volatile PerSm *seen = &launch[i];
        if (seen->records == 0) continue;
        total[i].sum += seen->sum;
        total[i].first_complement += seen->last - ~seen->first_complement;
        total[i].last += 1;
        total[i].records += seen->records;
    }
    if (thread == 0) sums->launches += 1;
}
