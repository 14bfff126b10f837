// Which work on streams a quiet, a barrier or another call waits for.
#pragma once

#include <algorithm>

#include "transfers.h"

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// One arrangement on stream B: a large put to the peer, perhaps quiets, an event. Tells how long B (and A) took up to
// the event, and what the last word at the peer was when B had passed its quiet.
struct Takeover {
    static constexpr size_t bytes = (size_t)2 << 30;
    static constexpr int repetitions = 5;
    uint64_t *buffer, *tail_there, *tail_here;
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t begun, done_a, done_b;
    Desk desk;
    uint64_t *seen;  // pinned
    uint64_t mark = 0;

    explicit Takeover(const Pe &pe) : buffer(symmetric<uint64_t>(bytes / 8)) {
        tail_here = buffer + bytes / 8 - 1;
        tail_there = (uint64_t *)CALL(nvshmem_ptr(tail_here, pe.peer()));
        CUDA(cudaEventCreate(&begun));
        CUDA(cudaEventCreate(&done_a));
        CUDA(cudaEventCreate(&done_b));
        CUDA(cudaMallocHost(&seen, sizeof *seen));
    }

    struct Result {
        double a_ms, b_ms;  // medians
        int arrived;        // repetitions in which the data was there when B had passed
    };

    Result measure(const Pe &pe, bool nbi, bool quiet_a, bool quiet_b) {
        std::vector<double> a_ms, b_ms;
        int arrived = 0;
        for (int i = 0; i <= repetitions; i++) {  // the first warms up
            mark += 1;
            desk.put(tail_there, uint64_t(0));
            desk.put(tail_here, mark);
            CUDA(cudaDeviceSynchronize());
            cudaEventRecord(begun, b);
            if (nbi) nvshmemx_putmem_nbi_on_stream(buffer, buffer, bytes, pe.peer(), b);
            else nvshmemx_putmem_on_stream(buffer, buffer, bytes, pe.peer(), b);
            if (quiet_a) nvshmemx_quiet_on_stream(a);
            cudaEventRecord(done_a, a);
            if (quiet_b) nvshmemx_quiet_on_stream(b);
            cudaEventRecord(done_b, b);
            cudaMemcpyAsync(seen, tail_there, sizeof *seen, cudaMemcpyDeviceToHost, b);
            CUDA(cudaStreamSynchronize(b));
            bool there = *seen == mark;
            CUDA(cudaDeviceSynchronize());
            CALL(nvshmem_quiet());
            float since_a = 0, since_b = 0;
            CUDA(cudaEventElapsedTime(&since_a, begun, done_a));
            CUDA(cudaEventElapsedTime(&since_b, begun, done_b));
            if (desk.get(tail_there) != mark) throw Broken{"the data never arrived"};
            if (i == 0) continue;
            a_ms.push_back(since_a);
            b_ms.push_back(since_b);
            arrived += there;
        }
        return {median(a_ms), median(b_ms), arrived};
    }
};

