/* What a kernel says to the simulator. On GPUs it is nothing.
 *
 *     {
 *         ONESIDED_INTENDED_RACE("the payload is its own flag");
 *         value = slot[i];
 *     }
 *
 * From there to the end of the block in braces, what the thread does to global memory is free to race: as `Pe::intended_race`
 * says of what a host does. The reason is a string literal without quotes in it. It stands in the PTX as a pragma, which
 * assemblers pass over, and costs no instruction; the compiler moves no access across it.
 */
#ifndef ONESIDED_H
#define ONESIDED_H

#define ONESIDED_INTENDED_RACE(REASON) ONESIDED_INTENDED_RACE_AT(REASON, __LINE__)
#define ONESIDED_INTENDED_RACE_AT(REASON, LINE) ONESIDED_INTENDED_RACE_OF(REASON, LINE)
#define ONESIDED_INTENDED_RACE_OF(REASON, LINE)                                                                         \
    struct OnesidedMark##LINE {                                                                                         \
        __device__ __forceinline__ ~OnesidedMark##LINE() {                                                              \
            asm volatile(".pragma \"onesided.intended_race.end\";" ::: "memory");                                       \
        }                                                                                                               \
    } onesided_mark_##LINE;                                                                                             \
    asm volatile(".pragma \"onesided.intended_race: " REASON "\";" ::: "memory")

#endif
