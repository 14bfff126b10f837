// Two words that change together: compared and swapped, exchanged, loaded and stored as 128 bits.
typedef unsigned long long word;

__device__ bool swap(word *at, word &low, word &high, word new_low, word new_high) {
    word before_low, before_high;
    asm volatile("{ .reg .b128 before, compare, value;\n"
                 "mov.b128 compare, {%3, %4};\n"
                 "mov.b128 value, {%5, %6};\n"
                 "atom.acq_rel.gpu.cas.b128 before, [%2], compare, value;\n"
                 "mov.b128 {%0, %1}, before; }"
                 : "=l"(before_low), "=l"(before_high)
                 : "l"(at), "l"(low), "l"(high), "l"(new_low), "l"(new_high)
                 : "memory");
    const bool done = before_low == low && before_high == high;
    low = before_low;
    high = before_high;
    return done;
}

// A sum, and how many have added to it: neither is seen without the other.
extern "C" __global__ void add_together(word *sum_and_count, const word *values) {
    const int me = blockIdx.x * blockDim.x + threadIdx.x;
    word sum, count;
    asm volatile("{ .reg .b128 both; ld.relaxed.gpu.global.b128 both, [%2]; mov.b128 {%0, %1}, both; }" : "=l"(sum), "=l"(count) : "l"(sum_and_count) : "memory");
    while (!swap(sum_and_count, sum, count, sum + values[me], count + 1)) {
        if (sum < count) __trap(); // values are 1 at least
    }
}

// Each takes what is there, and leaves its own.
extern "C" __global__ void hand_on(word *at, word *taken) {
    __shared__ alignas(16) word room[2];
    const word me = threadIdx.x;
    if (me == 0) room[0] = room[1] = ~0ull;
    __syncthreads();
    word low, high;
    asm volatile("{ .reg .b128 mine, before; mov.b128 mine, {%3, %4}; atom.shared.exch.b128 before, [%2], mine; mov.b128 {%0, %1}, before; }"
                 : "=l"(low), "=l"(high)
                 : "r"((unsigned)__cvta_generic_to_shared(room)), "l"(me), "l"(2 * me)
                 : "memory");
    asm volatile("{ .reg .b128 both; mov.b128 both, {%1, %2}; st.global.b128 [%0], both; }" ::"l"(taken + 2 * me), "l"(low), "l"(high) : "memory");
    __syncthreads();
    if (me == 0) {
        at[0] = room[0];
        at[1] = room[1];
    }
}
