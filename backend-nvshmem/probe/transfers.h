// Transfers of small things: atomics from the host, strided and scalar operations, values and arrays on the host that a
// stream's operation reads later.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "pe.h"

inline std::string list(const std::vector<int> &values) {
    std::string words;
    for (int value : values) words += text(words.empty() ? "%d" : " %d", value);
    return words;
}

// Runs an action on a thread after a while, and waits for it at the latest when it goes out of scope.
class Later {
  public:
    Later(double seconds, std::function<void()> action)
        : thread_([=] {
              pause_ms(int(seconds * 1000));
              action();
          }) {}
    ~Later() { thread_.join(); }

  private:
    std::thread thread_;
};

// Blocks a stream until a word is 1. A thread sets the word after a while.
struct Blocker {
    static constexpr double seconds = 1.0;
    uint64_t *word;  // symmetric, 0
    cudaStream_t release = new_stream();
    uint64_t *one;

    explicit Blocker(uint64_t *symmetric_word) : word(symmetric_word) {
        CUDA(cudaMallocHost(&one, sizeof *one));
        *one = 1;
    }

    std::unique_ptr<Later> block(cudaStream_t stream) {
        int device = 0;
        CUDA(cudaGetDevice(&device));
        CALL(nvshmemx_signal_wait_until_on_stream(word, NVSHMEM_CMP_EQ, 1, stream));
        return std::unique_ptr<Later>(new Later(seconds, [this, device] {
            cudaSetDevice(device);
            cudaMemcpyAsync(word, one, sizeof *one, cudaMemcpyHostToDevice, release);
        }));
    }
};

inline void ask_atomics() {
    Pe pe = start();
    Desk desk;
    int *count = symmetric<int>(2);
    uint64_t *wide = symmetric<uint64_t>(4);
    desk.put(count, 100);
    desk.put(wide, std::vector<uint64_t>{200, 300});
    CALL(nvshmem_barrier_all());
    if (pe.rank == 0) {
        CALL(nvshmem_int_atomic_add(count, 5, pe.peer()));
        uint64_t before = CALL(nvshmem_uint64_atomic_fetch_add(wide, 5, pe.peer()));
        uint64_t value = CALL(nvshmem_uint64_atomic_fetch(wide + 1, pe.peer()));
        observed("fetch_add_returns", before);
        observed("fetch_returns", value);
        say(text("fetch_add of a word 200 returns %llu, fetch of a word 300 returns %llu", (unsigned long long)before,
                 (unsigned long long)value));
    }
    CALL(nvshmem_quiet());
    CALL(nvshmem_barrier_all());
    if (pe.rank == pe.pes - 1) {
        int added = desk.get(count);
        uint64_t fetched = desk.get(wide);
        observed("word_after_add", added);
        observed("word_after_fetch_add", fetched);
        say(text("100 after add of 5 is %d, 200 after fetch_add of 5 is %llu", added, (unsigned long long)fetched));
    }
    finish();
}

inline void ask_strided(bool on_stream) {
    Pe pe = start();
    Desk desk;
    const size_t count = 5;
    int *from = symmetric<int>(16), *to = symmetric<int>(16), *back = symmetric<int>(16);
    std::vector<int> source(16);
    for (int i = 0; i < 16; i++) source[i] = 100 * (pe.rank + 1) + i;
    desk.put(from, source);
    CALL(nvshmem_barrier_all());
    cudaStream_t stream = new_stream();
    if (on_stream) {
        CALL(nvshmemx_int_iput_on_stream(to, from, 2, 3, count, pe.peer(), stream));
        CALL(nvshmemx_int_iget_on_stream(back, from, 3, 2, count, pe.peer(), stream));
        cudaError_t state = CALL(drained(stream, 3));
        if (state != cudaSuccess) say("the stream: " + error_word(state));
        CALL(nvshmemx_quiet_on_stream(stream));
        drained(stream, 3);
    } else {
        CALL(nvshmem_int_iput(to, from, 2, 3, count, pe.peer()));
        CALL(nvshmem_int_iget(back, from, 3, 2, count, pe.peer()));
    }
    CALL(nvshmem_barrier_all());
    int peer = 100 * (pe.peer() + 1), previous = 100 * ((pe.rank + pe.pes - 1) % pe.pes + 1);
    std::vector<int> put(16, 0), got(16, 0);
    for (size_t i = 0; i < count; i++) {
        put[2 * i] = previous + 3 * int(i);
        got[3 * i] = peer + 2 * int(i);
    }
    std::vector<int> has = desk.get(to, 16), fetched = desk.get(back, 16);
    observed("iput", list(has));
    observed("iget", list(fetched));
    say(text("iput %s, iget %s", has == put ? "right, nothing else touched" : "wrong",
             fetched == got ? "right, nothing else touched" : "wrong"));
    finish();
}

inline void ask_scalars() {
    Pe pe = start();
    Desk desk;
    int *number = symmetric<int>(1);
    double *real = symmetric<double>(1);
    uint64_t *signal = symmetric<uint64_t>(1);
    desk.put(number, 40 + pe.rank);
    desk.put(real, 0.25 + pe.rank);
    desk.put(signal, uint64_t(90 + pe.rank));
    CALL(nvshmem_barrier_all());
    bool g = CALL(nvshmem_int_g(number, pe.peer())) == 40 + pe.peer();
    bool wide = CALL(nvshmem_double_g(real, pe.peer())) == 0.25 + pe.peer();
    bool fetch = CALL(nvshmem_signal_fetch(signal)) == uint64_t(90 + pe.rank);
    CALL(nvshmem_barrier_all());
    CALL(nvshmem_int_p(number, 60 + pe.rank, pe.peer()));
    CALL(nvshmem_barrier_all());
    bool p = desk.get(number) == 60 + (pe.rank + pe.pes - 1) % pe.pes;
    observed("int_g_right", g);
    observed("double_g_right", wide);
    observed("signal_fetch_right", fetch);
    observed("int_p_right", p);
    auto word = [](bool right) { return right ? "right" : "wrong"; };
    say(text("int_g %s, double_g %s, signal_fetch %s, int_p %s", word(g), word(wide), word(fetch), word(p)));
    finish();
}

