// Templates, functors, structs by value, calls that are not inlined, recursion, local arrays: what C++ libraries compile to.
struct Range {
    long long first, last;
    short step;
    bool inclusive;
};
struct Pair {
    double value;
    int index;
};

template <typename T> struct Plus {
    __device__ T operator()(T a, T b) const { return a + b; }
};
template <typename T> struct Most {
    __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

template <typename T, int N, typename Op> __device__ T fold(const T (&values)[N], Op op) {
    T result = values[0];
#pragma unroll
    for (int i = 1; i < N; i++) result = op(result, values[i]);
    return result;
}

__device__ __noinline__ long long length(Range range) {
    return (range.last - range.first + (range.inclusive ? 1 : 0)) / range.step;
}
__device__ __noinline__ Pair best(Pair a, const Pair &b) { return a.value >= b.value ? a : b; }
__device__ __noinline__ unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__constant__ int weights[4] = {1, -2, 3, -4};
__device__ unsigned long long counter = 40;
__device__ int *pointers[2] = {nullptr, nullptr};

extern "C" __global__ void generic(long long *out, const int *in, Range range, const Pair start) {
    const int i = threadIdx.x;
    int window[4];
    for (int k = 0; k < 4; k++) window[k] = in[i + k] * weights[k];
    int order[8];
    for (int k = 0; k < 8; k++) order[(k * in[i]) & 7] = k; // indexed at run time: lies in local memory
    Pair found = start;
    for (int k = 0; k < 4; k++) found = best(found, Pair{window[k] * 0.5, k});
    out[i * 6 + 0] = fold(window, Plus<int>());
    out[i * 6 + 1] = fold(window, Most<int>());
    out[i * 6 + 2] = length(range);
    out[i * 6 + 3] = (long long)(found.value * 4) * 16 + found.index;
    out[i * 6 + 4] = fibonacci(i % 12);
    out[i * 6 + 5] = order[in[i] & 7];
    if (i == 0) counter += 2;
}

extern "C" __global__ void kinds(int *out, int kind, float x) {
    switch (kind) {
    case 0: out[threadIdx.x] = 10; break;
    case 1: out[threadIdx.x] = __float2int_rn(x); break;
    case 2: out[threadIdx.x] = __float2int_rz(x * 2); break;
    case 3: out[threadIdx.x] = weights[threadIdx.x & 3]; break;
    case 4: out[threadIdx.x] = (int)counter; break;
    case 5: out[threadIdx.x] = 55; break;
    case 6: out[threadIdx.x] = -1 / kind; break;
    default: out[threadIdx.x] = -1;
    }
    if (pointers[kind & 1]) *pointers[kind & 1] = 1;
}
