// A GPU without free memory: what still works, and what ends the process.
#pragma once

#include "memory.h"

// Takes what is free on this GPU, together with the PEs that share it.
inline void fill_gpu() {
    meet("empty");
    for (size_t bytes = size_t(1) << 30; bytes >= size_t(2) << 20;) {
        void *block = nullptr;
        if (CALL(cudaMalloc(&block, bytes)) != cudaSuccess) {
            CALL(cudaGetLastError());
            bytes /= 2;
        }
    }
    meet("full");
    size_t available = 0, total = 0;
    CUDA(cudaMemGetInfo(&available, &total));
    observed("free_bytes", (uint64_t)available);
}

// The physical memory that the heap has around an address.
inline void observed_mapping(const std::string &key, void *pointer) {
    CUdeviceptr base = 0;
    size_t size = 0;
    DRIVER(cuMemGetAddressRange, &base, &size, (CUdeviceptr)pointer);
    observed(key + "_offset", (uint64_t)((CUdeviceptr)pointer - base));
    observed(key + "_mapped", (uint64_t)size);
}

// Blocks of so many MiB until there is none.
inline void ask_full_malloc(size_t mebibytes) {
    Pe pe = start();
    fill_gpu();
    int blocks = 0;
    void *last = nullptr;
    for (; blocks < 4096; blocks++) {
        void *block = CALL(nvshmem_malloc(mebibytes << 20));
        if (!block) break;
        observed("blocks", blocks + 1);
        if (blocks == 0) observed_mapping("first", block);
        last = block;
    }
    if (last) observed_mapping("last", last);
    say(text("%d blocks, then NULL", blocks));
    if (last) CALL(nvshmem_free(last));
    still_works(pe, "afterwards");
    finish();
}

// What a team takes of the heap, and whether one can be made where nothing is left.
inline void ask_full_teams() {
    start();
    auto *before = symmetric<char>(512);
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    CALL(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, all_pes(), nullptr, 0, &team));
    auto *after = symmetric<char>(512);
    observed("heap_of_a_team", (long long)(after - before));
    fill_gpu();
    int teams = 0, rc = 0;
    for (; teams < 24; teams++) {
        rc = CALL(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, all_pes(), nullptr, 0, &team));
        if (rc != 0 || team == NVSHMEM_TEAM_INVALID) break;
        observed("teams", teams + 1);
    }
    say(text("%d teams, the last call returned %d", teams, rc));
    finish();
}

// Calls whose kernels were not loaded yet.
inline void ask_full_calls() {
    Pe pe = start();
    const size_t elements = 400000;
    int *to = symmetric<int>(elements), *from = symmetric<int>(elements);
    auto *word = symmetric<uint64_t>(8);
    cudaStream_t stream = new_stream();
    fill_gpu();
    CALL(nvshmem_barrier_all());
    say("barrier_all returns");
    CALL(nvshmem_putmem(to, from, 4096, pe.peer()));
    CALL(nvshmemx_signal_op_on_stream(word, 1, NVSHMEM_SIGNAL_SET, pe.peer(), stream));
    CALL(nvshmemx_signal_wait_until_on_stream(word, NVSHMEM_CMP_EQ, 1, stream));
    observed("waited", error_word(drained(stream, 5)));
    say("put and signal too");
    int rc = CALL(nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, to, from, elements, stream));
    cudaError_t state = drained(stream, 5);
    observed("rc", rc);
    say(text("a reduction returns %d, its stream: %s", rc, error_word(state).c_str()));
    finish();
}
