// Waits of libcu++, which look some twenty times before they begin to sleep, and once more behind that.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/semaphore>
#include <nvshmem.h>

namespace {
template <class T> __device__ T *at(T *word, int pe) { return static_cast<T *>(nvshmem_ptr(word, pe)); }
using Word = cuda::atomic_ref<int, cuda::thread_scope_system>;
using Semaphore = cuda::counting_semaphore<cuda::thread_scope_system>;
using Barrier = cuda::barrier<cuda::thread_scope_system>;
} // namespace

// Each PE writes to the next one, and waits for the one before.
extern "C" __global__ void atomic_wait(int *flag, int *data, int *out) {
    int me = nvshmem_my_pe(), next = (me + 1) % nvshmem_n_pes();
    *at(data, next) = 7 + me;
    Word(*at(flag, next)).store(1, cuda::memory_order_release);
    Word(*flag).wait(0, cuda::memory_order_acquire);
    *out = *data;
}

// The same without order: the wait tells nothing.
extern "C" __global__ void atomic_wait_relaxed(int *flag, int *data, int *out) {
    int me = nvshmem_my_pe(), next = (me + 1) % nvshmem_n_pes();
    *at(data, next) = 7 + me;
    Word(*at(flag, next)).store(1, cuda::memory_order_release);
    Word(*flag).wait(0, cuda::memory_order_relaxed);
    *out = *data;
}

// Nobody sends.
extern "C" __global__ void atomic_wait_for_ever(int *flag, int *data, int *out) {
    Word(*flag).wait(0, cuda::memory_order_acquire);
    *out = *data;
}

extern "C" __global__ void semaphore(int *flag, int *data, int *out) {
    int me = nvshmem_my_pe(), next = (me + 1) % nvshmem_n_pes();
    Semaphore *mine = new (flag) Semaphore(0);
    nvshmem_barrier_all();
    *at(data, next) = 7 + me;
    at(mine, next)->release();
    mine->acquire();
    *out = *data;
    nvshmem_barrier_all();
}

// All PEs meet at the barrier of PE 0.
extern "C" __global__ void barrier(int *flag, int *data, int *out) {
    int me = nvshmem_my_pe(), next = (me + 1) % nvshmem_n_pes();
    Barrier *mine = reinterpret_cast<Barrier *>(flag);
    if (me == 0) init(mine, nvshmem_n_pes());
    nvshmem_barrier_all();
    *at(data, next) = 7 + me;
    at(mine, 0)->arrive_and_wait();
    *out = *data;
    nvshmem_barrier_all();
}
