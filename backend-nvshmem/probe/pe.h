// One PE: its device, the library's initialization by a unique id, and helpers for most questions.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <nvshmem_host.h>

#include <cstring>
#include <vector>

#include "record.h"

// For calls of CUDA without which the question makes no sense.
inline void expect(const char *what, cudaError_t error) {
    if (error != cudaSuccess) throw Broken{text("%s: %s", what, cudaGetErrorName(error))};
}
#define CUDA(expression) expect(#expression, CALL(expression))

struct Pe {
    int rank = my_rank();
    int pes = all_pes();

    // The PE that this one talks to. With one PE that is itself.
    int peer() const { return (rank + 1) % pes; }
};

inline void need_gpu() {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return;
    const char *why = error == cudaSuccess ? "there is no device" : cudaGetErrorString(error);
    fprintf(stderr, "no GPU: %s\n", why);
    line("{\"no_gpu\": " + quoted(why) + "}");
    exit(69);
}

inline void select_device() {
    need_gpu();
    CUDA(cudaSetDevice(atoi(setting("ONESIDED_DEVICE", "0"))));
    CUDA(cudaFree(nullptr));
}

// Initializes by a unique id that PE 0 makes and posts under a name. Returns what the library returned.
inline int init_with(const std::string &name) {
    static nvshmemx_uniqueid_t id;  // the attributes keep a pointer to it
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (my_rank() == 0) {
        int status = CALL(nvshmemx_get_uniqueid(&id));
        if (status != 0) throw Broken{text("nvshmemx_get_uniqueid returned %d", status)};
        post(name, std::string((const char *)&id, sizeof id));
    } else {
        std::string bytes = collect(name, 0);
        if (bytes.size() != sizeof id) throw Broken{"the unique id has a wrong size"};
        memcpy(&id, bytes.data(), sizeof id);
    }
    CALL(nvshmemx_set_attr_uniqueid_args(my_rank(), all_pes(), &id, &attributes));
    return CALL(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
}

inline Pe start() {
    select_device();
    int rc = init_with("uid");
    int status = CALL(nvshmemx_init_status());
    observed("init_rc", rc);
    observed("init_status", status);
    if (rc != 0 || status < 2) throw Broken{text("initialization returned %d, status %d", rc, status)};
    return Pe{};
}

// The usual end. A question that broke something ends in `leave`.
inline void finish() {
    CALL(nvshmemx_hostlib_finalize());
    calling("the end of the program");
}

// Ends the process without finalize, as soon as all PEs are here or one does not come.
[[noreturn]] inline void leave() {
    calling("leave without finalize");
    try {
        meet("leave", 3);
    } catch (const Broken &) {
    }
    line("{\"done\": true}");
    fflush(nullptr);
    _exit(0);
}

// Waits until the stream is empty, up to the limit. An error of the stream is an answer too.
inline cudaError_t drained(cudaStream_t stream, double limit) {
    for (auto start = Clock::now();; pause_ms(1)) {
        cudaError_t state = cudaStreamQuery(stream);
        if (state != cudaErrorNotReady || seconds_since(start) > limit) return state;
    }
}

inline cudaStream_t new_stream() {
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

// Copies between host and device on a stream of its own, through pinned memory. It never waits for another stream.
class Desk {
  public:
    Desk() : stream_(new_stream()) { CUDA(cudaMallocHost(&words_, size_)); }

    void write(void *device, const void *host, size_t bytes) {
        check(bytes);
        memcpy(words_, host, bytes);
        move(device, words_, bytes);
    }

    void read(void *host, const void *device, size_t bytes) {
        check(bytes);
        move(words_, device, bytes);
        memcpy(host, words_, bytes);
    }

    template <class T>
    void put(T *device, T value) {
        write(device, &value, sizeof value);
    }
    template <class T>
    void put(T *device, const std::vector<T> &values) {
        write(device, values.data(), values.size() * sizeof(T));
    }
    template <class T>
    T get(const T *device) {
        T value;
        read(&value, device, sizeof value);
        return value;
    }
    template <class T>
    std::vector<T> get(const T *device, size_t count) {
        std::vector<T> values(count);
        read(values.data(), device, count * sizeof(T));
        return values;
    }

  private:
    void check(size_t bytes) const {
        if (bytes > size_) throw Broken{text("%zu bytes are more than the desk has", bytes)};
    }
    void move(void *to, const void *from, size_t bytes) {
        CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
        CUDA(cudaStreamSynchronize(stream_));
    }

    size_t size_ = 8 << 20;
    cudaStream_t stream_;
    char *words_ = nullptr;
};

// Symmetric memory, all bytes 0 on all PEs. Collective.
template <class T>
T *symmetric(size_t count) {
    size_t bytes = count * sizeof(T);
    T *memory = (T *)CALL(nvshmem_malloc(bytes));
    if (!memory) throw Broken{text("nvshmem_malloc(%zu) returned NULL", bytes)};
    CUDA(cudaMemset(memory, 0, bytes));
    CUDA(cudaDeviceSynchronize());
    CALL(nvshmem_barrier_all());
    return memory;
}

inline std::string pointer_word(const void *pointer) { return pointer ? "an address" : "NULL"; }
inline std::string error_word(cudaError_t error) {
    return error == cudaErrorNotReady ? "not finished" : error == cudaSuccess ? "finished" : cudaGetErrorName(error);
}

// Whether an allocation, a put and a barrier still work after an odd call. Collective.
inline void still_works(const Pe &pe, const char *after) {
    auto *word = (uint64_t *)CALL(nvshmem_malloc(64));
    observed("malloc_afterwards", pointer_word(word));
    if (!word) {
        say(text("%s, nvshmem_malloc(64) returns NULL", after));
        leave();
    }
    Desk desk;
    uint64_t value = 0;
    desk.put(word, uint64_t(0));
    CALL(nvshmem_barrier_all());
    auto *source = (uint64_t *)CALL(nvshmem_malloc(64));
    desk.put(source, uint64_t(1000 + pe.rank));
    CALL(nvshmem_putmem(word, source, sizeof value, pe.peer()));
    CALL(nvshmem_barrier_all());
    value = desk.get(word);
    bool right = value == uint64_t(1000 + (pe.rank + pe.pes - 1) % pe.pes);
    observed("put_afterwards_right", right);
    say(text("%s, malloc, put and barrier_all %s", after, right ? "still work" : "bring a wrong value"));
}
