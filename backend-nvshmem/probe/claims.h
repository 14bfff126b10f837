// The library runs nbi operations on streams of its own. Which later calls overtake them, and which quiet no longer waits for
// them because another one has claimed them.
#pragma once

#include "transfers.h"

// PE 0 sends a large block to PE 1, and then a mark. PE 1 has enqueued beforehand: a wait for the mark, a copy of some words of
// the block, and an answer to PE 0. So no thread of a host delays the copy.
class Block {
  public:
    static constexpr size_t bytes = (size_t)1 << 30;  // takes hundreds of microseconds at least
    static constexpr int repetitions = 5;

    explicit Block(const Pe &pe)
        : pe_(pe), block_(symmetric<char>(bytes)), words_(symmetric<uint64_t>(64)), reader_(new_stream()) {
        CUDA(cudaMallocHost(&seen_, samples * sizeof *seen_));
    }

    // The calls that an arrangement of PE 0 is made of. The streams are new in each repetition, so that no two of them share a
    // queue of the GPU in all repetitions.
    struct Sender {
        Block &block;
        uint64_t mark;
        cudaStream_t a = new_stream(), b = new_stream(), c = new_stream();

        void *there() { return block.block_; }
        uint64_t *signal() { return block.words_; }
        uint64_t *answer() { return block.words_ + 8; }
        uint64_t *source() { return block.words_ + 16; }  // holds the mark
        uint64_t *other() { return block.words_ + 24; }

        void put_nbi() { nvshmem_putmem_nbi(there(), there(), bytes, 1); }
        void put_nbi(cudaStream_t s) { nvshmemx_putmem_nbi_on_stream(there(), there(), bytes, 1, s); }
        void put_nbi_of_nothing() { nvshmem_putmem_nbi(there(), there(), 0, 1); }
        void quiet() { nvshmem_quiet(); }
        void quiet(cudaStream_t s) { nvshmemx_quiet_on_stream(s); }
        void fence() { nvshmem_fence(); }
        void mark_by_signal(cudaStream_t s) {
            nvshmemx_signal_op_on_stream(signal(), mark, NVSHMEM_SIGNAL_SET, 1, s);
        }
        void wait_for_answer(cudaStream_t s) {
            nvshmemx_signal_wait_until_on_stream(answer(), NVSHMEM_CMP_EQ, mark, s);
        }
    };

    // In how many repetitions PE 1 saw words of the block that were old. Collective; PE 0 gets 0.
    int old(const char *name, std::function<void(Sender &)> arrangement) {
        calling(name);
        int count = 0;
        for (int i = 0; i <= repetitions; i++) {  // the first warms up
            mark_ += 1;
            bool there = pe_.rank == 0 ? (send(name, i, arrangement), true) : look(name, i);
            count += i > 0 && !there;
        }
        if (pe_.rank == 1) observed(text("%s_old", name), count);
        return count;
    }

    static std::string of(int count) { return text("%d of %d", count, repetitions); }

  private:
    static constexpr int samples = 16;
    static constexpr size_t step = bytes / samples;

    // The last word of each sixteenth.
    cudaError_t copy(void *to, size_t to_step, const void *from, size_t from_step, cudaStream_t stream) {
        return cudaMemcpy2DAsync(to, to_step, from, from_step, 8, samples, cudaMemcpyDefault, stream);
    }
    char *first_sample() { return block_ + step - 8; }

    void send(const char *name, int i, std::function<void(Sender &)> &arrangement) {
        for (int s = 0; s < samples; s++) seen_[s] = mark_;
        expect("writing the marks", copy(first_sample(), step, seen_, 8, reader_));
        Sender sender{*this, mark_};
        expect("writing the mark", cudaMemcpyAsync(sender.source(), seen_, 8, cudaMemcpyDefault, reader_));
        expect("the marks", cudaStreamSynchronize(reader_));
        meet(text("%s-ready-%d", name, i));
        arrangement(sender);
        expect("the arrangement", cudaDeviceSynchronize());
        nvshmem_quiet();
        meet(text("%s-sent-%d", name, i));
        for (cudaStream_t stream : {sender.a, sender.b, sender.c}) cudaStreamDestroy(stream);
        meet(text("%s-over-%d", name, i));
    }

    bool look(const char *name, int i) {
        nvshmemx_signal_wait_until_on_stream(words_, NVSHMEM_CMP_EQ, mark_, reader_);
        expect("the look", copy(seen_, 8, first_sample(), step, reader_));
        nvshmemx_signal_op_on_stream(words_ + 8, mark_, NVSHMEM_SIGNAL_SET, 0, reader_);
        meet(text("%s-ready-%d", name, i));
        if (drained(reader_, 5) != cudaSuccess) throw Broken{text("%s: the mark never came", name)};
        bool there = all_marked();
        meet(text("%s-sent-%d", name, i));
        expect("the second look", copy(seen_, 8, first_sample(), step, reader_));
        expect("the second look", cudaStreamSynchronize(reader_));
        if (!all_marked()) throw Broken{text("%s: the block never arrived", name)};
        meet(text("%s-over-%d", name, i));
        return there;
    }

    bool all_marked() const {
        for (int s = 0; s < samples; s++)
            if (seen_[s] != mark_) return false;
        return true;
    }

    Pe pe_;
    char *block_;
    uint64_t *words_, *seen_ = nullptr, mark_ = 0;
    cudaStream_t reader_;
};

