// The open questions about libnvshmem, one a command: `probe QUESTION [ARGUMENTS]`. A process is one PE; `run` beside
// this file starts them, with ONESIDED_RANK, ONESIDED_PES, ONESIDED_DEVICE and a folder for them to meet in. A question
// that ends the process is answered by that: what a PE saw and which call it was in stands in its record.
#include "claims.h"
#include "collectives.h"
#include "context.h"
#include "full.h"
#include "life.h"
#include "loading.h"
#include "memory.h"
#include "network.h"
#include "order.h"
#include "sizes.h"
#include "teams.h"
#include "transfers.h"
#include "waits.h"

// The machine and the versions, for the head of the report. Initializes nothing.
static void tell_facts() {
    need_gpu();
    int count = 0, runtime = 0, driver = 0, pageable = 0, major = 0, minor = 0, patch = 0;
    cudaDeviceProp properties;
    CUDA(cudaGetDeviceCount(&count));
    CUDA(cudaGetDeviceProperties(&properties, 0));
    CUDA(cudaRuntimeGetVersion(&runtime));
    CUDA(cudaDriverGetVersion(&driver));
    CUDA(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, 0));
    CALL(nvshmemx_vendor_get_version_info(&major, &minor, &patch));
    observed("gpu", properties.name);
    observed("gpus", count);
    observed("gpu_memory_bytes", (uint64_t)properties.totalGlobalMem);
    observed("gpu_reads_pageable_memory", pageable != 0);
    observed("cuda", text("%d.%d", runtime / 1000, runtime % 1000 / 10));
    observed("cuda_of_the_driver", text("%d.%d", driver / 1000, driver % 1000 / 10));
    observed("library", text("%d.%d.%d", major, minor, patch));
    observed("headers", text("%d.%d.%d", NVSHMEM_VENDOR_MAJOR_VERSION, NVSHMEM_VENDOR_MINOR_VERSION,
                             NVSHMEM_VENDOR_PATCH_VERSION));
}

static void ask(const std::string &question, const std::vector<std::string> &arguments) {
    auto word = [&](size_t i) {
        if (i >= arguments.size()) throw Broken{question + ": an argument is missing"};
        return arguments[i];
    };
    auto number = [&](size_t i) { return atoi(word(i).c_str()); };
    auto one_of = [&](size_t i, const char *yes, const char *no) {
        if (word(i) != yes && word(i) != no)
            throw Broken{question + ": " + word(i) + " is neither " + yes + " nor " + no};
        return word(i) == yes;
    };

    if (question == "facts") tell_facts();
    else if (question == "init") ask_init();
    else if (question == "finalize-twice") ask_finalize_twice();
    else if (question == "reinit") ask_reinit();
    else if (question == "limited") ask_limited(word(0));
    else if (question == "split") ask_split(number(0), number(1), number(2));
    else if (question == "split-outsider") ask_split_outsider();
    else if (question == "translate") ask_translate();
    else if (question == "destroy-world") ask_destroy_world();
    else if (question == "leaders") ask_leaders();
    else if (question == "max-teams") ask_max_teams();
    else if (question == "malloc-zero") ask_malloc_zero();
    else if (question == "align") ask_align(number(0));
    else if (question == "free-interior") ask_free_interior();
    else if (question == "malloc-huge") ask_malloc_huge(number(0));
    else if (question == "malloc-twice") ask_malloc_twice();
    else if (question == "calloc-overflow") ask_calloc_overflow();
    else if (question == "register") ask_register(number(0));
    else if (question == "atomics") ask_atomics();
    else if (question == "strided") ask_strided(one_of(0, "stream", "host"));
    else if (question == "scalars") ask_scalars();
    else if (question == "p-behind-a-wait") ask_p_behind_a_wait();
    else if (question == "g-on-stream") ask_g_on_stream(one_of(0, "blocked", "idle"));
    else if (question == "put-signal-zero") ask_put_signal_zero();
    else if (question == "wait-all") ask_wait_all(one_of(0, "values", "status"), word(1));
    else if (question == "quiet-takeover") ask_quiet_takeover();
    else if (question == "pending") ask_pending(word(0));
    else if (question == "quiet-cost") ask_quiet_cost();
    else if (question == "claim") ask_claim(word(0));
    else if (question == "overtaken") ask_overtaken(one_of(0, "stream", "host"));
    else if (question == "wait-order") ask_wait_order();
    else if (question == "zero") ask_zero(word(0), one_of(1, "stream", "host"));
    else if (question == "single-pe") ask_single_pe();
    else if (question == "sizes") ask_sizes(word(0));
    else if (question == "teams-after-reducescatter") ask_teams_after_reducescatter(size_t(number(0)));
    else if (question == "sum-order") ask_sum_order();
    else if (question == "first-launch") ask_first_launch();
    else if (question == "full-malloc") ask_full_malloc(size_t(number(0)));
    else if (question == "full-teams") ask_full_teams();
    else if (question == "full-calls") ask_full_calls();
    else if (question == "context") ask_context(word(0));
    else if (question == "network") ask_network(word(0));
    else if (question == "network-cost") ask_network_cost();
    else throw Broken{"no such question: " + question};
}

int main(int count, char **words) {
    if (count < 2) {
        fprintf(stderr, "usage: probe QUESTION [ARGUMENTS]; `run` beside this program knows the questions\n");
        return 2;
    }
    try {
        ask(words[1], std::vector<std::string>(words + 2, words + count));
    } catch (const Broken &broken) {
        line("{\"broken\": " + quoted(broken.why) + "}");
        fflush(nullptr);
        _exit(3);  // the library's own ending would be taken for an answer
    }
    line("{\"done\": true}");
    return 0;
}
