// The loops that the interpreter's speed is measured with: load, multiply and add, store, in global and in shared memory.
extern "C" __global__ void axpy(float *y, const float *x, float a, int elements) {
#pragma unroll 1
    for (int i = threadIdx.x; i < elements; i += blockDim.x) y[i] = fmaf(a, x[i], y[i]);
}

extern "C" __global__ void axpy_shared(float *out, float a, int elements, int rounds) {
    extern __shared__ float y[];
    float *x = y + elements;
    for (int i = threadIdx.x; i < elements; i += blockDim.x) y[i] = x[i] = i;
    for (int round = 0; round < rounds; round++) {
#pragma unroll 1
        for (int i = threadIdx.x; i < elements; i += blockDim.x) y[i] = fmaf(a, x[i], y[i]);
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = y[elements - 1];
}
