/* The peer of `onesided bench --backend nvshmem`: the calls that hardware/worker.rs makes through the API, made
 * directly. One process is one PE; both programs print the same lines. The calls themselves are in nvshmem_loops.cpp.
 *
 *   nvshmem ID_FILE MEASUREMENT...
 *
 * ID_FILE         PE 0 writes the unique id there, the others read it
 * MEASUREMENT     KIND:BYTES:OPERATIONS:SAMPLES, as hardware/plan.rs describes it
 *
 * ONESIDED_RANK, ONESIDED_PES, ONESIDED_DEVICE say who this PE is. After ONESIDED_TIMEOUT seconds it gives up.
 */
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "nvshmem_loops.cpp"

static int rank, pes;
static cudaStream_t stream;

[[noreturn]] static void fail(const std::string &why) {
    fprintf(stderr, "the C++ peer, PE %d: %s\n", rank, why.c_str());
    exit(2);
}

static void check(cudaError_t status, const char *call) {
    if (status != cudaSuccess) fail(std::string(call) + ": " + cudaGetErrorString(status));
}

static void check(int status, const char *call) {
    if (status != 0) fail(std::string(call) + " returned status " + std::to_string(status));
}

#define CHECK(call) check(call, #call)

/* A call that waits for a PE that never comes would wait for ever. */
static void too_late(int) {
    const char why[] = "the C++ peer took too long\n";
    if (write(2, why, sizeof why - 1) < 0) _exit(3);
    _exit(2);
}

static int variable(const char *name) {
    const char *text = getenv(name);
    char *end = nullptr;
    long value = text ? strtol(text, &end, 10) : -1;
    if (!text || *text == 0 || *end != 0 || value < 0) fail(std::string(name) + " is not set to a number");
    return int(value);
}

/* Nanoseconds on a clock that only goes forward: the one of Rust's Instant. */
static double now_ns() {
    using namespace std::chrono;
    return double(duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

/* The id that PE 0 made, through a file that appears whole. */
static nvshmemx_uniqueid_t shared_id(const std::string &path) {
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (rank == 0) {
        CHECK(nvshmemx_get_uniqueid(&id));
        std::string part = path + ".part";
        FILE *file = fopen(part.c_str(), "wb");
        bool written = file && fwrite(&id, sizeof id, 1, file) == 1;
        if (!file || fclose(file) != 0 || !written) fail("cannot write " + part);
        if (rename(part.c_str(), path.c_str()) != 0) fail("cannot write " + path);
        return id;
    }
    for (;;) { /* the alarm ends it */
        if (FILE *file = fopen(path.c_str(), "rb")) {
            bool read = fread(&id, sizeof id, 1, file) == 1;
            fclose(file);
            if (!read) fail(path + " is no unique id");
            return id;
        }
        usleep(200);
    }
}

struct Measurement {
    std::string text, kind;
    size_t bytes;
    uint32_t operations, samples;
};

static Measurement parse(const char *text) {
    char kind[16];
    Measurement m;
    int end = 0;
    int fields = sscanf(text, "%15[a-z_]:%zu:%u:%u%n", kind, &m.bytes, &m.operations, &m.samples, &end);
    if (fields != 4 || text[end] != 0) fail(std::string(text) + " is no measurement");
    m.text = text;
    m.kind = kind;
    return m;
}

/* Symmetric memory for all measurements. */
static char *dst, *src;
static float *sums, *addends;
static uint64_t *flag, turn = 0;

template <typename T>
static T *allocate(size_t count) {
    void *memory = nvshmem_calloc(std::max<size_t>(count, 1), sizeof(T));
    if (!memory) fail("nvshmem_calloc gave no memory");
    return static_cast<T *>(memory);
}

static void copy(void *to, const void *from, size_t bytes) { CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault)); }

static void meet() {
    nvshmemx_barrier_all_on_stream(stream);
    CHECK(cudaStreamSynchronize(stream));
}

struct Samples {
    std::vector<double> issue, done; /* nanoseconds for each operation */
};

/* A sample is the time of all operations: until they are enqueued, and until they are done. The first is not kept. */
template <typename Operations, typename Finish>
static Samples sample(const Measurement &m, bool together, Operations operations, Finish finish) {
    Samples samples;
    for (uint32_t i = 0; i <= m.samples; i++) {
        if (together) meet();
        double start = now_ns();
        operations();
        double issued = now_ns() - start;
        finish();
        CHECK(cudaStreamSynchronize(stream));
        double done = now_ns() - start;
        if (i == 0) continue;
        samples.issue.push_back(issued / m.operations);
        samples.done.push_back(done / m.operations);
    }
    return samples;
}

/* PE 0 puts to PE 1, and completes its puts. The last bytes say that they came. */
static Samples put(const Measurement &m, unsigned char mark) {
    size_t tail = std::min<size_t>(m.bytes, 8);
    char marks[8], found[8];
    memset(marks, mark, sizeof marks);
    copy(src + m.bytes - tail, marks, tail);
    meet();
    Samples samples;
    if (rank == 0) {
        samples = sample(
            m, false, [&] { loop_put(m.operations, dst, src, m.bytes, stream); },
            [] { nvshmemx_quiet_on_stream(stream); });
    }
    meet();
    copy(found, dst + m.bytes - tail, tail);
    if (rank == 1 && memcmp(found, marks, tail) != 0) fail(m.text + ": the data did not come");
    return samples;
}

