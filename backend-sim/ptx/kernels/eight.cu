// Numbers of 8 bits: to them from single and from half precision, and back.
typedef unsigned short pair;

extern "C" __global__ void eight(pair *out, unsigned *back, const float *in) {
    const float high = in[2 * threadIdx.x], low = in[2 * threadIdx.x + 1];
    unsigned halves;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
    pair *mine = out + 4 * threadIdx.x;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(mine[0]) : "f"(high), "f"(low));
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(mine[1]) : "f"(high), "f"(low));
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(mine[2]) : "r"(halves));
    asm("cvt.rn.satfinite.relu.e5m2x2.f16x2 %0, %1;" : "=h"(mine[3]) : "r"(halves));
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(back[2 * threadIdx.x]) : "h"(mine[0]));
    asm("cvt.rn.relu.f16x2.e5m2x2 %0, %1;" : "=r"(back[2 * threadIdx.x + 1]) : "h"(mine[1]));
}
