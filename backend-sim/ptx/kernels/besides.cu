// Loops that look at more than the word that ends them: at all words of a packet, or at a flag by which they are told to give up.
#include <nvshmem.h>

#define ALL int *flags, int *data, int *out

__device__ int *next(int *word) { return (int *)nvshmem_ptr(word, (nvshmem_my_pe() + 1) % nvshmem_n_pes()); }

__device__ void store(int *word, int value) { asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory"); }

__device__ int load(const int *word) {
  int value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

__device__ int4 load_packet(const int *from) {
  int4 p;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(p.x), "=r"(p.y), "=r"(p.z), "=r"(p.w) : "l"(from) : "memory");
  return p;
}

__device__ void store_packet(int *to, int4 p) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(p.x), "r"(p.y), "r"(p.z), "r"(p.w) : "memory");
}

// No word of a packet that has arrived is 0. A packet comes from the PE itself, and one from the PE before it.
extern "C" __global__ void packets(ALL) {
  int me = nvshmem_my_pe();
  store_packet(data, make_int4(me + 1, 2, 3, 4));
  store_packet(next(data) + 4, make_int4(me + 1, 20, 30, 40));
  int4 packet[2];
  bool valid;
  do {
    valid = true;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      packet[i] = load_packet(data + 4 * i);
      valid &= (packet[i].x != 0) & (packet[i].y != 0) & (packet[i].z != 0) & (packet[i].w != 0);
    }
  } while (!valid);
  out[0] = packet[0].y + packet[0].z + packet[0].w + packet[1].y + packet[1].z + packet[1].w;
}

// The flag is one word of the packet: it says nothing of the data in the others.
extern "C" __global__ void torn(ALL) {
  if (nvshmem_my_pe() == 0) return store_packet(next(data), make_int4(10, 7, 20, 7));
  if (nvshmem_my_pe() != 1) return;
  int4 packet;
  do {
    packet = load_packet(data);
  } while (packet.y != 7 || packet.w != 7);
  out[0] = packet.x + packet.z;
}

// Each round looks at both words. The second is stored plainly, before the first.
extern "C" __global__ void plain_beside(ALL) {
  if (nvshmem_my_pe() == 0) {
    next(flags)[1] = 1;
    store(next(flags), 1);
  } else if (nvshmem_my_pe() == 1) {
    int one, other;
    do {
      one = load(flags), other = load(flags + 1);
    } while (one == 0 || other == 0);
    out[0] = one + other;
  }
}

extern "C" __global__ void strong_beside(ALL) {
  if (nvshmem_my_pe() == 0) {
    store(next(flags) + 1, 1);
    store(next(flags), 1);
  } else if (nvshmem_my_pe() == 1) {
    int one, other;
    do {
      one = load(flags), other = load(flags + 1);
    } while (one == 0 || other == 0);
    out[0] = one + other;
  }
}

// Waits for a round of a flag. False: it was told to give up.
__device__ bool wait(const int *flag, const int *stop, int round) {
  while (load(flag) < round) {
    if (load(stop) != 0) return false;
  }
  return true;
}

// Another word beside the flag can end the loop. Nobody writes there.
extern "C" __global__ void rounds(ALL) {
  for (int round = 1; round <= 3; round++) {
    store(next(flags), round);
    if (!wait(flags, flags + 1, round)) return;
    out[0] = round;
    store(next(flags) + 2, round);
    if (!wait(flags + 2, flags + 1, round)) return;
  }
}

// The same, with the other word first, and by a lock.
extern "C" __global__ void locked(ALL) {
  int *lock = (int *)nvshmem_ptr(flags, 0);
  int *stop = flags + 1;
  while (true) {
    if (load(stop) != 0) return;
    if (atomicCAS_system(lock, 0, 1) == 0) break;
  }
  int *count = (int *)nvshmem_ptr(data, 0);
  __threadfence_system();
  count[0]++;
  __threadfence_system();
  atomicExch_system(lock, 0);
  out[0] = 1;
}

// PE 0 sends the flag, and tells PE 1 to give up.
extern "C" __global__ void told(ALL) {
  if (nvshmem_my_pe() == 0) {
    store(next(flags), 1);
    store(next(flags) + 1, 1);
  } else if (nvshmem_my_pe() == 1) {
    out[0] = wait(flags, flags + 1, 1) ? 1 : 77;
  }
}

// PE 0 only tells it to give up.
extern "C" __global__ void told_only(ALL) {
  if (nvshmem_my_pe() == 0) return store(next(flags) + 1, 1);
  if (nvshmem_my_pe() == 1) out[0] = wait(flags, flags + 1, 1) ? 1 : 77;
}

// Nobody does anything.
extern "C" __global__ void nobody(ALL) {
  if (nvshmem_my_pe() == 1) out[0] = wait(flags, flags + 1, 1) ? 1 : 77;
}
