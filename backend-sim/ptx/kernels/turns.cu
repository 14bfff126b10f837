// Threads send one transfer each. Where transfers arrive in the order of issue, that is said of those whose threads follow each other.
#include <nvshmem.h>
#include <nvshmemx.h>

// How a thread of PE 0 sends its value to PE 1, and its signal.
#define BY_P [=](int i) { nvshmem_int_p(data + i, 7, 1); }
#define BY_PUT [=](int i) { nvshmem_int_put(data + i, data + i, 1, 1); }
#define BY_ADD [=](int i) { nvshmem_int_atomic_add(data, 1, 1); }
#define BY_PUT_SIGNAL [=](int i) { nvshmem_int_put_signal(data + i, data + i, 1, signal + i, 1, NVSHMEM_SIGNAL_SET, 1); }

// Every thread of both PEs sends, and everybody meets.
template <typename Send> __device__ void all_send(Send send) {
    if (nvshmem_my_pe() == 0) send(threadIdx.x);
    nvshmemx_barrier_all_block();
}

#define ALL_SEND(name, send) extern "C" __global__ void name(int *data, uint64_t *signal) { all_send(send); }
ALL_SEND(all_by_p, BY_P)
ALL_SEND(all_by_put, BY_PUT)
ALL_SEND(all_by_add, BY_ADD)

// Each thread of PE 1 waits for what one thread of PE 0 sends.
extern "C" __global__ void each_waits(int *data, uint64_t *signal) {
    if (nvshmem_my_pe() == 0) {
        (BY_PUT_SIGNAL)(threadIdx.x);
        return;
    }
    nvshmem_signal_wait_until(signal + threadIdx.x, NVSHMEM_CMP_EQ, 1);
    if (threadIdx.x == 0) data[32] = data[0] + 1;
}

// How thread 1 of PE 0 learns that thread 0 has sent.
#define NOT_AT_ALL [=] {}
#define BY_BARRIER [=] { __syncthreads(); }
#define BY_RELEASE [=] { told(data + 33, 1); }
#define BY_RELAXED [=] { told(data + 33, 0); }
__device__ void told(int *flag, int release) {
    if (threadIdx.x == 0) {
        if (release) asm volatile("st.release.gpu.s32 [%0], 1;" ::"l"(flag) : "memory");
        else asm volatile("st.relaxed.gpu.s32 [%0], 1;" ::"l"(flag) : "memory");
    } else if (threadIdx.x == 1) {
        int seen;
        do {
            if (release) asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
            else asm volatile("ld.relaxed.gpu.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        } while (seen != 1);
    }
}

// Thread 0 sends, and thread 1 signals. PE 1 waits for the signal.
template <typename Send, typename Tell, typename Use> __device__ void two_send(uint64_t *signal, Send send, Tell tell, Use use) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 0) send();
        tell();
        if (threadIdx.x == 1) nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        use();
    }
}

#define A_VALUE [=] { nvshmem_int_p(data, 7, 1); }
#define A_SIGNAL [=] { nvshmemx_signal_op(signal + 1, 7, NVSHMEM_SIGNAL_SET, 1); }
#define READS [=] { data[32] = data[0]; }
#define FETCHES [=] { data[32] = (int)nvshmem_signal_fetch(signal + 1); }
#define TWO_SEND(name, send, tell, use) extern "C" __global__ void name(int *data, uint64_t *signal) { two_send(signal, send, tell, use); }
TWO_SEND(value_behind_nothing, A_VALUE, NOT_AT_ALL, READS)
TWO_SEND(value_behind_a_barrier, A_VALUE, BY_BARRIER, READS)
TWO_SEND(value_behind_a_release, A_VALUE, BY_RELEASE, READS)
TWO_SEND(value_behind_a_relaxed_store, A_VALUE, BY_RELAXED, READS)
TWO_SEND(signal_behind_nothing, A_SIGNAL, NOT_AT_ALL, FETCHES)
TWO_SEND(signal_behind_a_barrier, A_SIGNAL, BY_BARRIER, FETCHES)
TWO_SEND(signal_behind_a_release, A_SIGNAL, BY_RELEASE, FETCHES)
