// Products of matrices in half precision by warp groups, of 64 × 64 elements for each block: with tiles that all threads copy, with tiles
// that a warp of its own copies in bulk, and with tiles that tensor maps describe.
constexpr int SIZE = 64, DEPTH = 64, STAGES = 2;

__device__ unsigned shared(const void *at) {
    return (unsigned)__cvta_generic_to_shared(at);
}

// Where a matrix lies: offsets in bytes, and how its units of 16 bytes are swizzled (0: not, 1: in 128 bytes).
__device__ unsigned long long descriptor(unsigned at, unsigned leading, unsigned stride, unsigned swizzle) {
    return (unsigned long long)(at >> 4 & 0x3fff) | (unsigned long long)(leading >> 4) << 16 | (unsigned long long)(stride >> 4) << 32 |
           (unsigned long long)swizzle << 62;
}

#define SUMS                                                                                                               \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                              \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

// 16 columns of `a` by 16 rows of `b`, added to the sums. TRANSPOSED: the rows of `b` lie one behind the other, not its columns.
template <int TRANSPOSED>
__device__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b) {
    asm volatile("{ wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " SUMS ", %32, %33, 1, 1, 1, 0, %34; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
                   "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
                   "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
                   "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                 : "l"(a), "l"(b), "n"(TRANSPOSED)
                 : "memory");
}

__device__ void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ void end_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int MOST>
__device__ void wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(MOST) : "memory");
}

__device__ void store(float *d, const float (&sums)[32], int columns) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = 0; i < 32; i++) {
        const int row = warp * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        d[row * columns + column] = sums[i];
    }
}

// What a thread leaves out, so that its block goes wrong.
enum Missing { NOTHING, WAIT_FOR_COPY, BARRIER, WAIT_FOR_PRODUCT };

// Both matrices have rows one behind the other.
template <Missing MISSING>
__device__ void product(float *d, const unsigned short *a, const unsigned short *b, int columns, int depth) {
    __shared__ alignas(1024) unsigned short of_a[2][SIZE][DEPTH], of_b[2][DEPTH][SIZE];
    const int across = columns / SIZE;
    const int row = blockIdx.x / across * SIZE, column = blockIdx.x % across * SIZE;

    // A tile has 64 lines of 128 bytes: thread after thread copies 16 of them, to where the swizzle wants them.
    auto copy = [&](int step) {
        for (int part = threadIdx.x; part < 64 * 8; part += blockDim.x) {
            const int line = part / 8, unit = part % 8, place = (unit ^ line % 8) * 8;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared(&of_a[step % 2][line][place])),
                         "l"(a + (row + line) * depth + step * DEPTH + unit * 8)
                         : "memory");
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared(&of_b[step % 2][line][place])),
                         "l"(b + (step * DEPTH + line) * columns + column + unit * 8)
                         : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float sums[32] = {};
    const int steps = depth / DEPTH;
    copy(0);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        if (MISSING != WAIT_FOR_COPY) asm volatile("cp.async.wait_group 0;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        if (MISSING != BARRIER) __syncthreads();
        begin_products();
        for (int k = 0; k < DEPTH; k += 16) {
            multiply<1>(sums, descriptor(shared(&of_a[step % 2][0][k]), 16, 1024, 1), descriptor(shared(&of_b[step % 2][k][0]), 16, 1024, 1));
        }
        end_products();
        if (MISSING != WAIT_FOR_PRODUCT) wait_for_products<1>(); // the other tiles are not read any more
        if (step + 1 < steps) copy(step + 1);
    }
    wait_for_products<0>();
    store(d + row * columns + column, sums, columns);
}

#define KERNEL(NAME, MISSING)                                                                                               \
    extern "C" __global__ void NAME(float *d, const unsigned short *a, const unsigned short *b, int columns, int depth) {  \
        product<MISSING>(d, a, b, columns, depth);                                                                         \
    }

KERNEL(product_of_group, NOTHING)
KERNEL(product_without_wait_for_copy, WAIT_FOR_COPY)
KERNEL(product_without_barrier, BARRIER)
KERNEL(product_without_wait_for_product, WAIT_FOR_PRODUCT)

