// Collectives: nothing to do, one PE, and the order of sums.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <functional>

#include "pe.h"

const nvshmem_team_t world = NVSHMEM_TEAM_WORLD;

inline void ask_zero(const std::string &name, bool on_stream) {
    Pe pe = start();
    Desk desk;
    int *to = symmetric<int>(64), *from = symmetric<int>(64);
    desk.put(to, std::vector<int>(64, 9));
    CALL(nvshmem_barrier_all());
    cudaStream_t stream = new_stream();
    int rc = -77;
    if (name == "alltoall") {
        rc = on_stream ? CALL(nvshmemx_int_alltoall_on_stream(world, to, from, 0, stream))
                       : CALL(nvshmem_int_alltoall(world, to, from, 0));
    } else if (name == "broadcast") {
        rc = on_stream ? CALL(nvshmemx_int_broadcast_on_stream(world, to, from, 0, 0, stream))
                       : CALL(nvshmem_int_broadcast(world, to, from, 0, 0));
    } else if (name == "fcollect") {
        rc = on_stream ? CALL(nvshmemx_int_fcollect_on_stream(world, to, from, 0, stream))
                       : CALL(nvshmem_int_fcollect(world, to, from, 0));
    } else if (name == "reduce") {
        rc = on_stream ? CALL(nvshmemx_int_sum_reduce_on_stream(world, to, from, 0, stream))
                       : CALL(nvshmem_int_sum_reduce(world, to, from, 0));
    } else {
        throw Broken{"no such collective: " + name};
    }
    cudaError_t state = CALL(drained(stream, 3)), last = cudaGetLastError();
    observed("rc", rc);
    observed("stream", error_word(state));
    observed("last_error", cudaGetErrorName(last));
    bool untouched = desk.get(to, 64) == std::vector<int>(64, 9);
    observed("dest_untouched", untouched);
    say(text("rc %d", rc) +
        (state == cudaSuccess && last == cudaSuccess ? ""
                                                     : std::string(", ") + cudaGetErrorName(state ? state : last)) +
        (untouched ? ", nothing written" : ", something written"));
    still_works(pe, "afterwards");
    finish();
}

inline void ask_single_pe() {
    start();
    Desk desk;
    const size_t count = 100;
    int *to = symmetric<int>(count), *from = symmetric<int>(count);
    std::vector<int> values(count);
    for (size_t i = 0; i < count; i++) values[i] = int(i) * 3 + 1;
    desk.put(from, values);
    cudaStream_t stream = new_stream();
    int asked = 0, right = 0;
    auto check = [&](const char *name, int rc, bool moves) {
        cudaError_t state = CALL(drained(stream, 3));
        bool ok = rc == 0 && state == cudaSuccess && (!moves || desk.get(to, count) == values);
        observed(name, ok ? std::string("right") : text("rc %d, stream %s", rc, error_word(state).c_str()));
        if (!ok) say(text("%s is wrong (rc %d, stream: %s)", name, rc, error_word(state).c_str()));
        asked += 1;
        right += ok;
        desk.put(to, std::vector<int>(count, -1));
    };
    check("barrier", CALL(nvshmem_barrier(world)), false);
    check("sync", CALL(nvshmem_team_sync(world)), false);
    check("broadcast", CALL(nvshmem_int_broadcast(world, to, from, count, 0)), true);
    check("fcollect", CALL(nvshmem_int_fcollect(world, to, from, count)), true);
    check("alltoall", CALL(nvshmem_int_alltoall(world, to, from, count)), true);
    check("reduce", CALL(nvshmem_int_sum_reduce(world, to, from, count)), true);
    check("reducescatter", CALL(nvshmem_int_sum_reducescatter(world, to, from, count)), true);
    check("barrier_on_stream", CALL(nvshmemx_barrier_on_stream(world, stream)), false);
    check("sync_on_stream", CALL(nvshmemx_team_sync_on_stream(world, stream)), false);
    check("broadcast_on_stream", CALL(nvshmemx_int_broadcast_on_stream(world, to, from, count, 0, stream)), true);
    check("fcollect_on_stream", CALL(nvshmemx_int_fcollect_on_stream(world, to, from, count, stream)), true);
    check("alltoall_on_stream", CALL(nvshmemx_int_alltoall_on_stream(world, to, from, count, stream)), true);
    check("reduce_on_stream", CALL(nvshmemx_int_sum_reduce_on_stream(world, to, from, count, stream)), true);
    check("reducescatter_on_stream", CALL(nvshmemx_int_sum_reducescatter_on_stream(world, to, from, count, stream)),
          true);
    say(text("%d of %d right", right, asked));
    finish();
}

