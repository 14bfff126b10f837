// Collectives by the number of elements: which come out right. The library changes its algorithm with the size, and the
// sizes stand on both sides of where its header files say that it does.
#pragma once

#include <functional>

#include "pe.h"

// What PE `pe` has in element `i` of its source.
inline int element_of(int pe, size_t i) { return int(i) * 7 + pe * 100003; }

// One collective of ints: what it is called with, and what must come out.
struct Collective {
    size_t blocks_in, blocks_out;  // of the size, on each PE
    std::function<int(int *to, int *from, size_t size)> host;
    std::function<int(int *to, int *from, size_t size, cudaStream_t stream)> stream;
    std::function<int(size_t size, size_t i)> expected;
};

inline Collective collective(const std::string &name, const Pe &pe) {
    const nvshmem_team_t world = NVSHMEM_TEAM_WORLD;
    const size_t pes = pe.pes, rank = pe.rank;
    auto sum = [pes](size_t i) {
        int sum = 0;
        for (size_t p = 0; p < pes; p++) sum += element_of(int(p), i);
        return sum;
    };
    if (name == "reduce" || name == "in-place")
        return {1, 1,
                [](int *to, int *from, size_t size) { return CALL(nvshmem_int_sum_reduce(world, to, from, size)); },
                [](int *to, int *from, size_t size, cudaStream_t s) {
                    return CALL(nvshmemx_int_sum_reduce_on_stream(world, to, from, size, s));
                },
                [sum](size_t, size_t i) { return sum(i); }};
    if (name == "reducescatter")
        return {pes, 1,
                [](int *to, int *from, size_t size) {
                    return CALL(nvshmem_int_sum_reducescatter(world, to, from, size));
                },
                [](int *to, int *from, size_t size, cudaStream_t s) {
                    return CALL(nvshmemx_int_sum_reducescatter_on_stream(world, to, from, size, s));
                },
                [sum, rank](size_t size, size_t i) { return sum(rank * size + i); }};
    if (name == "fcollect")
        return {1, pes,
                [](int *to, int *from, size_t size) { return CALL(nvshmem_int_fcollect(world, to, from, size)); },
                [](int *to, int *from, size_t size, cudaStream_t s) {
                    return CALL(nvshmemx_int_fcollect_on_stream(world, to, from, size, s));
                },
                [](size_t size, size_t i) { return element_of(int(i / size), i % size); }};
    if (name == "alltoall")
        return {pes, pes,
                [](int *to, int *from, size_t size) { return CALL(nvshmem_int_alltoall(world, to, from, size)); },
                [](int *to, int *from, size_t size, cudaStream_t s) {
                    return CALL(nvshmemx_int_alltoall_on_stream(world, to, from, size, s));
                },
                [rank](size_t size, size_t i) { return element_of(int(i / size), rank * size + i % size); }};
    if (name == "broadcast")
        return {1, 1,
                [](int *to, int *from, size_t size) { return CALL(nvshmem_int_broadcast(world, to, from, size, 0)); },
                [](int *to, int *from, size_t size, cudaStream_t s) {
                    return CALL(nvshmemx_int_broadcast_on_stream(world, to, from, size, 0, s));
                },
                [](size_t, size_t i) { return element_of(0, i); }};
    throw Broken{"no such collective: " + name};
}

inline void ask_sizes(const std::string &name) {
    const std::vector<size_t> sizes{1,    511,  512,   513,   1024,  2048,  2049,  4096,  4097,   4681,   4682,   8192,
                                    8193, 16384, 16385, 21845, 21846, 32768, 32769, 65536, 131071, 131072, 131073, 400000};
    const size_t most = sizes.back();
    Pe pe = start();
    Desk desk;
    Collective ask = collective(name, pe);
    int *from = symmetric<int>(most * ask.blocks_in);
    int *to = name == "in-place" ? from : symmetric<int>(most * ask.blocks_out);
    cudaStream_t stream = new_stream();
    std::vector<int> source(most * ask.blocks_in);
    for (size_t i = 0; i < source.size(); i++) source[i] = element_of(pe.rank, i);
    std::string words[2];
    for (bool on_stream : {false, true}) {
        std::string right, wrong;
        for (size_t size : sizes) {
            observed("elements", size);
            observed("on_stream", on_stream);
            if (to != from) desk.put(to, std::vector<int>(size * ask.blocks_out, -1));
            desk.put(from, std::vector<int>(source.begin(), source.begin() + size * ask.blocks_in));
            CALL(nvshmem_barrier_all());
            int rc = on_stream ? ask.stream(to, from, size, stream) : ask.host(to, from, size);
            cudaError_t state = CALL(drained(stream, 3));
            if (rc != 0 || state != cudaSuccess) {
                say(text("%zu elements%s: rc %d, stream %s", size, on_stream ? " on a stream" : "", rc,
                         error_word(state).c_str()));
                leave();  // what is on the GPU may never end
            }
            std::vector<int> has = desk.get(to, size * ask.blocks_out);
            size_t bad = 0;
            for (size_t i = 0; i < has.size(); i++) bad += has[i] != ask.expected(size, i);
            if (bad == 0)
                right += text(" %zu", size);
            else
                wrong += text(" %zu (%s)", size, bad == has.size() ? "all" : text("%zu", bad).c_str());
            CALL(nvshmem_barrier_all());
        }
        words[on_stream] = wrong.empty() ? text("right with %zu to %zu elements", sizes[0], most)
                                         : "right with" + right + " elements; wrong with" + wrong;
    }
    say(words[0] + (words[0] == words[1] ? ", host and stream" : " from the host; on a stream " + words[1]));
    finish();
}

// Whether barriers of other teams still wait after one of the world has moved so many elements for each PE: PE 1 comes
// late to each barrier, and PE 0 takes the time.
inline void ask_teams_after_reducescatter(size_t size) {
    const int made = 6, late_ms = 100;
    Pe pe = start();
    std::vector<nvshmem_team_t> teams{NVSHMEM_TEAM_SHARED, NVSHMEMX_TEAM_NODE};
    for (int i = 0; i < made; i++) {
        nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
        nvshmem_team_config_t config{};
        if (CALL(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, pe.pes, &config, 0, &team)) != 0)
            throw Broken{"no team could be made"};
        teams.push_back(team);
    }
    const int many = int(teams.size());
    int *from = symmetric<int>(size * pe.pes), *to = symmetric<int>(size);
    CUDA(cudaMemset(from, 0x70, size * pe.pes * sizeof(int)));
    CUDA(cudaDeviceSynchronize());
    CALL(nvshmem_barrier_all());
    auto barriers_that_wait = [&](const std::string &when) {
        int waited = 0;
        for (int i = 0; i < many; i++) {
            meet(when + std::to_string(i));
            if (pe.rank == 1) pause_ms(late_ms);
            auto begin = Clock::now();
            CALL(nvshmem_barrier(teams[i]));
            waited += seconds_since(begin) > late_ms / 2000.0;
        }
        return waited;
    };
    int before = barriers_that_wait("before");
    int rc = CALL(nvshmem_int_max_reducescatter(NVSHMEM_TEAM_WORLD, to, from, size));
    int after = barriers_that_wait("after"), again = barriers_that_wait("again");
    if (pe.rank == 0) {
        observed("rc", rc);
        observed("waited_before", before);
        observed("waited_after", after);
        observed("waited_again", again);
        say(text("rc %d; of the barriers of %d other teams %d waited before, %d after, %d the second time", rc, many, before,
                 after, again));
    }
    finish();
}
