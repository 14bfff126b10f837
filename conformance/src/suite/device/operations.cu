// Operations of a thread: elements, arrays, strides, every size, what becomes of the source.
#include "kernel.h"

// Single elements.
KERNEL(p) { nvshmem_int_p(data, in[1], NEXT); }
KERNEL(g) { out[0] = nvshmem_int_g(in + 2, NEXT); }
KERNEL(p_of_every_size) {
    nvshmem_uchar_p((unsigned char *)data + 1, 0xab, NEXT);
    nvshmem_ushort_p((unsigned short *)data + 1, 0xcdef, NEXT);
    nvshmem_uint_p((unsigned *)data + 1, 0x12345678, NEXT);
    nvshmem_ulonglong_p((unsigned long long *)data + 1, 0x0123456789abcdef, NEXT);
}
KERNEL(g_of_every_size) {
    out[0] = nvshmem_uchar_g((unsigned char *)(in + 1), NEXT);
    out[1] = nvshmem_ushort_g((unsigned short *)(in + 2), NEXT);
    out[2] = nvshmem_uint_g((unsigned *)(in + 3), NEXT);
    unsigned long long wide = nvshmem_ulonglong_g((unsigned long long *)(in + 4), NEXT);
    out[4] = (int)wide;
    out[5] = (int)(wide >> 32);
}
// Numbers below zero stay below zero, whatever their size. (NVSHMEM declares p and g of `signed char`, and its library does not have them.)
KERNEL(p_of_signed_numbers) {
    nvshmem_char_p((char *)data, -2, NEXT);
    nvshmem_short_p((short *)(data + 1), -3, NEXT);
    nvshmem_int_p(data + 2, -4, NEXT);
    nvshmem_longlong_p((long long *)(data + 4), -5, NEXT);
}
KERNEL(g_of_signed_numbers) {
    data[0] = -2;
    __threadfence_system();
    out[0] = nvshmem_char_g((char *)data, ME);
    out[1] = nvshmem_short_g((short *)data, ME);
    out[2] = nvshmem_int_g(data, ME);
}
KERNEL(p_of_floats) {
    nvshmem_float_p((float *)data, 1.5f, NEXT);
    nvshmem_double_p((double *)(data + 2), -0.25, NEXT);
}
KERNEL(g_of_floats) {
    out[0] = __float_as_int(nvshmem_float_g((float *)(in + 1), NEXT));
    long long wide = __double_as_longlong(nvshmem_double_g((double *)(in + 2), NEXT));
    out[2] = (int)wide;
    out[3] = (int)(wide >> 32);
}
KERNEL(p_by_all_threads) { nvshmem_int_p(data + threadIdx.x, in[threadIdx.x], NEXT); }

// Arrays. 8 bits are bytes of the first words; 128 bits are four words.
KERNEL(put) { nvshmem_int_put(data, in, 4, NEXT); }
KERNEL(put8) { nvshmem_put8(data, in, 5, NEXT); }
KERNEL(put16) { nvshmem_put16(data, in, 3, NEXT); }
KERNEL(put32) { nvshmem_put32(data, in, 3, NEXT); }
KERNEL(put64) { nvshmem_put64(data, in, 2, NEXT); }
KERNEL(put128) { nvshmem_put128(data, in, 2, NEXT); }
KERNEL(putmem) { nvshmem_putmem(data + 1, in, 8, NEXT); }
KERNEL(put_of_doubles) { nvshmem_double_put((double *)data, (double *)in, 2, NEXT); }
KERNEL(put_of_shorts) { nvshmem_short_put((short *)data + 1, (short *)in, 3, NEXT); }
KERNEL(put_to_self) { nvshmem_int_put(data, in, 4, ME); }
KERNEL(put_of_nothing) { nvshmem_int_put(data, in, 0, NEXT); }
KERNEL(get) { nvshmem_int_get(out, in, 4, NEXT); }
KERNEL(get8) { nvshmem_get8(out, in, 5, NEXT); }
KERNEL(get16) { nvshmem_get16(out, in, 3, NEXT); }
KERNEL(get32) { nvshmem_get32(out, in, 3, NEXT); }
KERNEL(get64) { nvshmem_get64(out, in, 2, NEXT); }
KERNEL(get128) { nvshmem_get128(out, in, 2, NEXT); }
KERNEL(getmem) { nvshmem_getmem(out + 1, in, 8, NEXT); }
KERNEL(get_of_floats) { nvshmem_float_get((float *)out, (float *)in, 3, NEXT); }
KERNEL(get_from_self) { nvshmem_int_get(out, in, 4, ME); }

