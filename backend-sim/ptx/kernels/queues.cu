// Queues of tasks, as in Mirage's persistent kernels: a worker polls how many tasks are ready, and compares that twice with how many it has taken.
#include <nvshmem.h>

#define ALL unsigned long long *ready, int *tasks, int *out
constexpr unsigned long long LENGTH = 4;

__device__ unsigned long long load(const unsigned long long *from) {
    unsigned long long found;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(found) : "l"(from) : "memory");
    return found;
}

// Each PE puts tasks into the queue of the next one.
__device__ void schedule(ALL, int count, bool announces = true) {
    const int me = nvshmem_my_pe(), next = (me + 1) % nvshmem_n_pes();
    int *queue = (int *)nvshmem_ptr(tasks, next);
    for (int i = 0; i < count; i++) {
        queue[i % LENGTH] = 10 * me + i + 1;
        if (announces) asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(nvshmem_ptr(ready, next)), "l"(i + 1ull) : "memory");
    }
}

// Takes so many tasks.
__device__ void work(ALL, int count) {
    unsigned long long taken = 0, last = 0;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        while (taken == last) {
            last = load(ready);
            if (taken < last) break;
            __nanosleep(10);
        }
        out[0] += tasks[taken % LENGTH];
        taken++;
    }
}

extern "C" __global__ void one_task(ALL) {
    schedule(ready, tasks, out, 1);
    work(ready, tasks, out, 1);
}

extern "C" __global__ void two_tasks(ALL) {
    schedule(ready, tasks, out, 2);
    work(ready, tasks, out, 2);
}

// The tasks are announced before they are there.
extern "C" __global__ void announced_before(ALL) {
    const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(nvshmem_ptr(ready, next)), "l"(1ull) : "memory");
    schedule(ready, tasks, out, 1, false);
    work(ready, tasks, out, 1);
}

// One task more is taken than comes.
extern "C" __global__ void one_too_many(ALL) {
    schedule(ready, tasks, out, 1);
    work(ready, tasks, out, 2);
}

// It tells how often it has looked in vain: that is seen.
extern "C" __global__ void counts_its_looks(ALL) {
    schedule(ready, tasks, out, 1);
    int looks = 0;
    unsigned long long last = 0;
    while (last == 0) {
        last = load(ready);
        if (last > 0) break;
        looks++;
    }
    out[0] = looks < 1 ? tasks[0] : -looks;
}

// It fails if its first look was in vain and its second is not.
extern "C" __global__ void fails_behind_one_look(ALL) {
    schedule(ready, tasks, out, 1);
    asm volatile(
        "{\n.reg .pred there, second;\n.reg .u64 found;\n.reg .u32 looks;\nmov.u32 looks, 0;\n"
        "again: ld.acquire.sys.global.u64 found, [%0];\nadd.u32 looks, looks, 1;\n"
        "setp.ne.u64 there, found, 0;\nsetp.eq.u32 second, looks, 2;\nand.pred second, second, there;\n"
        "@second bra fails;\n@!there bra again;\nbra done;\nfails: trap;\ndone:\n}" ::"l"(ready)
        : "memory");
    out[0] = tasks[0];
}