/* PE 0 gets from PE 1. The last bytes say that they came. */
static Samples get(const Measurement &m, unsigned char mark) {
    size_t tail = std::min<size_t>(m.bytes, 8);
    char marks[8], found[8];
    memset(marks, mark, sizeof marks);
    if (rank == 1) copy(src + m.bytes - tail, marks, tail);
    meet();
    Samples samples;
    if (rank == 0) {
        samples = sample(
            m, false,
            [&] {
                if (m.kind == "get") loop_get(m.operations, dst, src, m.bytes, stream);
                else loop_host_get(m.operations, dst, src, m.bytes);
            },
            [] {});
        copy(found, dst + m.bytes - tail, tail);
        if (memcmp(found, marks, tail) != 0) fail(m.text + ": the data did not come");
    }
    meet();
    return samples;
}

/* One operation is a put with signal and a wait: there and back, between PE 0 and PE 1. */
static Samples ping_pong(const Measurement &m) {
    return sample(
        m, true,
        [&] {
            loop_ping_pong(m.operations, dst, src, m.bytes, flag, turn, rank, stream);
            turn += m.operations;
        },
        [] {});
}

static Samples barrier(const Measurement &m) {
    return sample(
        m, true, [&] { loop_barrier(m.operations, stream); }, [] {});
}

/* PE 0 launches. */
static Samples launch(const Measurement &m) {
    meet();
    Samples samples;
    if (rank == 0) {
        int cooperative = m.kind == "cooperative", count = int(m.bytes / 8);
        samples = sample(
            m, false, [&] { CHECK(loop_launch(m.operations, cooperative, dst, src, flag, count, stream)); }, [] {});
    }
    meet();
    return samples;
}

static Samples reduce(const Measurement &m, unsigned char mark) {
    size_t count = m.bytes / sizeof(float);
    float mine = float(mark) + float(rank), sum = 0, expected = float(pes * mark + pes * (pes - 1) / 2);
    copy(addends + count - 1, &mine, sizeof mine);
    Samples samples = sample(
        m, true, [&] { CHECK(loop_reduce(m.operations, sums, addends, count, stream)); }, [] {});
    meet();
    copy(&sum, sums + count - 1, sizeof sum);
    if (sum != expected) fail(m.text + ": a sum is wrong");
    return samples;
}

static void print(const char *name, const std::vector<double> &values) {
    printf(",\"%s\":[", name);
    for (size_t i = 0; i < values.size(); i++) printf("%s%.1f", i ? "," : "", values[i]);
    printf("]");
}

static const char *status_name(int status) {
    const char *names[] = {"not initialized", "bootstrapped", "initialized", "limited MPG", "full MPG"};
    return status >= 0 && status < 5 ? names[status] : "unknown";
}

int main(int argc, char **argv) {
    rank = variable("ONESIDED_RANK");
    pes = variable("ONESIDED_PES");
    if (argc < 2) fail("no file for the unique id");
    if (pes != 2) fail("the measurements are for 2 PEs");
    std::vector<Measurement> plan;
    for (int i = 2; i < argc; i++) plan.push_back(parse(argv[i]));
    signal(SIGALRM, too_late);
    alarm(unsigned(variable("ONESIDED_TIMEOUT")));

    double start = now_ns();
    CHECK(cudaSetDevice(variable("ONESIDED_DEVICE")));
    CHECK(cudaFree(nullptr)); /* makes the context */
    double device_ns = now_ns() - start;
    nvshmemx_uniqueid_t id = shared_id(argv[1]);
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    CHECK(nvshmemx_set_attr_uniqueid_args(rank, pes, &id, &attr));
    CHECK(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr));
    int status = nvshmemx_init_status();
    if (status < 2) fail(std::string("after initialization the library is ") + status_name(status));
    nvshmem_barrier_all();
    double init_ns = now_ns() - start;
    int major, minor, patch;
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    printf("{\"ready\":{\"init_ns\":%.0f,\"device_ns\":%.0f,\"status\":\"%s\",\"library\":\"%d.%d.%d\"}}\n", init_ns,
           device_ns, status_name(status), major, minor, patch);
    fflush(stdout);

    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    size_t most_bytes = 0, most_floats = 0;
    for (const Measurement &m : plan) {
        if (m.kind == "reduce")
            most_floats = std::max(most_floats, m.bytes / sizeof(float));
        else
            most_bytes = std::max(most_bytes, m.bytes);
    }
    dst = allocate<char>(most_bytes), src = allocate<char>(most_bytes);
    sums = allocate<float>(most_floats), addends = allocate<float>(most_floats);
    flag = allocate<uint64_t>(1);

    unsigned char mark = 0;
    for (const Measurement &m : plan) {
        mark++;
        Samples samples;
        if (m.kind == "put") samples = put(m, mark);
        else if (m.kind == "get" || m.kind == "host_get") samples = get(m, mark);
        else if (m.kind == "ping_pong") samples = ping_pong(m);
        else if (m.kind == "barrier") samples = barrier(m);
        else if (m.kind == "reduce") samples = reduce(m, mark);
        else if (m.kind == "launch" || m.kind == "cooperative") samples = launch(m);
        else fail(m.text + " is no measurement");
        if (rank != 0) continue;
        printf("{\"measured\":\"%s\"", m.text.c_str());
        print("issue_ns", samples.issue);
        print("done_ns", samples.done);
        printf("}\n");
        fflush(stdout);
    }

    meet();
    for (void *memory : std::vector<void *>{dst, src, sums, addends, flag}) nvshmem_free(memory);
    CHECK(cudaStreamDestroy(stream));
    nvshmemx_hostlib_finalize();
    return 0;
}
