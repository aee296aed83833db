// Notes, on one warp of every SM, when the timer that all SMs share takes its next steps, in cycles
// of that SM's own clock. gpuwatch/device/cuda/time_axis.py lays out what it writes.

using u64 = unsigned long long;

// The timer came to show `time` between two clocks of the SM.
struct Step { u64 before, after, time; };

constexpr unsigned kPatience = 1u << 20;  // readings of a timer that stands still

__device__ u64 clock_now()
{
    u64 value;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(value));
    return value;
}

__device__ u64 timer_now()
{
    u64 value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
    return value;
}

__device__ void note_steps(Step *steps, int count)
{
    u64 former = clock_now(), last = timer_now();
    int seen = 0;
    for (unsigned reading = 0; seen < count && reading < kPatience; ++reading) {
        const u64 before = clock_now(), now = timer_now();
        if (now != last) {
            steps[seen++] = {former, clock_now(), now};
            last = now;
        }
        former = before;
    }
}

// Blocks of one thread, several for each SM: the first to come to an SM does its work.
extern "C" __global__ void gpuwatch_time_axis(unsigned *taken, Step *steps, int sm_count,
                                              int steps_each, u64 apart_ns)
{
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm >= sm_count || atomicExch(&taken[sm], 1u)) return;
    Step *own = steps + (u64)sm * 2 * steps_each;
    const u64 begin = timer_now();
    note_steps(own, steps_each);
    for (unsigned reading = 0; timer_now() - begin < apart_ns && reading < kPatience; ++reading) {}
    note_steps(own + steps_each, steps_each);
}
