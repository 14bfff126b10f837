// Initialization and finalize, and what a job without MPS may call.
#pragma once

#include "pe.h"

inline const char *status_name(int status) {
    const char *names[] = {"NOT_INITIALIZED", "BOOTSTRAPPED", "INITIALIZED", "LIMITED_MPG", "FULL_MPG"};
    return status >= 0 && status < 5 ? names[status] : "unknown";
}

inline void ask_init() {
    select_device();
    auto begin = Clock::now();
    int rc = init_with("uid");
    observed("seconds", seconds_since(begin));
    int status = CALL(nvshmemx_init_status());
    observed("rc", rc);
    observed("status", status);
    observed("my_pe", CALL(nvshmem_my_pe()));
    observed("n_pes", CALL(nvshmem_n_pes()));
    say(text("rc %d, status %d (%s)", rc, status, status_name(status)));
    if (nvshmem_my_pe() != my_rank() || nvshmem_n_pes() != all_pes()) say("my_pe or n_pes is wrong");
    if (status >= 2) finish();
}

inline void ask_finalize_twice() {
    start();
    CALL(nvshmemx_hostlib_finalize());
    int status = CALL(nvshmemx_init_status());
    observed("status_after_first", status);
    say(text("status after the first %d", status));
    calling("the second nvshmemx_hostlib_finalize()");
    nvshmemx_hostlib_finalize();
    status = CALL(nvshmemx_init_status());
    observed("status_after_second", status);
    say(text("the second returns, status %d", status));
}

inline void ask_reinit() {
    start();
    CALL(nvshmemx_hostlib_finalize());
    meet("finalized");
    calling("the second initialization");
    int rc = init_with("uid-again");
    int status = CALL(nvshmemx_init_status());
    observed("rc_again", rc);
    observed("status_again", status);
    say(text("the second rc %d, status %d", rc, status));
    if (rc != 0 || status < 2) leave();
    still_works(Pe{}, "then");
    finish();
}

// One call, in a job that shares a GPU without MPS.
inline void ask_limited(const std::string &call) {
    Pe pe = start();
    Desk desk;
    auto *word = (uint64_t *)CALL(nvshmem_malloc(4096));
    if (!word) throw Broken{"nvshmem_malloc returned NULL"};
    desk.put(word, std::vector<uint64_t>{1, 2, 3, 4, 0, 0, 0, 0});
    CALL(nvshmem_barrier_all());
    cudaStream_t stream = new_stream();
    int rc = 0;

    if (call == "split") {
        nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
        rc = CALL(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, pe.pes, nullptr, 0, &team));
        observed("team", int(team));
    } else if (call == "barrier") {
        rc = CALL(nvshmem_barrier(NVSHMEM_TEAM_WORLD));
    } else if (call == "barrier_all") {
        CALL(nvshmem_barrier_all());
    } else if (call == "barrier_all_on_stream") {
        CALL(nvshmemx_barrier_all_on_stream(stream));
    } else if (call == "putmem") {
        CALL(nvshmem_putmem(word + 4, word, 32, pe.peer()));
        CALL(nvshmem_barrier_all());
        bool right = desk.get(word + 4, 4) == std::vector<uint64_t>{1, 2, 3, 4};
        observed("right", right);
        say(right ? "the data arrived" : "the data did not arrive");
    } else if (call == "signal_wait") {
        CALL(nvshmemx_signal_wait_until_on_stream(word, NVSHMEM_CMP_EQ, 1, stream));
    } else if (call == "reduce") {
        rc = CALL(nvshmem_uint64_sum_reduce(NVSHMEM_TEAM_WORLD, word + 4, word, 4));
        bool right = desk.get(word + 4, 1)[0] == uint64_t(pe.pes);
        observed("right", right);
        say(right ? "the sum is right" : "the sum is wrong");
    } else {
        throw Broken{"no such call: " + call};
    }
    observed("rc", rc);
    cudaError_t state = drained(stream, 3);
    observed("stream", error_word(state));
    say(text("returns, rc %d", rc) + (state == cudaSuccess ? "" : ", the stream: " + error_word(state)));
    finish();
}
