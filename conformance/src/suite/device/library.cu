// Waits of libcu++ in memory of peers. They look some twenty times before they begin to sleep, and once more behind that.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/semaphore>
#include "kernel.h"

template <class T> __device__ T *at(T *word, int pe) { return static_cast<T *>(nvshmem_ptr(word, pe)); }
using Word = cuda::atomic_ref<int, cuda::thread_scope_system>;
using Semaphore = cuda::counting_semaphore<cuda::thread_scope_system>;
using Barrier = cuda::barrier<cuda::thread_scope_system>;

// What comes with a word that is waited for is there.
KERNEL(atomic_wait) {
    *at(data, NEXT) = 7 + ME;
    Word(*at(data + 1, NEXT)).store(1, cuda::memory_order_release);
    Word(data[1]).wait(0, cuda::memory_order_acquire);
    out[0] = data[0];
}

// Each word changes twice: the second wait finds another value than 0 there, and ends at once.
KERNEL(atomic_wait_for_change) {
    Word theirs(*at(data, NEXT)), mine(*data);
    theirs.store(1, cuda::memory_order_release);
    mine.wait(0, cuda::memory_order_acquire);
    theirs.fetch_add(1, cuda::memory_order_acq_rel);
    mine.wait(0, cuda::memory_order_acquire);
    nvshmem_barrier_all();
    out[0] = data[0];
}

// A semaphore of each PE, which the one before releases.
KERNEL(semaphore) {
    Semaphore *mine = new (words + 4) Semaphore(0);
    nvshmem_barrier_all();
    *at(data, NEXT) = 7 + ME;
    at(mine, NEXT)->release();
    mine->acquire();
    out[0] = data[0];
    nvshmem_barrier_all();
}

// All PEs meet at a barrier of PE 0: what was written before is there.
KERNEL(barrier_of_cuda) {
    Barrier *mine = reinterpret_cast<Barrier *>(words + 4);
    if (ME == 0) init(mine, N);
    nvshmem_barrier_all();
    *at(data, NEXT) = 7 + ME;
    at(mine, 0)->arrive_and_wait();
    out[0] = data[0];
    nvshmem_barrier_all();
}
