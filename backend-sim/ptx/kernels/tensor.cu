// Tiles of a matrix, as tensor maps describe them: each block loads one, doubles it, and stores it to another matrix, or adds it there.
// NVRTC cannot read cuda.h, which declares it. Only its size and alignment matter.
struct alignas(64) CUtensorMap {
    unsigned long long words[16];
};

constexpr int WIDTH = 32, HEIGHT = 8;

// What is left out, or done in another way.
constexpr int NO_PHASE = 1, NO_FENCE = 2, NO_GROUP = 4, READ_ONLY = 8, REDUCE = 16, OVERWRITE = 32;

__device__ unsigned shared(const void *at) {
    return (unsigned)__cvta_generic_to_shared(at);
}

// `to` is a matrix of which `first` is the first element; with OVERWRITE, that is one of `from`. `seen`: what the second thread of each block finds there.
extern "C" __global__ void twice(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, float *first, float *seen, int how) {
    __shared__ alignas(128) float tile[HEIGHT][WIDTH];
    __shared__ alignas(8) unsigned long long barrier;
    const int column = blockIdx.x * WIDTH, row = blockIdx.y * HEIGHT;
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&from) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&barrier)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&barrier)), "n"(sizeof tile) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(shared(tile)),
                     "l"(&from), "r"(column), "r"(row), "r"(shared(&barrier))
                     : "memory");
    }
    if (threadIdx.x == 0 && how & OVERWRITE) *first = 7;
    if (how & NO_PHASE) {
        __syncthreads();
    } else {
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }" ::"r"(shared(&barrier)) : "memory");
    }
    for (int at = threadIdx.x; at < WIDTH * HEIGHT; at += blockDim.x) tile[at / WIDTH][at % WIDTH] *= 2;
    if (!(how & NO_FENCE)) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        if (how & REDUCE) {
            asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to), "r"(column), "r"(row),
                         "r"(shared(tile))
                         : "memory");
        } else {
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to), "r"(column), "r"(row),
                         "r"(shared(tile))
                         : "memory");
        }
        if (!(how & NO_GROUP)) {
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            if (how & READ_ONLY) {
                asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            } else {
                asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
            }
        }
    }
    __syncthreads();
    const int block = blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x == 1 && block == 0) seen[0] = *(volatile float *)first;
}
