// When CUDA loads the library's kernels, and what that waits for.
#pragma once

#include "pe.h"

// The first launch of a kernel, on a stream that waits for what this process does afterwards.
inline void ask_first_launch() {
    start();
    auto *to = symmetric<uint16_t>(8), *from = symmetric<uint16_t>(64);
    auto *word = symmetric<uint64_t>(1);
    Desk desk;
    cudaStream_t stream = new_stream();
    CALL(nvshmemx_signal_wait_until_on_stream(word, NVSHMEM_CMP_EQ, 1, stream));
    int rc = CALL(nvshmemx_uint16_max_reducescatter_on_stream(NVSHMEM_TEAM_WORLD, to, from, 8, stream));
    say(text("returns %d", rc));
    desk.put(word, uint64_t(1));
    cudaError_t state = drained(stream, 5);
    observed("stream", error_word(state));
    say("then the wait is answered, and the stream: " + error_word(state));
    finish();
}
