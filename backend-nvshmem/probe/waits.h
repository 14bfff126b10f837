// How a wait on a stream compares: as unsigned numbers, as signed numbers, or by the sign of the difference.
#pragma once

#include <dlfcn.h>

#include <limits>

#include "pe.h"

// One way to wait for numbers of type T, on a word of symmetric memory.
template <class T>
class WaitOrder {
  public:
    using U = std::make_unsigned_t<T>;
    using Wait = std::function<void(T *, int, T, cudaStream_t)>;

    WaitOrder(const char *name, T *word, Wait wait) : name_(name), word_(word), wait_(wait) {}

    void ask(int comparison) {
        const char *sign = sign_of(comparison);
        calling(text("%s %s", name_, sign).c_str());
        std::string passed, as_unsigned, as_signed, cyclic;
        for (auto [value, wanted] : pairs()) {
            passed += passes(value, comparison, wanted) ? '1' : '0';
            as_unsigned += holds<U>(value, comparison, wanted) ? '1' : '0';
            as_signed += holds<std::make_signed_t<T>>(value, comparison, wanted) ? '1' : '0';
            cyclic += holds<std::make_signed_t<T>>(U(value - wanted), comparison, 0) ? '1' : '0';
        }
        observed(text("%s %s", name_, sign), passed);
        const char *order = passed == as_unsigned ? "unsigned"
                            : passed == as_signed ? "signed"
                            : passed == cyclic    ? "cyclic"
                                                  : nullptr;
        say(text("%s %s ", name_, sign) + (order ? order : "in no order known: " + passed));
    }

  private:
    // Pairs of a value and what is waited for. For each comparison, any two of the three orders differ in one pair at least,
    // and each wait can be ended: no order has its first or last number among what is waited for.
    static std::vector<std::pair<U, U>> pairs() {
        const U max = std::numeric_limits<U>::max(), half = max / 2 + 1;
        return {{5, 3},          {3, 5},   {4, 4},    {half, U(half - 2)}, {U(half - 2), U(half + 1)},
                {0, U(max - 1)}, {max, 1}, {half, 1}, {0, U(half + 1)},    {max, U(half + 1)}};
    }

    static const char *sign_of(int comparison) {
        switch (comparison) {
        case NVSHMEM_CMP_GE: return ">=";
        case NVSHMEM_CMP_GT: return ">";
        case NVSHMEM_CMP_LE: return "<=";
        case NVSHMEM_CMP_LT: return "<";
        }
        throw Broken{"no order in this comparison"};
    }

    template <class As>
    static bool holds(U value, int comparison, U wanted) {
        switch (comparison) {
        case NVSHMEM_CMP_GE: return As(value) >= As(wanted);
        case NVSHMEM_CMP_GT: return As(value) > As(wanted);
        case NVSHMEM_CMP_LE: return As(value) <= As(wanted);
        default: return As(value) < As(wanted);
        }
    }

    bool passes(U value, int comparison, U wanted) {
        desk_.put((U *)word_, value);
        wait_(word_, comparison, T(wanted), stream_);
        bool passed = drained(stream_, 0.03) == cudaSuccess;
        for (U rescue : {wanted, U(wanted + 1), U(wanted - 1)}) {  // one of these ends it, whatever its order
            if (drained(stream_, 0.03) == cudaSuccess) return passed;
            desk_.put((U *)word_, rescue);
        }
        CUDA(drained(stream_, 1));
        return passed;
    }

    const char *name_;
    T *word_;
    Wait wait_;
    Desk desk_;
    cudaStream_t stream_ = new_stream();
};

inline void ask_wait_order() {
    start();
    auto *word = symmetric<uint64_t>(1);
    using Driver = CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    auto wait_value = driver ? (Driver)dlsym(driver, "cuStreamWaitValue64_v2") : nullptr;
    if (!wait_value) throw Broken{"libcuda has no cuStreamWaitValue64_v2"};
    int device = 0, flushes = 0;
    CUDA(cudaGetDevice(&device));
    CUDA(cudaDeviceGetAttribute(&flushes, cudaDevAttrCanFlushRemoteWrites, device));
    observed("gpu_can_flush_remote_writes", flushes != 0);
    say(flushes ? "the GPU can flush remote writes" : "the GPU cannot flush remote writes");
    const auto all = {NVSHMEM_CMP_GE, NVSHMEM_CMP_GT, NVSHMEM_CMP_LE, NVSHMEM_CMP_LT};

    using Stream = cudaStream_t;
    WaitOrder<uint64_t> plain("cuStreamWaitValue64", word, [&](uint64_t *word, int, uint64_t wanted, Stream stream) {
        CUresult result = wait_value(stream, (CUdeviceptr)word, wanted, CU_STREAM_WAIT_VALUE_GEQ);
        if (result != CUDA_SUCCESS) throw Broken{text("cuStreamWaitValue64 returned %d", int(result))};
    });
    plain.ask(NVSHMEM_CMP_GE);
    WaitOrder<uint64_t> signal("signal_wait", word, nvshmemx_signal_wait_until_on_stream);
    for (int comparison : all) signal.ask(comparison);
    WaitOrder<uint64_t> wide("uint64", word, nvshmemx_uint64_wait_until_on_stream);
    for (int comparison : all) wide.ask(comparison);
    WaitOrder<int64_t> wide_signed("int64", (int64_t *)word, nvshmemx_int64_wait_until_on_stream);
    for (int comparison : all) wide_signed.ask(comparison);
    WaitOrder<uint32_t> narrow("uint32", (uint32_t *)word, nvshmemx_uint32_wait_until_on_stream);
    for (int comparison : all) narrow.ask(comparison);
    WaitOrder<int32_t> narrow_signed("int32", (int32_t *)word, nvshmemx_int32_wait_until_on_stream);
    for (int comparison : all) narrow_signed.ask(comparison);
    finish();
}
