// The symmetric heap: odd sizes and alignments, exhaustion, and registering memory of one's own.
#pragma once

#include "pe.h"

inline void ask_malloc_zero() {
    Pe pe = start();
    void *p = CALL(nvshmem_malloc(0));
    observed("malloc_0", pointer_word(p));
    void *c = CALL(nvshmem_calloc(0, 8));
    observed("calloc_0_8", pointer_word(c));
    void *a = CALL(nvshmem_align(64, 0));
    observed("align_64_0", pointer_word(a));
    say("malloc(0) gives " + pointer_word(p) + ", calloc(0, 8) " + pointer_word(c) + ", align(64, 0) " +
        pointer_word(a));
    still_works(pe, "afterwards");
    finish();
}

inline void ask_align(size_t alignment) {
    Pe pe = start();
    void *p = CALL(nvshmem_align(alignment, 64));
    observed("pointer", pointer_word(p));
    if (p) {
        int power = __builtin_ctzll((unsigned long long)p);
        observed("address_modulo_alignment", uint64_t(p) % alignment);
        observed("address_is_multiple_of_2_to_the", power);
        say(text("an address, %s multiple of %zu, of 512: %s", uint64_t(p) % alignment ? "no" : "a", alignment,
                 power >= 9 ? "yes" : "no"));
    } else {
        say("NULL");
    }
    still_works(pe, "afterwards");
    finish();
}

inline void ask_free_interior() {
    Pe pe = start();
    char *p = symmetric<char>(4096);
    CALL(nvshmem_free(p + 512));
    say("free(p + 512) returns");
    CALL(nvshmem_free(p));
    say("then free(p) returns");
    still_works(pe, "afterwards");
    finish();
}

inline void ask_malloc_huge(size_t gibibytes) {
    Pe pe = start();
    void *p = CALL(nvshmem_malloc(gibibytes << 30));
    observed("pointer", pointer_word(p));
    say("gives " + pointer_word(p));
    still_works(pe, "afterwards");
    finish();
}

// 70 % of a GPU's memory, shared between its PEs, then the same again.
inline void ask_malloc_twice() {
    Pe pe = start();
    size_t available = 0, total = 0;
    CUDA(cudaMemGetInfo(&available, &total));
    int sharing = CALL(nvshmem_team_n_pes(4));  // SAME_GPU
    observed("pes_on_this_gpu", sharing);
    if (sharing < 1 || sharing > pe.pes) sharing = pe.pes;
    size_t bytes = total / 10 * 7 / sharing / (2 << 20) * (2 << 20);
    observed("bytes", (uint64_t)bytes);
    void *first = CALL(nvshmem_malloc(bytes));
    observed("first", pointer_word(first));
    say("the first gives " + pointer_word(first));
    void *second = CALL(nvshmem_malloc(bytes));
    observed("second", pointer_word(second));
    say("the second " + pointer_word(second));
    still_works(pe, "afterwards");
    if (first) CALL(nvshmem_free(first));
    void *third = CALL(nvshmem_malloc(bytes));
    observed("after_free", pointer_word(third));
    say("after freeing the first, the same size gives " + pointer_word(third));
    finish();
}

inline void ask_calloc_overflow() {
    Pe pe = start();
    volatile size_t count = ((size_t)1 << 61) + 1;  // times 8 is 8 again, modulo 2 to the 64
    void *p = CALL(nvshmem_calloc(count, 8));
    observed("pointer", pointer_word(p));
    say("gives " + pointer_word(p));
    still_works(pe, "afterwards");
    finish();
}

template <class F>
F *driver_function(const char *name) {
    void *address = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    cudaError_t error = cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &result);
    if (error != cudaSuccess || !address) throw Broken{std::string("the driver has no ") + name};
    return (F *)address;
}
#define DRIVER(function, ...)                                                                  \
    do {                                                                                       \
        CUresult result = CALL(driver_function<decltype(function)>(#function)(__VA_ARGS__));   \
        if (result != CUDA_SUCCESS) throw Broken{text(#function " returned %d", (int)result)}; \
    } while (0)

// Device memory of one physical allocation, of the kind that can be registered.
inline void *mapped_memory(size_t bytes) {
    int device = 0, rdma = 0;
    CUDA(cudaGetDevice(&device));
    DRIVER(cuDeviceGetAttribute, &rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device);
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {};
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    properties.allocFlags.gpuDirectRDMACapable = rdma != 0;
    size_t granularity = 0;
    DRIVER(cuMemGetAllocationGranularity, &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    observed("cuda_granularity", (uint64_t)granularity);
    bytes = (bytes + granularity - 1) / granularity * granularity;
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    DRIVER(cuMemCreate, &handle, bytes, &properties, 0);
    DRIVER(cuMemAddressReserve, &address, bytes, granularity, 0, 0);
    DRIVER(cuMemMap, address, bytes, 0, handle, 0);
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER(cuMemSetAccess, address, bytes, &access, 1);
    return (void *)address;
}

inline void ask_register(size_t mebibytes) {
    Pe pe = start();
    size_t bytes = mebibytes << 20;
    auto *own = (uint64_t *)mapped_memory(bytes);
    auto *heap = symmetric<uint64_t>(64);
    Desk desk;
    desk.put(own, std::vector<uint64_t>(64, 5));
    meet("made");
    auto *registered = (uint64_t *)CALL(nvshmemx_buffer_register_symmetric(own, bytes, 0));
    observed("registered", pointer_word(registered));
    observed("same_address", registered == own);
    say("gives " + pointer_word(registered));
    if (registered) {
        desk.put(heap, uint64_t(70 + pe.rank));
        CALL(nvshmem_barrier_all());
        CALL(nvshmem_putmem(registered + 8, heap, 8, pe.peer()));
        CALL(nvshmem_barrier_all());
        bool right = desk.get(registered + 8) == uint64_t(70 + (pe.rank + pe.pes - 1) % pe.pes);
        observed("put_into_it_right", right);
        say(right ? "a put into it arrives" : "a put into it brings a wrong value");
        int rc = CALL(nvshmemx_buffer_unregister_symmetric(registered, bytes));
        observed("unregister_rc", rc);
        say(text("unregister returns %d", rc));
    }
    still_works(pe, "afterwards");
    finish();
}
