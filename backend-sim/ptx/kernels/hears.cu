// A kernel hears of data that a transfer has brought, by a wait of NVSHMEM or by loads of its own.
#include <nvshmem.h>

enum { WAIT = 1, ACQUIRE = 2, READ = 4, ANSWER = 8, PASS = 16, ADD = 32 };

// PE 0 sends data with a signal. The first block of PE 1 hears of it, and reads the data, answers, or tells the second block.
extern "C" __global__ void hears(int *data, uint64_t *flags, int *seen, int how) {
    if (nvshmem_my_pe() == 0) {
        if (blockIdx.x > 0) return;
        *seen = data[1];
        nvshmem_int_put_signal(data, data + 2, 1, flags, 1, NVSHMEM_SIGNAL_SET, 1);
    } else if (blockIdx.x == 0) {
        if (how & WAIT) {
            nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        } else if (how & ACQUIRE) {
            uint64_t value = 0;
            while (value != 1) asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flags) : "memory");
        } else {
            while (*(volatile uint64_t *)flags != 1) {}
            __threadfence_system();
        }
        if (how & READ) *seen = data[0];
        if (how & ANSWER) nvshmem_int_p(data + 1, 7, 0);
        if (how & PASS) {
            __threadfence();
            *(volatile uint64_t *)(flags + 1) = 1;
        }
        if (how & ADD) {
            __threadfence();
            atomicAdd_system((unsigned long long *)flags, 1);
        }
    } else if (how & (PASS | ADD)) {
        while (*(volatile uint64_t *)(how & PASS ? flags + 1 : flags) != (how & PASS ? 1 : 2)) {}
        __threadfence();
        *seen = data[0];
    }
}
