// Flags in shared memory: one warp stores, and sets a flag; another one waits for it, and reads. `release`: the first fences in between. `acquire`: the second
// does: 1: the thread that reads the flag, before it tells the others; 2: all threads, behind that.

__device__ __forceinline__ void hand_over(int* out, int* data, int release, int acquire) {
    __shared__ volatile int flag[2];
    int lane = threadIdx.x % 32;
    if (threadIdx.x < 2) flag[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        data[lane] = lane + 1;
        __syncwarp();
        if (release) __threadfence_block();
        if (lane == 0) flag[1] = 1;
    } else {
        if (lane == 0) {
            while (flag[1] == 0) {}
            if (acquire == 1) __threadfence_block();
        }
        __syncwarp();
        if (acquire == 2) __threadfence_block();
        out[lane] = data[31 - lane];
    }
}

extern "C" __global__ void shared_data(int* out, int* unused, int release, int acquire) {
    __shared__ int data[32];
    hand_over(out, data, release, acquire);
}

extern "C" __global__ void global_data(int* out, int* data, int release, int acquire) {
    hand_over(out, data, release, acquire);
}

// Each thread of the second warp waits for one of the first.
extern "C" __global__ void pairs(int* out, int* unused, int release, int acquire) {
    __shared__ int data[64];
    __shared__ volatile int flag[64];
    flag[threadIdx.x] = 0;
    __syncthreads();
    int other = threadIdx.x ^ 32;
    if (threadIdx.x < 32) {
        data[threadIdx.x] = threadIdx.x + 1;
        if (release) __threadfence_block();
        flag[threadIdx.x] = 1;
    } else {
        while (flag[other] == 0) {}
        if (acquire) __threadfence_block();
        out[other] = data[other];
    }
}

// Nobody fences or meets: a flag that the reader does not wait for says nothing.
extern "C" __global__ void no_flag(int* out, int* unused, int release, int acquire) {
    __shared__ int data[64];
    __shared__ volatile int flag[64];
    data[threadIdx.x] = 0;
    flag[threadIdx.x] = 0;
    __syncthreads();
    int other = threadIdx.x ^ 32;
    if (threadIdx.x < 32) {
        data[threadIdx.x] = threadIdx.x + 1;
        flag[threadIdx.x] = 1;
    } else {
        out[other] = data[other];
    }
}
