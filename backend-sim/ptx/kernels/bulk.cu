// A bulk copy into shared memory, awaited at an mbarrier, and back to global memory as a bulk group.
extern "C" __global__ void bulk(int *out, const int *in, int bytes) {
    __shared__ alignas(128) int buffer[256];
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    const unsigned data = (unsigned)__cvta_generic_to_shared(buffer);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(data),
                     "l"(in), "r"(bytes), "r"(at) : "memory");
    }
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra finished;\n"
                 "bra again;\n"
                 "finished:\n"
                 "}" ::"r"(at), "r"(0) : "memory");
    buffer[threadIdx.x] += 1000;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out), "r"(data), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(at));
    }
}

// One thread of the warp does the work, whichever the hardware elects.
extern "C" __global__ void elected(int *out) {
    unsigned leader = 0, chosen = 0;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 ".reg .b32 lane;\n"
                 "elect.sync lane|p, %2;\n"
                 "@p mov.b32 %1, 1;\n"
                 "mov.b32 %0, lane;\n"
                 "}" : "+r"(leader), "+r"(chosen) : "r"(0xffffffffu));
    if (chosen) out[0] = leader + 100;
}