// Overwrites the part of the stack that a call that has returned used.
__attribute__((noinline)) inline void wipe_stack() {
    volatile char bytes[16384];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = 0x55;
}

// A value is given to a stream that is still blocked when the call returns. From where is it read later?
inline void ask_p_behind_a_wait() {
    Pe pe = start();
    Desk desk;
    int *number = symmetric<int>(1);
    Blocker blocker(symmetric<uint64_t>(1));
    cudaStream_t stream = new_stream();
    if (pe.rank == 0) {
        auto release = blocker.block(stream);
        auto begin = Clock::now();
        CALL(nvshmemx_int_p_on_stream(number, 4242, pe.peer(), stream));
        double took = seconds_since(begin);
        wipe_stack();
        observed("call_seconds", took);
        say(took < Blocker::seconds / 2 ? "p_on_stream returns before its turn"
                                        : "p_on_stream returns only when its turn has come");
        cudaError_t state = drained(stream, 5);
        if (state != cudaSuccess) say("the stream: " + error_word(state));
    }
    meet("put");
    if (pe.rank == 1) {
        int value = desk.get(number);
        observed("value", value);
        say(value == 4242 ? "the value is right" : text("the value is %d instead of 4242", value));
    }
    CALL(nvshmem_barrier_all());
    finish();
}

inline void ask_g_on_stream(bool blocked) {
    Pe pe = start();
    Desk desk;
    int *number = symmetric<int>(1);
    Blocker blocker(symmetric<uint64_t>(1));
    desk.put(number, 4242);
    CALL(nvshmem_barrier_all());
    cudaStream_t stream = new_stream();
    if (pe.rank == 0) {
        std::unique_ptr<Later> release;
        if (blocked) release = blocker.block(stream);
        auto begin = Clock::now();
        int value = CALL(nvshmemx_int_g_on_stream(number, pe.peer(), stream));
        double took = seconds_since(begin);
        observed("call_seconds", took);
        observed("value", value);
        if (blocked)
            say(took < Blocker::seconds / 2 ? "returns before its turn" : "returns only when its turn has come");
        say(value == 4242 ? "the value is right" : "the value is wrong");
        release.reset();
        cudaError_t state = drained(stream, 5);
        if (state != cudaSuccess) say("the stream: " + error_word(state));
    }
    meet("got");
    finish();
}

inline void ask_put_signal_zero() {
    Pe pe = start();
    Desk desk;
    auto *data = symmetric<uint64_t>(8);
    auto *signal = symmetric<uint64_t>(1);
    cudaStream_t stream = new_stream();
    CALL(nvshmemx_putmem_signal_on_stream(data, data, 0, signal, 7, NVSHMEM_SIGNAL_SET, pe.peer(), stream));
    CALL(nvshmemx_quiet_on_stream(stream));
    cudaError_t state = drained(stream, 3);
    observed("stream", error_word(state));
    meet("signalled");
    uint64_t value = desk.get(signal);
    observed("signal", value);
    say(text("the stream: %s, the signal %s", error_word(state).c_str(), value == 7 ? "is set" : "is not set"));
    CALL(nvshmem_barrier_all());
    finish();
}

// The words hold 1 1 0 1; the third is excluded by the status array, or asked to be 0 by the array of values.
inline void ask_wait_all(bool vector, const std::string &where) {
    start();
    Desk desk;
    const size_t count = 4;
    auto *words = symmetric<uint64_t>(count);
    desk.put(words, std::vector<uint64_t>{1, 1, 0, 1});
    std::vector<int> skip{0, 0, vector ? 0 : 1, 0};
    std::vector<uint64_t> values{1, 1, 0, 1};
    int *skip_device = nullptr;
    uint64_t *values_device = nullptr;
    CUDA(cudaMalloc(&skip_device, count * sizeof *skip_device));
    CUDA(cudaMalloc(&values_device, count * sizeof *values_device));
    desk.put(skip_device, skip);
    desk.put(values_device, values);
    int *skip_pinned = nullptr;
    uint64_t *values_pinned = nullptr;
    CUDA(cudaMallocHost(&skip_pinned, count * sizeof *skip_pinned));
    CUDA(cudaMallocHost(&values_pinned, count * sizeof *values_pinned));
    std::copy(skip.begin(), skip.end(), skip_pinned);
    std::copy(values.begin(), values.end(), values_pinned);
    bool on_device = where == "device", pinned = where == "pinned";
    if (!on_device && !pinned && where != "host") throw Broken{"no such place: " + where};
    cudaStream_t stream = new_stream();
    if (vector) {
        const uint64_t *asked = on_device ? values_device : pinned ? values_pinned : values.data();
        CALL(nvshmemx_uint64_wait_until_all_vector_on_stream(words, count, nullptr, NVSHMEM_CMP_EQ,
                                                             const_cast<uint64_t *>(asked), stream));
    } else {
        const int *excluded = on_device ? skip_device : pinned ? skip_pinned : skip.data();
        CALL(nvshmemx_uint64_wait_until_all_on_stream(words, count, excluded, NVSHMEM_CMP_EQ, 1, stream));
    }
    say("the call returns");
    cudaError_t state = CALL(drained(stream, 3));
    observed("stream", error_word(state));
    say("the wait: " + error_word(state));
    if (state != cudaSuccess) leave();
    finish();
}
