/* The calls of `onesided bench --backend nvshmem`, in loops that do nothing else: no timing, no waiting.
 *
 * Compiled twice. nvshmem.cpp includes it: the C++ program, in processes of its own. Alone it is a shared object that our
 * own processes open, so that both loops meet the same memory, stream and core (hardware/cpp.rs declares the functions
 * once more). It needs libnvshmem_host, types of CUDA, and for launches the driver, which it opens itself.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <nvshmem_host.h>

#include <cstddef>
#include <cstdint>

/* The driver's functions, and a kernel that does nothing: that of kernels/nothing.cu. */
struct Launching {
    decltype(&cuLaunchKernel) launch;
    decltype(&cuLaunchCooperativeKernel) launch_cooperative;
    CUfunction nothing;
    int status; /* of what went wrong first; -1 without a driver */
};

static Launching prepare_launching() {
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry nothing(.param .u64 dst, .param .u64 src, .param .u64 flag, .param .u32 count, .param .u32 calls)\n"
        "{ ret; }\n";
    Launching all = {nullptr, nullptr, nullptr, -1};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return all;
    auto load = decltype(&cuModuleLoadData)(dlsym(driver, "cuModuleLoadData"));
    auto find = decltype(&cuModuleGetFunction)(dlsym(driver, "cuModuleGetFunction"));
    all.launch = decltype(&cuLaunchKernel)(dlsym(driver, "cuLaunchKernel"));
    all.launch_cooperative = decltype(&cuLaunchCooperativeKernel)(dlsym(driver, "cuLaunchCooperativeKernel"));
    if (!load || !find || !all.launch || !all.launch_cooperative) return all;
    CUmodule module;
    all.status = load(&module, ptx);
    if (all.status == 0) all.status = find(&all.nothing, module, "nothing");
    return all;
}

extern "C" {

/* Of the library that these loops call: 2 or more after initialization. */
int loop_status() { return nvshmemx_init_status(); }

/* Puts to PE 1. */
void loop_put(uint32_t operations, void *dst, const void *src, size_t bytes, cudaStream_t stream) {
    for (uint32_t k = 0; k < operations; k++) nvshmemx_putmem_on_stream(dst, src, bytes, 1, stream);
}

/* Gets from PE 1. */
void loop_get(uint32_t operations, void *dst, const void *src, size_t bytes, cudaStream_t stream) {
    for (uint32_t k = 0; k < operations; k++) nvshmemx_getmem_on_stream(dst, src, bytes, 1, stream);
}

/* Gets from PE 1 by the host. Behind a network the data is there after a quiet only. */
void loop_host_get(uint32_t operations, void *dst, const void *src, size_t bytes) {
    bool is_far = nvshmem_ptr(src, 1) == nullptr;
    for (uint32_t k = 0; k < operations; k++) {
        nvshmem_getmem(dst, src, bytes, 1);
        if (is_far) nvshmem_quiet();
    }
}

/* There and back between PE 0 and PE 1: a put with signal and a wait. `turn` is the last value that the flag had. */
void loop_ping_pong(uint32_t operations, void *dst, const void *src, size_t bytes, uint64_t *flag, uint64_t turn, int me,
                    cudaStream_t stream) {
    for (uint32_t k = 0; k < operations; k++) {
        turn++;
        if (me == 1) nvshmemx_signal_wait_until_on_stream(flag, NVSHMEM_CMP_GE, turn, stream);
        nvshmemx_putmem_signal_on_stream(dst, src, bytes, flag, turn, NVSHMEM_SIGNAL_SET, 1 - me, stream);
        if (me == 0) nvshmemx_signal_wait_until_on_stream(flag, NVSHMEM_CMP_GE, turn, stream);
    }
}

/* Barriers of all PEs. */
void loop_barrier(uint32_t operations, cudaStream_t stream) {
    for (uint32_t k = 0; k < operations; k++) nvshmemx_barrier_all_on_stream(stream);
}

/* Sums over all PEs. Ends with the first status that is not 0, and returns it. */
int loop_reduce(uint32_t operations, float *sums, const float *addends, size_t count, cudaStream_t stream) {
    int status = 0;
    for (uint32_t k = 0; k < operations && status == 0; k++)
        status = nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, sums, addends, count, stream);
    return status;
}

/* Launches of a kernel that does nothing, with one thread. Ends with the first status that is not 0, and returns it. The
 * first call loads the kernel. */
int loop_launch(uint32_t operations, int cooperative, void *dst, const void *src, uint64_t *flag, int count,
                cudaStream_t stream) {
    static const Launching all = prepare_launching();
    int calls = 0, status = all.status;
    void *arguments[] = {&dst, &src, &flag, &count, &calls};
    for (uint32_t k = 0; k < operations && status == 0; k++)
        status = cooperative ? all.launch_cooperative(all.nothing, 1, 1, 1, 1, 1, 1, 0, stream, arguments)
                             : all.launch(all.nothing, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
    return status;
}

} /* extern "C" */
