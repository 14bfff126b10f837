// Other code of a process has made another GPU's context current in the thread: does a call still work?
#pragma once

#include "pe.h"

inline void ask_context(const std::string &call) {
    Pe pe = start();
    int gpus = 0, mine = 0;
    CUDA(cudaGetDeviceCount(&gpus));
    CUDA(cudaGetDevice(&mine));
    if (gpus < 2) {
        line("{\"not_run\": \"there is no second GPU\"}");
        finish();
        return;
    }
    Desk desk;
    uint64_t *to = symmetric<uint64_t>(8), *from = symmetric<uint64_t>(8);
    desk.put(from, uint64_t(7));
    CALL(nvshmem_barrier_all());
    cudaStream_t stream = new_stream();
    CUDA(cudaSetDevice((mine + 1) % gpus));
    CUDA(cudaFree(nullptr)); // makes the context

    int rc = 0;
    bool moves = true;
    if (call == "put") CALL(nvshmemx_putmem_on_stream(to, from, 8, pe.peer(), stream));
    else if (call == "get") CALL(nvshmemx_getmem_on_stream(to, from, 8, pe.peer(), stream));
    else if (call == "p") CALL(nvshmemx_uint64_p_on_stream(to, 7, pe.peer(), stream));
    else if (call == "signal") CALL(nvshmemx_signal_op_on_stream(to, 7, NVSHMEM_SIGNAL_SET, pe.peer(), stream));
    else if (call == "reduce") rc = CALL(nvshmemx_uint64_max_reduce_on_stream(NVSHMEM_TEAM_WORLD, to, from, 1, stream));
    else if (call == "host-put") CALL(nvshmem_putmem(to, from, 8, pe.peer()));
    else {
        moves = false;
        if (call == "wait") CALL(nvshmemx_signal_wait_until_on_stream(from, NVSHMEM_CMP_EQ, 7, stream));
        else if (call == "quiet") CALL(nvshmemx_quiet_on_stream(stream));
        else if (call == "barrier") CALL(nvshmemx_barrier_all_on_stream(stream));
        else throw Broken{"no such call: " + call};
    }
    CUDA(cudaSetDevice(mine));
    cudaError_t state = drained(stream, 3);
    observed("rc", rc);
    observed("stream", error_word(state));
    say(text("returns, rc %d", rc) + (state == cudaSuccess ? "" : ", the stream: " + error_word(state)));
    if (moves) {
        CALL(nvshmem_barrier_all());
        bool right = desk.get(to) == 7;
        observed("right", right);
        say(right ? "the value arrived" : "the value did not arrive");
    }
    finish();
}