// Numbers of mixed size and sign, the same on every machine, with all bits of a float in use: sums of them depend on
// the order.
inline float ragged(int pe, size_t i) {
    uint64_t x = (uint64_t(i) + 1) * 0x9e3779b97f4a7c15u + (uint64_t(pe) + 1) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 31, x *= 0x94d049bb133111ebu, x ^= x >> 29;
    float fraction = 1.0f + float(x & 0x7fffff) / 8388608.0f;
    int power = int((x >> 23) % 11);
    return (x >> 63 ? -fraction : fraction) * std::ldexp(1.0f, power - 5);
}

template <class T>
struct Float;
#define FLOAT_TYPE(NAME, TYPE, TO, FROM)                                                         \
    template <>                                                                                  \
    struct Float<TYPE> {                                                                         \
        static const char *name() { return #NAME; }                                              \
        static TYPE make(float x) { return TO(x); }                                              \
        static float value(TYPE x) { return FROM(x); }                                           \
        static int sum(TYPE *to, const TYPE *from, size_t count, cudaStream_t stream) {          \
            return CALL(nvshmemx_##NAME##_sum_reduce_on_stream(world, to, from, count, stream)); \
        }                                                                                        \
    };
FLOAT_TYPE(float, float, float, float)
FLOAT_TYPE(half, half, __float2half, __half2float)
FLOAT_TYPE(bfloat16, __nv_bfloat16, __float2bfloat16, __bfloat162float)

inline uint64_t fingerprint(const void *bytes, size_t count) {
    uint64_t hash = 14695981039346656037ull;
    for (size_t i = 0; i < count; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211ull;
    return hash;
}

// Orders in which a sum may have been made: by PE, pairwise, starting at the own PE, and by PE but rounded only once.
template <class T>
std::string orders_that_fit(const Pe &pe, const std::vector<T> &has) {
    using F = Float<T>;
    auto add = [](T a, T b) { return F::make(F::value(a) + F::value(b)); };
    struct Order {
        const char *name;
        std::function<T(size_t)> sum;
    };
    auto element = [](int p, size_t i) { return F::make(ragged(p, i)); };
    auto from = [&](int first, size_t i) {
        T sum = element(first, i);
        for (int p = 1; p < pe.pes; p++) sum = add(sum, element((first + p) % pe.pes, i));
        return sum;
    };
    std::vector<Order> orders{
        {"PE order", [&](size_t i) { return from(0, i); }},
        {"PE order backwards",
         [&](size_t i) {
             T sum = element(pe.pes - 1, i);
             for (int p = pe.pes - 2; p >= 0; p--) sum = add(sum, element(p, i));
             return sum;
         }},
        {"own PE first", [&](size_t i) { return from(pe.rank, i); }},
        {"own PE first, then backwards",
         [&](size_t i) {
             T sum = element(pe.rank, i);
             for (int p = 1; p < pe.pes; p++) sum = add(sum, element((pe.rank + pe.pes - p) % pe.pes, i));
             return sum;
         }},
        {"pairs",
         [&](size_t i) {
             std::vector<T> level;
             for (int p = 0; p < pe.pes; p++) level.push_back(element(p, i));
             for (; level.size() > 1;) {
                 std::vector<T> next;
                 for (size_t k = 0; k + 1 < level.size(); k += 2) next.push_back(add(level[k], level[k + 1]));
                 if (level.size() % 2) next.push_back(level.back());
                 level = next;
             }
             return level[0];
         }},
    };
    if (sizeof(T) < 4)
        orders.push_back({"PE order, rounded once", [&](size_t i) {
                              float sum = F::value(element(0, i));
                              for (int p = 1; p < pe.pes; p++) sum += F::value(element(p, i));
                              return F::make(sum);
                          }});
    // Blocks of the array may have been summed by different PEs, each of which begins with its own.
    orders.push_back({"rotations", [&](size_t i) {
                          for (int first = 0; first < pe.pes; first++) {
                              T sum = from(first, i);
                              if (memcmp(&sum, &has[i], sizeof(T)) == 0) return sum;
                          }
                          return from(0, i);
                      }});
    std::string fit;
    for (const Order &order : orders) {
        if (!fit.empty() && std::string(order.name) == "rotations") break;  // says less than what was found
        bool all = true;
        for (size_t i = 0; i < has.size() && all; i++) {
            T sum = order.sum(i);
            all = memcmp(&sum, &has[i], sizeof(T)) == 0;
        }
        if (all) fit += (fit.empty() ? "" : " = ") + std::string(order.name);
    }
    return fit.empty() ? "another order" : fit == "rotations" ? "PE order, begun at a PE that differs by element" : fit;
}

template <class T>
void sums(const Pe &pe, Desk &desk, cudaStream_t stream) {
    using F = Float<T>;
    const size_t most = 200000;
    T *from = symmetric<T>(most), *to = symmetric<T>(most);
    std::vector<T> mine(most);
    for (size_t i = 0; i < most; i++) mine[i] = F::make(ragged(pe.rank, i));
    desk.put(from, mine);
    std::vector<std::string> words;
    for (size_t count : {(size_t)16, (size_t)5000, most}) {
        uint64_t bits[2];
        std::vector<T> has;
        for (int turn = 0; turn < 2; turn++) {
            CUDA(cudaMemset(to, 0, most * sizeof(T)));
            CUDA(cudaDeviceSynchronize());
            CALL(nvshmem_barrier_all());
            int rc = F::sum(to, from, count, stream);
            CUDA(drained(stream, 3));
            if (rc != 0) throw Broken{text("%s sum returned %d", F::name(), rc)};
            has = desk.get(to, count);
            bits[turn] = fingerprint(has.data(), count * sizeof(T));
        }
        std::string what = text("%s_%zu", F::name(), count);
        post(what, text("%016llx", (unsigned long long)bits[1]));
        bool alike = true;
        for (int p = 0; p < pe.pes; p++) alike &= collect(what, p) == collect(what, 0);
        std::string fits = orders_that_fit(pe, has);
        observed("bits_" + what, text("%016llx", (unsigned long long)bits[1]));
        observed(what + "_same_twice", bits[0] == bits[1]);
        observed(what + "_same_on_all_pes", alike);
        observed(what + "_order", fits);
        words.push_back(fits + (alike ? "" : ", PEs differ") + (bits[0] == bits[1] ? "" : ", the second sum differs"));
    }
    bool at_all_sizes = words[0] == words[1] && words[1] == words[2];
    say(std::string(F::name()) + ": " +
        (at_all_sizes ? words[0]
                      : "16 elements " + words[0] + ", 5000 elements " + words[1] + ", 200000 elements " + words[2]));
}

inline void ask_sum_order() {
    Pe pe = start();
    Desk desk;
    cudaStream_t stream = new_stream();
    sums<float>(pe, desk, stream);
    sums<half>(pe, desk, stream);
    sums<__nv_bfloat16>(pe, desk, stream);
    finish();
}
