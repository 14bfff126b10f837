// What PEs behind a network see, and when: NVSHMEM over UCX, with a heap in memory of the host. So a PE looks at its memory
// with the processor, in no call of the library. What it knows of the other PEs' progress it knows from a board: memory that
// the processes share beside the heap.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "order.h"

class Board {
  public:
    Board() {
        std::string path = in_folder("board");
        int file = open(path.c_str(), O_RDWR | O_CREAT, 0644);
        if (file < 0 || ftruncate(file, sizeof(Word) * words) != 0) throw Broken{"cannot make " + path};
        void *place = mmap(nullptr, sizeof(Word) * words, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (place == MAP_FAILED) throw Broken{"cannot map " + path};
        words_ = (Word *)place;
        close(file);
    }

    void tell(int word, uint64_t value) { words_[word].store(value); }

    void await(int word, uint64_t value) const {
        auto start = Clock::now();
        for (int turn = 0; words_[word].load() < value; turn++)
            if (turn % 1024 == 0 && seconds_since(start) > time_limit()) throw Broken{"a PE did not come to the board"};
    }

  private:
    using Word = std::atomic<uint64_t>;
    static constexpr int words = 8;
    Word *words_;
};

// A word of the heap, as the processor sees it now.
inline uint64_t look(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

// PE 0 sends blocks that are numbered. The others look whether a block is old when it must, or may, have come. Or PE 0 writes
// something else to a block as soon as it has been sent, and PE 1 looks whether that has come in the block's place.
class Sender {
  public:
    static constexpr int runs = 2000;  // of each size, with traffic beside it and without: 12,000 in all
    static constexpr size_t sizes[3] = {8, 4 << 10, 256 << 10}, large = 1 << 20, most = large;

    explicit Sender(const std::string &how) : pe_(start()), how_(how) {
        data_ = symmetric<uint64_t>(most / 8);
        copy_ = symmetric<uint64_t>(most / 8);
        source_ = symmetric<uint64_t>(most / 8);
        other_ = symmetric<uint64_t>(2 * most / 8);
        flag_ = symmetric<uint64_t>(1);
        cudaPointerAttributes attributes;
        CUDA(cudaPointerGetAttributes(&attributes, data_));
        if (attributes.type != cudaMemoryTypeHost) throw Broken{"the heap is not memory of the host"};
        if (nvshmem_ptr(data_, pe_.peer())) throw Broken{"the peer is not behind a network"};
    }

    void ask() {
        uint64_t number = 0, old = 0, all = 0;
        std::string found;
        for (bool traffic : {false, true}) {
            for (size_t bytes : sizes) {
                if (reuses() && bytes == sizes[2]) bytes = large;
                uint64_t before = old;
                for (int run = 0; run < runs; run++, all++) old += one(++number, bytes, traffic);
                if (old > before)
                    found += text(", %llu of %d of %zu B%s", (unsigned long long)(old - before), runs, bytes,
                                  traffic ? " beside others" : "");
            }
        }
        if (pe_.rank == reader()) {
            observed("runs", all);
            observed("old", old);
            if (!found.empty()) observed("where", found.substr(2));
            say(text(reuses() ? "wrong %llu of %llu" : "old %llu of %llu", (unsigned long long)old, (unsigned long long)all));
        }
        calling("the end");
        nvshmem_barrier_all();
        finish();
    }

  private:
    enum { SENT = 0, SEEN = 1, READY = 2 };

    bool is(const char *how) const { return how_ == how; }
    bool begins(const char *how) const { return how_.rfind(how, 0) == 0; }
    bool by_flag() const { return begins("flag-"); }
    bool of_a_third() const { return begins("third-"); }
    bool gets() const { return begins("get"); }
    bool reuses() const { return begins("reuse"); }
    int reader() const { return gets() ? 0 : of_a_third() ? 2 : 1; }

    // One run; whether what the reader found is old.
    bool one(uint64_t number, size_t bytes, bool traffic) {
        if (gets()) return got_old(number, bytes);
        if (pe_.rank == 0) {
            if (reuses()) std::fill(source_, source_ + bytes / 8, number);
            else stamp(source_, bytes, number);
            if (traffic) nvshmem_putmem_nbi(other_, other_ + most / 8, 64 << 10, 1);
            send(number, bytes);
            if (!by_flag()) board_.tell(SENT, number);
            board_.await(SEEN, number);
            cudaStreamSynchronize(stream_);
            nvshmem_quiet();
            return false;
        }
        if (is("barrier") || is("third-barrier")) nvshmem_barrier_all();
        if (pe_.rank != reader()) return false;
        if (by_flag() || is("third-flag")) {
            auto begin = Clock::now();
            while (look(flag_) < number)
                if (seconds_since(begin) > time_limit()) throw Broken{"the flag did not come"};
        } else {
            board_.await(SENT, number);
        }
        const uint64_t *seen = data_;
        if (of_a_third()) {
            nvshmem_getmem(copy_, data_, bytes, 1);
            nvshmem_quiet();
            seen = copy_;
        }
        bool old = look(seen) != number || look(seen + bytes / 8 - 1) != number;
        if (reuses()) old = std::count(seen, seen + bytes / 8, number) != ptrdiff_t(bytes / 8);
        board_.tell(SEEN, number);
        return old;
    }

    // PE 1 changes its own block, PE 0 gets it.
    bool got_old(uint64_t number, size_t bytes) {
        if (pe_.rank == 1) {
            stamp(data_, bytes, number);
            board_.tell(READY, number);
            board_.await(SEEN, number);
            return false;
        }
        board_.await(READY, number);
        if (is("get-stream")) {
            nvshmemx_getmem_on_stream(copy_, data_, bytes, 1, stream_);
            cudaStreamSynchronize(stream_);
        } else {
            nvshmem_getmem(copy_, data_, bytes, 1);
            if (is("get-quiet")) nvshmem_quiet();
        }
        bool old = look(copy_) != number || look(copy_ + bytes / 8 - 1) != number;
        nvshmem_quiet();
        board_.tell(SEEN, number);
        return old;
    }

    // What PE 0 does, up to where the reader may look.
    void send(uint64_t number, size_t bytes) {
        if (is("p-stream")) {
            // Behind each value another one, so that the place of the first in a caller's frame is not its own any more.
            for (uint64_t *word : {data_, data_ + bytes / 8 - 1}) {
                nvshmemx_uint64_p_on_stream(word, number, 1, stream_);
                nvshmemx_uint64_p_on_stream(other_, 0, 1, stream_);
            }
            cudaStreamSynchronize(stream_);
            nvshmem_quiet();
            return;
        }
        if (reuses()) {
            if (is("reuse-stream")) {
                nvshmemx_putmem_on_stream(data_, source_, bytes, 1, stream_);
                cudaStreamSynchronize(stream_);
            } else {
                nvshmem_putmem(data_, source_, bytes, 1);
                if (is("reuse-quiet")) nvshmem_quiet();
            }
            std::fill(source_, source_ + bytes / 8, 0);  // no block's number
            nvshmem_quiet();
            return;
        }
        if (is("flag-put-signal-nbi")) {
            nvshmemx_putmem_signal_nbi_on_stream(data_, source_, bytes, flag_, number, NVSHMEM_SIGNAL_SET, 1, stream_);
            return;
        }
        if (is("flag-put-signal")) {
            nvshmemx_putmem_signal_on_stream(data_, source_, bytes, flag_, number, NVSHMEM_SIGNAL_SET, 1, stream_);
            return;
        }
        if (is("flag-stream-put") || is("flag-stream-nbi")) {
            if (is("flag-stream-put")) nvshmemx_putmem_on_stream(data_, source_, bytes, 1, stream_);
            else nvshmemx_putmem_nbi_on_stream(data_, source_, bytes, 1, stream_);
            nvshmemx_signal_op_on_stream(flag_, number, NVSHMEM_SIGNAL_SET, 1, stream_);
            return;
        }
        if (is("same-word")) {  // the second put must win
            stamp(other_, bytes, 0);
            nvshmem_putmem(data_, other_, bytes, 1);
            nvshmem_putmem(data_, source_, bytes, 1);
            nvshmem_quiet();
            return;
        }
        if (how_.find("nbi") != std::string::npos) nvshmem_putmem_nbi(data_, source_, bytes, 1);
        else nvshmem_putmem(data_, source_, bytes, 1);
        if (how_.find("fence") != std::string::npos) nvshmem_fence();
        if (how_.find("quiet") != std::string::npos || of_a_third()) nvshmem_quiet();
        if (is("barrier") || is("third-barrier")) nvshmem_barrier_all();
        if (is("third-flag")) nvshmem_uint64_p(flag_, number, 2);
        if (by_flag()) {
            if (is("flag-by-put")) {
                other_[0] = number;
                nvshmem_putmem(flag_, other_, 8, 1);
            } else {
                nvshmem_uint64_p(flag_, number, 1);
            }
        }
    }

    // The first and the last word tell whether all has come.
    static void stamp(uint64_t *block, size_t bytes, uint64_t number) {
        __atomic_store_n(block, number, __ATOMIC_RELEASE);
        __atomic_store_n(block + bytes / 8 - 1, number, __ATOMIC_RELEASE);
    }

    Pe pe_;
    std::string how_;
    Board board_;
    cudaStream_t stream_ = new_stream();
    uint64_t *data_, *copy_, *source_, *other_, *flag_;
};

inline void ask_network(const std::string &how) { Sender(how).ask(); }

// What calls cost, in microseconds.
inline void ask_network_cost() {
    Pe pe = start();
    auto *block = symmetric<uint64_t>(64);
    auto measure = [&](const char *what, bool everybody, auto call) {
        std::vector<double> times;
        for (int i = 0; i < 1000; i++) {
            nvshmem_barrier_all();
            if (!everybody && pe.rank != 0) continue;
            auto begin = Clock::now();
            call();
            times.push_back(1e6 * seconds_since(begin));
            if (!everybody) nvshmem_quiet();
        }
        if (pe.rank == 0) {
            observed(what, median(times));
            say(text("%s %.3g µs", what, median(times)));
        }
    };
    measure("put of 8 B", false, [&] { nvshmem_putmem(block, block + 8, 8, 1); });
    measure("put and fence", false, [&] { nvshmem_putmem(block, block + 8, 8, 1), nvshmem_fence(); });
    measure("put and quiet", false, [&] { nvshmem_putmem(block, block + 8, 8, 1), nvshmem_quiet(); });
    measure("quiet of nothing", false, [&] { nvshmem_quiet(); });
    measure("get and quiet", false, [&] { nvshmem_getmem(block, block + 8, 8, 1), nvshmem_quiet(); });
    cudaStream_t stream = new_stream();
    measure("put on a stream, synchronized", false,
            [&] { nvshmemx_putmem_on_stream(block, block + 8, 8, 1, stream), cudaStreamSynchronize(stream); });
    measure("get on a stream, synchronized", false,
            [&] { nvshmemx_getmem_on_stream(block, block + 8, 8, 1, stream), cudaStreamSynchronize(stream); });
    measure("barrier_all", true, [&] { nvshmem_barrier_all(); });
    finish();
}
