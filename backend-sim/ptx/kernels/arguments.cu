// Calls read and write arrays of their caller: which words they leave out, what they compare with, which they have found.
#include <nvshmem.h>
#include <nvshmemx.h>

// PE 0 sets the first of two words. A thread of PE 1 waits for it, and leaves out the second, as another thread has said in shared memory.
template <bool MEETS> __device__ void leave_out(int *data, uint64_t *signal) {
    __shared__ int status[2];
    if (threadIdx.x == 0) status[0] = 0, status[1] = 1;
    if (MEETS) __syncthreads();
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 1) nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else if (threadIdx.x == 1) {
        nvshmem_uint64_wait_until_all(signal, 2, status, NVSHMEM_CMP_EQ, 1);
        data[0] = 1;
    }
}

extern "C" __global__ void left_out(int *data, uint64_t *signal) { leave_out<true>(data, signal); }
extern "C" __global__ void left_out_racing(int *data, uint64_t *signal) { leave_out<false>(data, signal); }

// Nobody says what to leave out.
extern "C" __global__ void left_out_by_chance(int *data, uint64_t *signal) {
    __shared__ int status[2];
    if (threadIdx.x == 0) data[0] = nvshmem_uint64_test_all(signal, 2, status, NVSHMEM_CMP_EQ, 1);
}

// One thread asks in global memory, where another one writes.
extern "C" __global__ void left_out_in_global(int *data, uint64_t *signal) {
    if (threadIdx.x == 1) data[1] = 1;
    if (threadIdx.x == 0) nvshmem_uint64_test_all(signal, 2, data, NVSHMEM_CMP_EQ, 1);
}

// What a call has found lies in shared memory, where another thread reads.
template <bool MEETS> __device__ void find(int *data, uint64_t *signal) {
    __shared__ size_t indices[2];
    if (threadIdx.x == 1) indices[0] = indices[1] = 7;
    __syncthreads();
    if (threadIdx.x == 1) data[1] = (int)indices[0];
    if (MEETS) __syncthreads();
    if (threadIdx.x == 0) data[0] = (int)nvshmem_uint64_test_some(signal, 2, indices, NULL, NVSHMEM_CMP_EQ, 0);
}

extern "C" __global__ void found(int *data, uint64_t *signal) { find<true>(data, signal); }
extern "C" __global__ void found_racing(int *data, uint64_t *signal) { find<false>(data, signal); }
