// Loops of a warp whose lanes vote on what only some of them read. The first thread of another warp sets two words of shared memory, for good.

// What lanes do with the second word, which no vote is about.
constexpr int READ = 1, ONLY_VOTERS = 2, KEEP = 4;

// The second warp has 3 lanes, two of which look for the end.
template <int HOW>
__device__ void until_done(int *out) {
    __shared__ volatile int head, done;
    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x == 0) head = done = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        head = 1;
        done = 1;
    }
    int last = 0;
    while (threadIdx.x >= 32 && !__all_sync(7, lane >= 2 || done)) {
        if (HOW & READ && (!(HOW & ONLY_VOTERS) || lane < 2)) {
            const int now = head;
            if (HOW & KEEP && now > last) last = now;
            if (now > 5 || last > 5) *out = now;
        }
    }
}

extern "C" __global__ void votes(int *out) { until_done<0>(out); }
extern "C" __global__ void all_read(int *out) { until_done<READ>(out); }
extern "C" __global__ void all_keep(int *out) { until_done<READ | KEEP>(out); }
extern "C" __global__ void voters_read(int *out) { until_done<READ | ONLY_VOTERS>(out); }

// The same, with a pause in each round, where the compiler puts the end of the loop behind the vote.
extern "C" __global__ void pauses(int *) {
    __shared__ volatile int head, done;
    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        head = 0;
        done = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        head = 1;
        done = 1;
    } else if (threadIdx.x >= 32) {
        while (true) {
            if (__all_sync(7, lane >= 1 || done)) break;
            (void)head;
            __nanosleep(100);
        }
    }
}

// Two lanes of three hand on what they see, until the first thread of the other warp has retired. The third votes with them, and looks at the first word.
extern "C" __global__ void coordinates(int *out) {
    __shared__ volatile int head[2], done;
    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 2) head[threadIdx.x] = 0;
    if (threadIdx.x == 0) done = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        head[0] = 1;
        done = 1;
    } else if (threadIdx.x >= 32) {
        int last = 0;
        while (!__all_sync(7, lane >= 2 || done)) {
            const int now = head[lane % 2];
            if (now > last && lane < 2) {
                asm volatile("st.relaxed.sys.global.s32 [%0], %1;" ::"l"(out + 1 + lane), "r"(now) : "memory");
                last = now;
            }
        }
    }
}

// The second thread synchronizes with nobody: the first one has ended, or will.
extern "C" __global__ void alone(int *out) {
    __shared__ int words[2];
    if (threadIdx.x == 0) {
        words[out[0]] = 1;
        return;
    }
    __syncwarp(2);
    out[1] = words[out[0]];
}
