// The loop that the interpreter's speed is measured with: load, multiply and add, store.
extern "C" __global__ void axpy(float *y, const float *x, float a, int elements) {
#pragma unroll 1
    for (int i = threadIdx.x; i < elements; i += blockDim.x) y[i] = fmaf(a, x[i], y[i]);
}
