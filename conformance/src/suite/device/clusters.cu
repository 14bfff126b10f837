// Clusters of two blocks, which reach each other's shared memory: what they do together leads to communication.
#include "kernel.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

#define CLUSTER(NAME)                                                                                                   \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) NAME(int *in, int *data, uint64_t *words, int *out)

__device__ unsigned shared_address(const void *at) { return (unsigned)__cvta_generic_to_shared(at); }

// The address of what another block of the cluster has there.
__device__ unsigned in_block(const void *at, unsigned rank) {
    unsigned far;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(shared_address(at)), "r"(rank));
    return far;
}

__device__ void expect(uint64_t *barrier, unsigned bytes) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (bytes > 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
    }
}

__device__ void arrive(uint64_t *barrier, unsigned rank) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_block(barrier, rank)) : "memory");
}

__device__ void wait_for(uint64_t *barrier, unsigned parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra finished;\n"
                 "bra again;\n"
                 "finished:\n"
                 "}" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

// Who is where: the cluster, the block in it, how many there are, and what block a mapped address names.
CLUSTER(cluster_positions) {
    __shared__ int own;
    unsigned rank, other, special[5];
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(special[0]));
    asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(special[1]));
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(special[2]));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(special[3]));
    asm volatile("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(special[4]));
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank) : "r"(shared_address(&own)));
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(other) : "r"(in_block(&own, 1 - special[2])));
    int all = 0;
    for (int i = 0; i < 5; i++) all = 10 * all + special[i];
    if (FIRST) nvshmem_int_p(out + blockIdx.x, 100 * all + 10 * rank + other, NEXT);
}

// The blocks add up what they have, and the first one sends the sum.
CLUSTER(cluster_sum) {
    __shared__ int mine;
    const cg::cluster_group cluster = cg::this_cluster();
    if (FIRST) mine = in[0] + 1 + blockIdx.x;
    cluster.sync();
    if (cluster.block_rank() == 0 && FIRST) {
        int sum = 0;
        for (unsigned rank = 0; rank < cluster.num_blocks(); rank++) sum += *cluster.map_shared_rank(&mine, rank);
        nvshmem_int_p(out, sum, NEXT);
    }
    cluster.sync();
}

// Each block writes into the other one's memory, and sends what it has been given.
CLUSTER(cluster_swap) {
    __shared__ int given[4];
    const cg::cluster_group cluster = cg::this_cluster();
    cluster.sync();
    if (threadIdx.x < 4) cluster.map_shared_rank(given, 1 - cluster.block_rank())[threadIdx.x] = in[4 * blockIdx.x + threadIdx.x];
    cluster.sync();
    __syncthreads();
    if (FIRST) nvshmem_int_p(out + blockIdx.x, given[0] + 2 * given[1] + 3 * given[2] + 4 * given[3], NEXT);
}

// Blocks of one cluster call for themselves, and not equally often. Their barriers are their own, too.
CLUSTER(cluster_block_puts) {
    nvshmemx_int_put_block(data + 4 * blockIdx.x, in + 4 * blockIdx.x, 2, NEXT);
    if (blockIdx.x == 1) {
        __syncthreads();
        nvshmemx_int_put_block(data + 6, in + 6, 2, NEXT);
    }
}

// One thread copies to both blocks.
CLUSTER(cluster_multicast) {
    __shared__ alignas(128) int copied[8];
    __shared__ uint64_t barrier;
    const cg::cluster_group cluster = cg::this_cluster();
    if (FIRST) expect(&barrier, 32);
    cluster.sync();
    if (cluster.block_rank() == 0 && FIRST) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 32, [%2], %3;"
                     ::"r"(shared_address(copied)), "l"(in), "r"(shared_address(&barrier)), "h"((unsigned short)3) : "memory");
    }
    wait_for(&barrier, 0);
    if (FIRST) nvshmem_int_p(out + blockIdx.x, copied[0] + copied[7] + 1000 * blockIdx.x, NEXT);
}

// Stores that the other block's mbarrier counts.
CLUSTER(cluster_counted_stores) {
    __shared__ int given[2];
    __shared__ uint64_t barrier;
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned other = 1 - cluster.block_rank();
    if (FIRST) expect(&barrier, 8);
    cluster.sync();
    if (threadIdx.x < 2) {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                     ::"r"(in_block(given + threadIdx.x, other)), "r"(in[threadIdx.x] + 10 * blockIdx.x), "r"(in_block(&barrier, other)) : "memory");
    }
    wait_for(&barrier, 0);
    if (FIRST) nvshmem_int_p(out + blockIdx.x, given[0] + 1000 * given[1], NEXT);
}

// The first block hands numbers over to the second, which sends their sum.
CLUSTER(cluster_hand_over) {
    __shared__ int slot;
    __shared__ uint64_t full, empty;
    const cg::cluster_group cluster = cg::this_cluster();
    if (FIRST) {
        expect(&full, 0);
        expect(&empty, 0);
    }
    cluster.sync();
    int sum = 0;
    if (FIRST) {
        for (int round = 0; round < 5; round++) {
            if (cluster.block_rank() == 0) {
                *cluster.map_shared_rank(&slot, 1) = in[round];
                arrive(&full, 1);
                wait_for(&empty, round % 2);
            } else {
                wait_for(&full, round % 2);
                sum += slot;
                arrive(&empty, 0);
            }
        }
        if (cluster.block_rank() == 1) nvshmem_int_p(out, sum, NEXT);
    }
}

// A number goes through global memory, in the scope of the cluster.
CLUSTER(cluster_scope) {
    unsigned value = 0;
    if (!FIRST) return;
    if (blockIdx.x == 0) {
        data[0] = 5;
        asm volatile("st.release.cluster.global.u32 [%0], 1;" ::"l"(words) : "memory");
    } else {
        while (value != 1) asm volatile("ld.acquire.cluster.global.u32 %0, [%1];" : "=r"(value) : "l"(words) : "memory");
        out[0] = data[0];
    }
}

// The kernel was not compiled for clusters: the launch makes some. The last block of each sends how many there are, and what the first one has.
KERNEL(cluster_of_a_launch) {
    __shared__ int mine;
    const cg::cluster_group cluster = cg::this_cluster();
    if (FIRST) mine = in[0] + 10 + blockIdx.x;
    cluster.sync();
    if (cluster.block_rank() == cluster.num_blocks() - 1 && FIRST) {
        nvshmem_int_p(out + blockIdx.x / cluster.num_blocks(), 1000 * cluster.num_blocks() + *cluster.map_shared_rank(&mine, 0), NEXT);
    }
    cluster.sync();
}