// Whether a quiet still waits for a put_nbi after another call has claimed it.
inline void ask_claim(const std::string &by) {
    using Sender = Block::Sender;
    Pe pe = start();
    Block block(pe);
    int claimed, alone, without;
    if (by == "stream-before-host") {
        claimed = block.old("claimed", [](Sender &pe) {
            pe.put_nbi(), pe.quiet(pe.a), pe.quiet(), pe.mark_by_signal(pe.c);
        });
        alone = block.old("alone", [](Sender &pe) { pe.put_nbi(), pe.quiet(), pe.mark_by_signal(pe.c); });
        without = block.old("without", [](Sender &pe) { pe.put_nbi(), pe.mark_by_signal(pe.c); });
    } else if (by == "blocked-stream") {
        claimed = block.old("claimed", [](Sender &pe) {
            pe.wait_for_answer(pe.a), pe.put_nbi(pe.b), pe.quiet(pe.a), pe.quiet(pe.b), pe.mark_by_signal(pe.b);
        });
        alone = block.old("alone", [](Sender &pe) {
            pe.wait_for_answer(pe.a), pe.put_nbi(pe.b), pe.quiet(pe.b), pe.mark_by_signal(pe.b);
        });
        without = block.old("without", [](Sender &pe) { pe.put_nbi(pe.b), pe.mark_by_signal(pe.b); });
    } else {
        std::function<void(Sender &)> first;
        if (by == "fence") first = [](Sender &pe) { pe.quiet(pe.b); };
        else if (by == "fence-and-nothing") first = [](Sender &pe) { pe.quiet(pe.b), pe.put_nbi_of_nothing(); };
        else if (by == "flush") {
#if NVSHMEM_VENDOR_MAJOR_VERSION > 3 || NVSHMEM_VENDOR_MINOR_VERSION >= 8
            first = [](Sender &pe) { nvshmemx_flush_on_stream(pe.b); };
#else
            line("{\"not_run\": \"this version has no flush\"}");
            finish();
            return;
#endif
        } else throw Broken{"no such claim: " + by};
        claimed = block.old("claimed",
                            [=](Sender &pe) { pe.put_nbi(pe.b), first(pe), pe.quiet(pe.c), pe.mark_by_signal(pe.c); });
        alone = block.old("alone", [](Sender &pe) { pe.put_nbi(pe.b), pe.quiet(pe.c), pe.mark_by_signal(pe.c); });
        without = block.old("without", [](Sender &pe) { pe.put_nbi(pe.b), pe.mark_by_signal(pe.c); });
    }
    if (pe.rank == 1) {
        say("old data in " + Block::of(claimed) + "; without the first in " + Block::of(alone) + "; with neither in " +
            Block::of(without));
        if (without == 0) say("inconclusive: the data was always there, even with neither");
    }
    finish();
}

// Which later calls of PE 0 are seen by PE 1 before the data of a put_nbi.
inline void ask_overtaken(bool on_stream) {
    using Sender = Block::Sender;
    Pe pe = start();
    Block block(pe);
    auto follow = [&](const char *name, const char *words, std::function<void(Sender &)> later) {
        int count = block.old(name, [=](Sender &pe) {
            if (on_stream) pe.put_nbi(pe.b);
            else pe.put_nbi();
            later(pe);
        });
        if (pe.rank == 1) say(text("%s %s", words, Block::of(count).c_str()));
    };
    if (on_stream) {
        follow("signal", "signal_op", [](Sender &pe) { pe.mark_by_signal(pe.b); });
        follow("put", "put", [](Sender &pe) { nvshmemx_putmem_on_stream(pe.signal(), pe.source(), 8, 1, pe.b); });
        follow("p", "p", [](Sender &pe) { nvshmemx_uint64_p_on_stream(pe.signal(), pe.mark, 1, pe.b); });
        follow("put_signal", "put_signal", [](Sender &pe) {
            nvshmemx_putmem_signal_on_stream(pe.other(), pe.source(), 8, pe.signal(), pe.mark, NVSHMEM_SIGNAL_SET, 1,
                                             pe.b);
        });
        follow("nbi", "put_nbi", [](Sender &pe) {
            nvshmemx_putmem_nbi_on_stream(pe.signal(), pe.source(), 8, 1, pe.b);
        });
        follow("nbi_elsewhere", "put_nbi of another stream", [](Sender &pe) {
            nvshmemx_putmem_nbi_on_stream(pe.signal(), pe.source(), 8, 1, pe.c);
        });
        follow("quiet", "quiet and signal_op", [](Sender &pe) { pe.quiet(pe.b), pe.mark_by_signal(pe.b); });
    } else {
        follow("signal", "signal_op on a stream", [](Sender &pe) { pe.mark_by_signal(pe.c); });
        follow("put", "put", [](Sender &pe) { nvshmem_putmem(pe.signal(), pe.source(), 8, 1); });
        follow("p", "p", [](Sender &pe) { nvshmem_uint64_p(pe.signal(), pe.mark, 1); });
        follow("nbi", "put_nbi", [](Sender &pe) { nvshmem_putmem_nbi(pe.signal(), pe.source(), 8, 1); });
        follow("put_stream", "put on a stream", [](Sender &pe) {
            nvshmemx_putmem_on_stream(pe.signal(), pe.source(), 8, 1, pe.c);
        });
        follow("fence", "fence and signal_op", [](Sender &pe) { pe.fence(), pe.mark_by_signal(pe.c); });
        follow("quiet", "quiet and signal_op", [](Sender &pe) { pe.quiet(), pe.mark_by_signal(pe.c); });
    }
    finish();
}