__device__ void await(unsigned barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again; }" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ void arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// A tile of both matrices, as it will lie in shared memory: units of 16 bytes of 8 rows of `a`, or columns of `b`, one behind the other.
struct Tile {
    unsigned short of_a[SIZE * DEPTH], of_b[SIZE * DEPTH];
};

// The fifth warp copies tiles ahead; one thread of the other four says that a tile is free again. EARLY: before its product is over.
template <bool EARLY>
__device__ void pipeline(float *d, const Tile *tiles, int steps) {
    __shared__ alignas(128) Tile stages[STAGES];
    __shared__ alignas(8) unsigned long long full[STAGES], empty[STAGES];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&full[stage])) : "memory");
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&empty[stage])) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 128) {
            for (int step = 0; step < steps; step++) {
                const int stage = step % STAGES;
                if (step >= STAGES) await(shared(&empty[stage]), (step / STAGES - 1) % 2);
                asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&full[stage])), "n"(sizeof(Tile)) : "memory");
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(&stages[stage])),
                             "l"(tiles + step), "n"(sizeof(Tile)), "r"(shared(&full[stage]))
                             : "memory");
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float sums[32] = {};
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        const int stage = step % STAGES;
        await(shared(&full[stage]), step / STAGES % 2);
        begin_products();
        for (int k = 0; k < DEPTH; k += 16) {
            multiply<0>(sums, descriptor(shared(&stages[stage].of_a[k * 8]), 128, 1024, 0), descriptor(shared(&stages[stage].of_b[k * 8]), 128, 1024, 0));
        }
        end_products();
        if (EARLY) {
            if (threadIdx.x == 0) arrive(shared(&empty[stage]));
        } else {
            wait_for_products<1>(); // the tile of the last step is free
            if (threadIdx.x == 0 && step > 0) arrive(shared(&empty[(step - 1) % STAGES]));
        }
    }
    wait_for_products<0>();
    store(d, sums, SIZE);
}

extern "C" __global__ void pipeline_of_group(float *d, const Tile *tiles, int steps) {
    pipeline<false>(d, tiles, steps);
}

extern "C" __global__ void pipeline_that_frees_early(float *d, const Tile *tiles, int steps) {
    pipeline<true>(d, tiles, steps);
}

// NVRTC cannot read cuda.h, which declares it. Only its size and alignment matter.
struct alignas(64) CUtensorMap {
    unsigned long long words[16];
};

// The same with tiles that tensor maps describe, swizzled in 128 bytes: one thread has them copied. WAITS: for the products before their tiles are
// copied over.
template <bool WAITS>
__device__ void product_of_tensors(float *d, const CUtensorMap &a, const CUtensorMap &b, int columns, int depth) {
    __shared__ alignas(1024) unsigned short of_a[SIZE][DEPTH], of_b[DEPTH][SIZE];
    __shared__ alignas(8) unsigned long long full;
    const int across = columns / SIZE;
    const int row = blockIdx.x / across * SIZE, column = blockIdx.x % across * SIZE;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&full)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    float sums[32] = {};
    for (int step = 0; step < depth / DEPTH; step++) {
        if (WAITS) wait_for_products<0>();
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&full)), "n"(sizeof of_a + sizeof of_b) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(shared(of_a)),
                         "l"(&a), "r"(step * DEPTH), "r"(row), "r"(shared(&full))
                         : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(shared(of_b)),
                         "l"(&b), "r"(column), "r"(step * DEPTH), "r"(shared(&full))
                         : "memory");
        }
        await(shared(&full), step % 2);
        begin_products();
        for (int k = 0; k < DEPTH; k += 16) {
            multiply<1>(sums, descriptor(shared(&of_a[0][k]), 16, 1024, 1), descriptor(shared(&of_b[k][0]), 16, 1024, 1));
        }
        end_products();
    }
    wait_for_products<0>();
    store(d + row * columns + column, sums, columns);
}

extern "C" __global__ void product_of_tiles(float *d, const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, int columns, int depth) {
    product_of_tensors<true>(d, a, b, columns, depth);
}

extern "C" __global__ void product_that_copies_early(float *d, const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, int columns,
                                                     int depth) {
    product_of_tensors<false>(d, a, b, columns, depth);
}
