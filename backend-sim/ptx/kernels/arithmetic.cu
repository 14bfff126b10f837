// Integer and floating-point instructions that intrinsics and inline assembly reach.
extern "C" __global__ void integers(unsigned *out, const unsigned *in) {
    const unsigned i = threadIdx.x, a = in[i * 3], b = in[i * 3 + 1], c = in[i * 3 + 2];
    unsigned r[24];
    r[0] = __brev(a);
    r[1] = __clz(a);
    r[2] = __popc(a);
    r[3] = __ffs(a);
    r[4] = __byte_perm(a, b, c & 0x7777);
    r[5] = __funnelshift_l(a, b, c);
    r[6] = __funnelshift_rc(a, b, c);
    r[7] = __umulhi(a, b);
    r[8] = __mulhi((int)a, (int)b);
    r[9] = __usad(a, b, c);
    r[10] = __dp4a((int)a, (int)b, (int)c);
    r[11] = __vadd2(a, b);
    r[12] = a / (b | 1) + (int)a / (int)(b | 1);
    r[13] = a % (b | 1) + (int)a % (int)(b | 1);
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r[14]) : "r"(a), "r"(b & 31), "r"(c & 31));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r[15]) : "r"(a), "r"(b & 31), "r"(c & 31));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r[16]) : "r"(a), "r"(b), "r"(c & 31), "r"(b & 31));
    asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r[17]) : "r"(a), "r"(b), "r"(c));
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(r[18]) : "r"(a));
    asm("bfind.s32 %0, %1;" : "=r"(r[19]) : "r"(a));
    asm("add.sat.s32 %0, %1, %2;" : "=r"(r[20]) : "r"(a), "r"(b));
    asm("{ .reg .u32 lo; add.cc.u32 lo, %1, %2; addc.u32 %0, %3, 0; }" : "=r"(r[21]) : "r"(a), "r"(b), "r"(c));
    asm("{ .reg .u32 lo; mad.lo.cc.u32 lo, %1, %2, %3; madc.hi.u32 %0, %1, %2, 0; }" : "=r"(r[22]) : "r"(a), "r"(b), "r"(c));
    asm("slct.u32.s32 %0, %1, %2, %3;" : "=r"(r[23]) : "r"(a), "r"(b), "r"(c));
    for (int k = 0; k < 24; k++) out[i * 24 + k] = r[k];
}

extern "C" __global__ void wide(unsigned long long *out, const unsigned long long *in) {
    const unsigned i = threadIdx.x;
    const unsigned long long a = in[i * 2], b = in[i * 2 + 1];
    const unsigned __int128 product = (unsigned __int128)a * b + a;
    out[i * 8 + 0] = (unsigned long long)product;
    out[i * 8 + 1] = (unsigned long long)(product >> 64);
    out[i * 8 + 2] = __clzll(a) * 64 + __popcll(b);
    out[i * 8 + 3] = __brevll(a);
    out[i * 8 + 4] = (long long)a / (long long)(b | 1);
    out[i * 8 + 5] = a % (b | 1);
    out[i * 8 + 6] = (unsigned long long)((long long)a >> (b & 63));
    out[i * 8 + 7] = (unsigned long long)(unsigned)(a >> 32) * (unsigned)b;
}

extern "C" __global__ void floats(float *out, const float *in) {
    const unsigned i = threadIdx.x;
    const float a = in[i * 2], b = in[i * 2 + 1];
    out[i * 12 + 0] = a / b;
    out[i * 12 + 1] = sqrtf(a);
    out[i * 12 + 2] = fminf(a, b) + fmaxf(a, b);
    out[i * 12 + 3] = fabsf(a) - b;
    out[i * 12 + 4] = fmaf(a, b, 1.0f);
    out[i * 12 + 5] = rsqrtf(a);
    out[i * 12 + 6] = expf(a);
    out[i * 12 + 7] = __sinf(a) + __cosf(b);
    out[i * 12 + 8] = __fdividef(a, b);
    out[i * 12 + 9] = copysignf(a, b) + truncf(a) + roundf(b);
    out[i * 12 + 10] = (float)(int)a + (float)(unsigned)fabsf(b);
    out[i * 12 + 11] = isnan(a) ? 1.0f : __saturatef(a);
}

extern "C" __global__ void doubles(double *out, const double *in) {
    const unsigned i = threadIdx.x;
    const double a = in[i * 2], b = in[i * 2 + 1];
    out[i * 6 + 0] = a / b;
    out[i * 6 + 1] = sqrt(a);
    out[i * 6 + 2] = fma(a, b, -a);
    out[i * 6 + 3] = __dadd_ru(a, b);
    out[i * 6 + 4] = sin(a) + log(fabs(b) + 1.0);
    out[i * 6 + 5] = (double)(long long)a + (double)(float)b + __hiloint2double(__double2hiint(a), __double2loint(b));
}
