// A kernel hears of data that a transfer has brought, by a wait of NVSHMEM or by loads of its own.
#include <nvshmem.h>
#include <nvshmemx.h>

enum { WAIT = 1, ACQUIRE = 2, READ = 4, ANSWER = 8, PASS = 16, ADD = 32, NBI = 64, THERE = 128, ADD_MORE = 256, STORE = 512, BACK = 1024, QUIET = 2048 };

// Until the word has the value.
__device__ void poll(uint64_t *word, uint64_t value) {
    while (*(volatile uint64_t *)word != value) {}
}

// PE 0 sends data with a signal. The first block of PE 1 hears of it, and reads the data, answers, or tells the second block, directly or by way of
// PE 0; or PE 0 reads the data there. If there is a PE 2, PE 0 has completed a put to it before, and PE 1 fetches what that brought.
extern "C" __global__ void hears(int *data, uint64_t *flags, int *seen, int how) {
    if (nvshmem_my_pe() == 0) {
        if (blockIdx.x > 0) return;
        *seen = data[1];
        if (nvshmem_n_pes() > 2) {
            nvshmem_int_p(data + 3, 42, 2);
            nvshmem_quiet();
        }
        if (how & QUIET) {
            nvshmem_int_p(data, 42, 1);
            nvshmem_quiet();
            nvshmemx_signal_op(flags, 1, NVSHMEM_SIGNAL_SET, 1);
        } else if (how & NBI) {
            nvshmem_int_put_signal_nbi(data, data + 2, 1, flags, 1, NVSHMEM_SIGNAL_SET, 1);
        } else {
            nvshmem_int_put_signal(data, data + 2, 1, flags, 1, NVSHMEM_SIGNAL_SET, 1);
        }
        if (how & BACK) {
            nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
            __threadfence_system();
            *(volatile uint64_t *)nvshmem_ptr(flags + 1, 1) = 1;
        }
        if (how & THERE) {
            poll((uint64_t *)nvshmem_ptr(how & PASS ? flags + 1 : flags, 1), how & PASS ? 1 : how & (ADD_MORE | STORE) ? 3 : 2);
            __threadfence_system();
            *seen = *(int *)nvshmem_ptr(data, 1);
        }
    } else if (nvshmem_my_pe() > 1) {
        return;
    } else if (blockIdx.x == 0) {
        if (how & WAIT) {
            nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        } else if (how & ACQUIRE) {
            uint64_t value = 0;
            while (value != 1) asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flags) : "memory");
        } else {
            poll(flags, 1);
            __threadfence_system();
        }
        if (nvshmem_n_pes() > 2) *seen = nvshmem_int_g(data + 3, 2);
        if (how & READ) *seen = data[0];
        if (how & BACK) nvshmemx_signal_op(flags, 1, NVSHMEM_SIGNAL_SET, 0);
        if (how & ANSWER) nvshmem_int_p(data + 1, 7, 0);
        if (how & PASS) {
            __threadfence_system();
            *(volatile uint64_t *)(flags + 1) = 1;
        }
        if (how & ADD) {
            __threadfence_system();
            atomicAdd_system((unsigned long long *)flags, 1);
        }
    } else if (how & ADD_MORE) {
        poll(flags, 2);
        atomicAdd_system((unsigned long long *)flags, 1);
    } else if (how & STORE) {
        poll(flags, 2);
        *(volatile uint64_t *)flags = 3;
    } else if (how & (PASS | ADD | BACK)) {
        poll(how & ADD ? flags : flags + 1, how & ADD ? 2 : 1);
        __threadfence_system();
        *seen = data[0];
    }
}
