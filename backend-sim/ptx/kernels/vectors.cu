// Numbers of 16 bits: scalars, pairs, conversions, vectors of 16 bytes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half_axpy(__half *y, const __half *x, float a, int elements) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < elements) y[i] = __hfma(__float2half(a), x[i], y[i]);
}

extern "C" __global__ void half_pairs(__half2 *out, const __half2 *a, const __half2 *b) {
    const int i = threadIdx.x;
    out[i * 6 + 0] = __hadd2(a[i], b[i]);
    out[i * 6 + 1] = __hmul2(a[i], b[i]);
    out[i * 6 + 2] = __hfma2(a[i], b[i], a[i]);
    out[i * 6 + 3] = __hmax2(a[i], b[i]);
    out[i * 6 + 4] = __hsub2(a[i], b[i]);
    out[i * 6 + 5] = __hgt2(a[i], b[i]);
}

extern "C" __global__ void bf16_sum(__nv_bfloat16 *out, const uint4 *a, const uint4 *b) {
    const uint4 left = a[threadIdx.x], right = b[threadIdx.x];
    const __nv_bfloat162 *x = reinterpret_cast<const __nv_bfloat162 *>(&left);
    const __nv_bfloat162 *y = reinterpret_cast<const __nv_bfloat162 *>(&right);
    uint4 packed;
    __nv_bfloat162 *sum = reinterpret_cast<__nv_bfloat162 *>(&packed);
    for (int k = 0; k < 4; k++) {
        float2 p = __bfloat1622float2(x[k]), q = __bfloat1622float2(y[k]);
        sum[k] = __floats2bfloat162_rn(p.x + q.x, p.y + q.y);
    }
    reinterpret_cast<uint4 *>(out)[threadIdx.x] = packed;
}

extern "C" __global__ void conversions(float *out, const float *in) {
    const int i = threadIdx.x;
    out[i * 6 + 0] = __half2float(__float2half_rz(in[i]));
    out[i * 6 + 1] = __bfloat162float(__float2bfloat16(in[i]));
    out[i * 6 + 2] = (float)__half2int_rn(__float2half(in[i]));
    out[i * 6 + 3] = __half2float(__int2half_rn((int)in[i]));
    out[i * 6 + 4] = (float)(double)in[i];
    out[i * 6 + 5] = __fadd_rz(in[i], 1e-8f) + __fmul_ru(in[i], 3.0f) + rintf(in[i]) + floorf(in[i]) + ceilf(in[i]);
}
