// Clusters of several blocks, which reach each other's shared memory.
#include <cooperative_groups.h>
#include <nvshmem.h>
#include <nvshmemx.h>

namespace cg = cooperative_groups;

// What is left out, or wrong.
enum { NO_MEETING = 1, BLOCK_MEETS = 2, NO_END = 4, NO_BEGIN = 8, NO_WAIT = 16 };

// Each block adds up its part of `in`. The first block of a cluster adds up what the blocks have, and sends the sum to the next PE.
extern "C" __global__ void __cluster_dims__(4, 1, 1) sums(int *out, const int *in, int how) {
    __shared__ int part[32];
    __shared__ int sum;
    const cg::cluster_group cluster = cg::this_cluster();
    part[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        int all = 0;
        for (int i = 0; i < 32; i++) all += part[i];
        sum = all;
    }
    if (how & BLOCK_MEETS) __syncthreads();
    if (!(how & (NO_MEETING | BLOCK_MEETS))) cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        int all = 0;
        for (unsigned rank = 0; rank < cluster.num_blocks(); rank++) all += *cluster.map_shared_rank(&sum, rank);
        nvshmem_int_p(out + blockIdx.x / 4, all, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
    }
    if (!(how & NO_END)) cluster.sync();
}

// Blocks of one cluster make calls of their own: the second one makes two.
extern "C" __global__ void __cluster_dims__(2, 1, 1) puts(int *out, const int *in) {
    const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes(), at = 64 * blockIdx.x;
    nvshmemx_int_put_block(out + at, in + at, 32, next);
    if (blockIdx.x == 1) nvshmemx_int_put_block(out + at + 32, in + at + 32, 32, next);
}

__device__ unsigned shared_address(const void *at) { return (unsigned)__cvta_generic_to_shared(at); }

__device__ void wait_for(const unsigned long long *barrier, unsigned parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra finished;\n"
                 "bra again;\n"
                 "finished:\n"
                 "}" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

// The first block's thread copies 64 bytes to both blocks, and each adds 100 times its rank.
extern "C" __global__ void __cluster_dims__(2, 1, 1) multicast(int *out, const int *in, int how) {
    __shared__ alignas(128) int data[16];
    __shared__ alignas(8) unsigned long long barrier;
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned at = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 64;" ::"r"(at) : "memory");
    }
    if (how & NO_BEGIN) __syncthreads();
    else cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 64, [%2], %3;"
                     ::"r"(shared_address(data)), "l"(in), "r"(at), "h"((unsigned short)3) : "memory");
    }
    if (!(how & NO_WAIT && cluster.block_rank() == 1)) wait_for(&barrier, 0);
    if (threadIdx.x < 16) out[16 * blockIdx.x + threadIdx.x] = data[threadIdx.x] + 100 * cluster.block_rank();
}

__device__ void arrive_at(const unsigned long long *barrier, unsigned rank) {
    unsigned far;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(shared_address(barrier)), "r"(rank));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(far) : "memory");
}

// The first block hands numbers over to the second, one after the other, through the second one's shared memory.
extern "C" __global__ void __cluster_dims__(2, 1, 1) hand_over(int *out, int rounds, int how) {
    __shared__ int slot;
    __shared__ alignas(8) unsigned long long full, empty;
    const cg::cluster_group cluster = cg::this_cluster();
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full)));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&empty)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cluster.sync();
    int sum = 0;
    for (int round = 0; round < rounds; round++) {
        if (cluster.block_rank() == 0) {
            *cluster.map_shared_rank(&slot, 1) = 10 + round;
            arrive_at(&full, 1);
            if (!(how & NO_WAIT)) wait_for(&empty, round % 2);
        } else {
            wait_for(&full, round % 2);
            sum += slot;
            arrive_at(&empty, 0);
        }
    }
    if (cluster.block_rank() == 1) out[0] = sum;
    if (!(how & NO_END)) cluster.sync();
}

// A block hands a number over to another through global memory: to the other one of its cluster, or to the next cluster.
extern "C" __global__ void __cluster_dims__(2, 1, 1) narrow(int *data, int *flag, int *seen, int to) {
    if (blockIdx.x == 0) {
        *data = 42;
        asm volatile("st.release.cluster.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else if (blockIdx.x == to) {
        int found;
        do {
            asm volatile("ld.acquire.cluster.global.u32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
        } while (found == 0);
        *seen = *data;
    }
}

// The launch makes clusters: each block says how many blocks its cluster has, and the number in the first one's memory.
extern "C" __global__ void of_launch(int *out, const int *in) {
    __shared__ int first;
    const cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) first = in[blockIdx.x];
    cluster.sync();
    if (threadIdx.x == 0) {
        nvshmem_int_p(out + blockIdx.x, 100 * cluster.num_blocks() + *cluster.map_shared_rank(&first, 0), (nvshmem_my_pe() + 1) % nvshmem_n_pes());
    }
    cluster.sync();
}

// Both blocks give each other a number through global memory, and store what they got to the next PE. The first block tells the next PE for both, and
// waits for the PE before.
extern "C" __global__ void __cluster_dims__(2, 1, 1) tells(int *out, unsigned long long *flag, int *given, int *seen, int how) {
    const cg::cluster_group cluster = cg::this_cluster();
    const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes(), rank = cluster.block_rank();
    given[rank] = 10 + rank;
    if (how & NO_BEGIN) __syncthreads();
    else cluster.sync();
    ((int *)nvshmem_ptr(out, next))[rank] = given[1 - rank];
    if (how & BLOCK_MEETS) __syncthreads();
    else cluster.sync();
    if (rank == 0) {
        asm volatile("st.release.sys.global.u64 [%0], 1;" ::"l"(nvshmem_ptr(flag, next)) : "memory");
        unsigned long long found;
        do {
            asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(found) : "l"(flag) : "memory");
        } while (found == 0);
    }
    if (how & NO_WAIT) __syncthreads();
    else cluster.sync();
    seen[rank] = out[rank];
}
