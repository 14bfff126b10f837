// A product of matrices in half precision on tensor cores: while the tiles of one step are multiplied, those of the next are copied. Both
// matrices have rows one behind the other. Each block makes 32 × 32 elements, each of its four warps 16 × 16 of them.
constexpr int ROWS = 32, COLUMNS = 32, DEPTH = 16;

__device__ unsigned shared(const void *at) {
    return (unsigned)__cvta_generic_to_shared(at);
}

__device__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// What a thread leaves out, so that its block goes wrong.
enum Missing { NOTHING, WAIT, BARRIER_BEFORE, BARRIER_BEHIND };

template <Missing MISSING>
__device__ void product(float *d, const unsigned short *a, const unsigned short *b, int columns, int depth) {
    __shared__ alignas(16) unsigned short of_a[2][ROWS][DEPTH], of_b[2][DEPTH][COLUMNS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int across = columns / COLUMNS;
    const int row = blockIdx.x / across * ROWS, column = blockIdx.x % across * COLUMNS;
    const int row_of_warp = warp / 2 * 16, column_of_warp = warp % 2 * 16;

    // Each thread copies 16 bytes: half of them of one matrix, half of the other.
    auto copy = [&](int step) {
        const int tile = step % 2, chunk = threadIdx.x % 64;
        const unsigned short *from, *to;
        if (threadIdx.x < 64) {
            const int r = chunk / 2, c = chunk % 2 * 8;
            from = a + (row + r) * depth + step * DEPTH + c;
            to = &of_a[tile][r][c];
        } else {
            const int r = chunk / 4, c = chunk % 4 * 8;
            from = b + (step * DEPTH + r) * columns + column + c;
            to = &of_b[tile][r][c];
        }
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared(to)), "l"(from) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float sums[2][4] = {};
    const int steps = depth / DEPTH;
    copy(0);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        if (step + 1 < steps) copy(step + 1);
        if (MISSING != WAIT) {
            if (step + 1 < steps) asm volatile("cp.async.wait_group 1;" ::: "memory");
            else asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        if (MISSING != BARRIER_BEFORE) __syncthreads(); // all parts of both tiles are there
        unsigned left[4], right[4];
        const void *mine = &of_a[step % 2][row_of_warp + lane % 16][lane / 16 * 8];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(left[0]), "=r"(left[1]), "=r"(left[2]), "=r"(left[3]) : "r"(shared(mine)) : "memory");
        mine = &of_b[step % 2][lane % 16][column_of_warp + lane / 16 * 8];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(right[0]), "=r"(right[1]), "=r"(right[2]), "=r"(right[3]) : "r"(shared(mine)) : "memory");
        multiply(sums[0], left, right[0], right[1]);
        multiply(sums[1], left, right[2], right[3]);
        if (MISSING != BARRIER_BEHIND) __syncthreads(); // nobody needs these tiles any more
    }

    for (int part = 0; part < 2; part++) {
        float *at = d + (row + row_of_warp + lane / 4) * columns + column + column_of_warp + part * 8 + lane % 4 * 2;
        at[0] = sums[part][0];
        at[1] = sums[part][1];
        at[8 * columns] = sums[part][2];
        at[8 * columns + 1] = sums[part][3];
    }
}

#define KERNEL(NAME, MISSING)                                                                                               \
    extern "C" __global__ void NAME(float *d, const unsigned short *a, const unsigned short *b, int columns, int depth) {  \
        product<MISSING>(d, a, b, columns, depth);                                                                         \
    }

KERNEL(gemm, NOTHING)
KERNEL(gemm_without_wait, WAIT)
KERNEL(gemm_without_barrier_before, BARRIER_BEFORE)
KERNEL(gemm_without_barrier_behind, BARRIER_BEHIND)