inline void ask_quiet_takeover() {
    Pe pe = start();
    Takeover takeover(pe);
    if (pe.rank != 0) {
        meet("measured");
        finish();
        return;
    }
    if (!takeover.tail_there) throw Broken{"nvshmem_ptr of the peer's buffer is NULL"};
    auto record = [](const std::string &name, Takeover::Result result) {
        observed(name + "_b_ms", result.b_ms);
        observed(name + "_a_ms", result.a_ms);
        observed(name + "_arrived", result.arrived);
        return result;
    };
    auto put = record("put", takeover.measure(pe, false, false, false));
    auto none = record("nbi_no_quiet", takeover.measure(pe, true, false, false));
    auto own = record("nbi_quiet_b", takeover.measure(pe, true, false, true));
    auto other = record("nbi_quiet_a", takeover.measure(pe, true, true, false));
    auto both = record("nbi_quiet_a_then_b", takeover.measure(pe, true, true, true));
    observed("repetitions", Takeover::repetitions);
    meet("measured");

    // The transfer takes `own.b_ms`, provided that B alone does not wait for it and a quiet on B does.
    double transfer = own.b_ms;
    auto waits = [&](double ms) {
        return ms > 0.8 * transfer ? "waits" : ms < 0.2 * transfer ? "does not wait" : "is in between";
    };
    if (transfer < 0.5 || put.b_ms < 0.5 * transfer) {
        say(text("inconclusive: a put of 2 GiB seems to take %.2f ms, with a quiet %.2f ms", put.b_ms, transfer));
    } else if (none.b_ms > 0.5 * transfer) {
        say(text("inconclusive: a put_nbi holds its own stream up (%.2f of %.2f ms)", none.b_ms, transfer));
    } else {
        say(text("transfer %.2f ms; B's later work after put_nbi alone: %.2f ms", transfer, none.b_ms));
        say(text("quiet on A %s for B's put_nbi (%.2f ms)", waits(other.a_ms), other.a_ms));
        say(text("quiet on B after quiet on A %s (%.2f ms); data there when B had passed: %d of %d", waits(both.b_ms),
                 both.b_ms, both.arrived, Takeover::repetitions));
    }
    finish();
}

// Whether a call waits for a put that stands behind a wait on a stream. A thread ends the wait after a second. A call that
// waits for the put returns after that; a call that does not returns at once.
inline void ask_pending(const std::string &call) {
    Pe pe = start();
    Desk desk;
    auto *to = symmetric<uint64_t>(1), *from = symmetric<uint64_t>(1), *elsewhere = symmetric<uint64_t>(1);
    Blocker blocker(symmetric<uint64_t>(1));
    auto *there = (uint64_t *)CALL(nvshmem_ptr(to, pe.peer()));
    if (!there) throw Broken{"nvshmem_ptr of the peer's word is NULL"};
    cudaStream_t stream = new_stream(), other = new_stream();
    const std::vector<std::string> collectives{"barrier_all", "barrier_all_on_stream", "sync_all", "malloc", "free"};
    bool collective = std::count(collectives.begin(), collectives.end(), call) > 0;
    void *block = nullptr;  // what malloc gave, or free will get
    if (call == "free") block = CALL(nvshmem_malloc(64));

    auto run = [&] {
        if (call == "barrier_all") CALL(nvshmem_barrier_all());
        else if (call == "sync_all") CALL(nvshmem_sync_all());
        else if (call == "quiet") CALL(nvshmem_quiet());
        else if (call == "fence") CALL(nvshmem_fence());
        else if (call == "quiet_on_stream") CALL(nvshmemx_quiet_on_stream(other));
        else if (call == "barrier_all_on_stream") CALL(nvshmemx_barrier_all_on_stream(other));
        else if (call == "malloc") block = CALL(nvshmem_malloc(64));
        else if (call == "free") CALL(nvshmem_free(block));
        else if (call == "putmem") CALL(nvshmem_putmem(elsewhere, from, 8, pe.peer()));
        else if (call == "getmem") CALL(nvshmem_getmem(elsewhere, from, 8, pe.peer()));
        else if (call == "p") CALL(nvshmem_uint64_p(elsewhere, 7, pe.peer()));
        else if (call == "g") CALL(nvshmem_uint64_g(from, pe.peer()));
        else throw Broken{"no such call: " + call};
        CUDA(drained(other, 4));  // empty but for what goes on a stream
    };
    // The first use of a call loads its kernel, which may wait for the device.
    desk.put(blocker.word, uint64_t(1));
    CALL(nvshmemx_signal_wait_until_on_stream(blocker.word, NVSHMEM_CMP_EQ, 1, stream));
    CALL(nvshmemx_putmem_on_stream(to, from, 8, pe.peer(), stream));
    CALL(nvshmemx_putmem_nbi_on_stream(to, from, 8, pe.peer(), stream));
    CALL(nvshmemx_quiet_on_stream(stream));
    CUDA(drained(stream, 4));
    run();
    bool meaningful = true;
    const char *kinds[] = {"none", "put", "put_nbi"};
    for (int kind = 0; kind < 3; kind++) {
        if (call == "malloc") CALL(nvshmem_free(block));
        if (call == "free") block = CALL(nvshmem_malloc(64));
        desk.put(to, uint64_t(0));
        desk.put(from, uint64_t(7));
        desk.put(blocker.word, uint64_t(0));
        CUDA(cudaDeviceSynchronize());
        meet(text("ready-%d", kind));
        if (pe.rank == 0) {
            auto begin = Clock::now();
            auto release = blocker.block(stream);
            if (kind == 1) CALL(nvshmemx_putmem_on_stream(to, from, 8, pe.peer(), stream));
            if (kind == 2) CALL(nvshmemx_putmem_nbi_on_stream(to, from, 8, pe.peer(), stream));
            double enqueued = seconds_since(begin);
            post(text("enqueued-%d", kind), "");
            auto called = Clock::now();
            run();
            double took = seconds_since(called);
            bool early = seconds_since(begin) < Blocker::seconds * 0.8;
            bool still_blocked = cudaStreamQuery(stream) == cudaErrorNotReady;
            bool made = kind > 0 && desk.get(there) == 7;
            observed(text("%s_seconds", kinds[kind]), took);
            observed(text("%s_enqueue_seconds", kinds[kind]), enqueued);
            observed(text("%s_stream_still_blocked", kinds[kind]), still_blocked);
            if (kind > 0) observed(text("%s_made_at_return", kinds[kind]), made);
            release.reset();
            CUDA(drained(stream, 4));
            CUDA(cudaDeviceSynchronize());
            if (enqueued > Blocker::seconds * 0.5) {
                say(text("inconclusive for %s: enqueueing waits", kinds[kind]));
            } else if (kind == 0 && !early) {
                meaningful = false;
                say("inconclusive: waits for a blocked stream without a put, too");
            } else if (kind > 0 && meaningful) {
                const char *what = kind == 1 ? "put" : "put_nbi";
                say(early ? text("returns at once with a %s pending (%s)", what, made ? "but it was made" : "not made")
                          : text("waits for a pending %s (%s)", what, made ? "made" : "yet not made"));
            }
        } else {
            collect(text("enqueued-%d", kind), 0);
            if (collective) run();
        }
        meet(text("over-%d", kind));
        if (kind > 0 && pe.rank == 1) {
            bool right = desk.get(to) == 7;
            observed(text("%s_arrived_in_the_end", kinds[kind]), right);
            if (!right) say(text("the %s never arrived", kinds[kind]));
        }
    }
    finish();
}