// Without waiting, until a quiet.
KERNEL(put_nbi) { nvshmem_int_put_nbi(data, in, 4, NEXT); nvshmem_quiet(); }
KERNEL(get_nbi) { nvshmem_int_get_nbi(out, in, 4, NEXT); nvshmem_quiet(); out[4] = out[0] + 1; }
KERNEL(put_nbi_of_every_size) {
    nvshmem_put8_nbi(data, in, 1, NEXT);
    nvshmem_put16_nbi(data + 1, in + 1, 1, NEXT);
    nvshmem_put32_nbi(data + 2, in + 2, 1, NEXT);
    nvshmem_put64_nbi(data + 4, in + 4, 1, NEXT);
    nvshmem_putmem_nbi(data + 6, in + 6, 8, NEXT);
    nvshmem_quiet();
}
KERNEL(get_nbi_of_every_size) {
    nvshmem_get8_nbi(out, in, 1, NEXT);
    nvshmem_get16_nbi(out + 1, in + 1, 1, NEXT);
    nvshmem_get32_nbi(out + 2, in + 2, 1, NEXT);
    nvshmem_get64_nbi(out + 4, in + 4, 1, NEXT);
    nvshmem_getmem_nbi(out + 6, in + 6, 8, NEXT);
    nvshmem_quiet();
}

// Strides count elements.
KERNEL(iput) { nvshmem_int_iput(data, in, 2, 1, 3, NEXT); }
KERNEL(iget) { nvshmem_int_iget(out, in, 1, 2, 3, NEXT); }
KERNEL(iput8) { nvshmem_iput8(data, in, 2, 4, 3, NEXT); }
KERNEL(iput64) { nvshmem_iput64(data, in, 2, 1, 2, NEXT); }
KERNEL(iget16) { nvshmem_iget16(out, in, 1, 2, 4, NEXT); }
KERNEL(iget_of_doubles) { nvshmem_double_iget((double *)out, (double *)in, 1, 2, 2, NEXT); }

// When the source may be used again: a put has read it, put_nbi may read it until the quiet.
KERNEL(source_after_put) {
    data[16] = 5;
    nvshmem_int_put(data, data + 16, 1, NEXT);
    data[16] = 6;
}
KERNEL(source_after_put_nbi) {
    data[16] = 5;
    nvshmem_int_put_nbi(data, data + 16, 1, NEXT);
    data[16] = 6;
    nvshmem_quiet();
}
KERNEL(source_after_quiet) {
    data[16] = 5;
    nvshmem_int_put_nbi(data, data + 16, 1, NEXT);
    nvshmem_quiet();
    data[16] = 6;
}
// What get_nbi brings is there after the quiet, and maybe before.
KERNEL(get_nbi_looked_at_early) {
    nvshmem_int_get_nbi(data, in + 1, 1, NEXT);
    out[0] = *(volatile int *)data;
    nvshmem_quiet();
}

// Each with each.
KERNEL(put_to_each) {
    for (int pe = 0; pe < N; pe++) nvshmem_int_p(data + ME, in[pe], pe);
}
KERNEL(get_from_each) {
    for (int pe = 0; pe < N; pe++) out[pe] = nvshmem_int_g(in + ME, pe);
}

// Who is there.
KERNEL(queries) {
    out[0] = ME;
    out[1] = N;
    out[2] = nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD);
    out[3] = nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD);
    out[4] = nvshmem_ptr(data, ME) == data;
}
KERNEL(queries_of_the_node) {
    out[0] = nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE);
    out[1] = nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE);
    out[2] = nvshmem_team_translate_pe(NVSHMEMX_TEAM_NODE, 1, NVSHMEM_TEAM_WORLD);
    out[3] = nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, ME, NVSHMEMX_TEAM_NODE);
}
