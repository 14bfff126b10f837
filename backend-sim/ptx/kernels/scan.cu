// Inclusive scan of one block: a scan within each warp by shuffles, then of the warps' sums.
template <typename T> __device__ T warp_scan(T value, int lane) {
    for (int distance = 1; distance < 32; distance *= 2) {
        T other = __shfl_up_sync(0xffffffff, value, distance);
        if (lane >= distance) value += other;
    }
    return value;
}

template <typename T> __device__ void block_scan(T *out, const T *in, int elements) {
    __shared__ T sums[32];
    const int i = threadIdx.x, lane = i % 32, warp = i / 32;
    T value = i < elements ? in[i] : T(0);
    value = warp_scan(value, lane);
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    if (warp == 0) {
        T sum = lane < blockDim.x / 32 ? sums[lane] : T(0);
        sum = warp_scan(sum, lane);
        __syncwarp();
        sums[lane] = sum;
    }
    __syncthreads();
    if (warp > 0) value += sums[warp - 1];
    if (i < elements) out[i] = value;
}

extern "C" __global__ void scan_int(int *out, const int *in, int elements) { block_scan(out, in, elements); }
extern "C" __global__ void scan_double(double *out, const double *in, int elements) { block_scan(out, in, elements); }

// The same warp as an election and two votes.
extern "C" __global__ void votes(unsigned *out, const int *in) {
    const int i = threadIdx.x;
    unsigned odd = __ballot_sync(0xffffffff, in[i] & 1);
    int any = __any_sync(0xffffffff, in[i] > 100), all = __all_sync(0xffffffff, in[i] >= 0);
    unsigned equal = __match_any_sync(0xffffffff, in[i]);
    unsigned sum = __reduce_add_sync(0xffffffff, (unsigned)in[i]);
    int from = __shfl_sync(0xffffffff, in[i], (i * 7) & 31), swapped = __shfl_xor_sync(0xffffffff, in[i], 5, 8);
    out[i * 7 + 0] = odd;
    out[i * 7 + 1] = any * 2 + all;
    out[i * 7 + 2] = equal;
    out[i * 7 + 3] = sum;
    out[i * 7 + 4] = from;
    out[i * 7 + 5] = swapped;
    out[i * 7 + 6] = __activemask() >> (i & 31) & 1;
}