// The cost of calls that have nothing to do, in microseconds.
inline void ask_quiet_cost() {
    Pe pe = start();
    auto *word = symmetric<uint64_t>(1);
    cudaStream_t stream = new_stream();
    CALL(nvshmem_putmem(word, word, 8, pe.peer()));
    CALL(nvshmem_quiet());
    auto cost = [&](const char *name, int count, std::function<void()> once) {
        std::vector<double> microseconds;
        for (int i = 0; i < count + 20; i++) {
            auto begin = Clock::now();
            once();
            if (i >= 20) microseconds.push_back(seconds_since(begin) * 1e6);
        }
        observed(text("%s_us", name), median(microseconds));
        if (pe.rank == 0) say(text("%s %.2f µs", name, median(microseconds)));
    };
    meet("begin");
    if (pe.rank == 0) {
        calling("the loops that are timed");
        cost("quiet", 2000, [] { nvshmem_quiet(); });
        cost("fence", 2000, [] { nvshmem_fence(); });
        cost("quiet_on_stream (issue)", 500, [&] { nvshmemx_quiet_on_stream(stream); });
        CUDA(cudaStreamSynchronize(stream));
        cost("quiet_on_stream and synchronize", 500, [&] {
            nvshmemx_quiet_on_stream(stream);
            cudaStreamSynchronize(stream);
        });
    }
    meet("alone");
    calling("the loop of barriers");
    cost("barrier_all", 200, [] { nvshmem_barrier_all(); });
    finish();
}
