/* Counters and slots in device memory (DM) for applications: see weft_dm(3).
 *
 * Device memory is small, shared by all processes of a user on a node, handed out in units of 64
 * bytes, and given back when a process ends in whatever way. Functions that return an int return 0,
 * or an errno value and leave everything as it was; weft_dm_error() then says what was wrong. */
#ifndef WEFT_DM_H
#define WEFT_DM_H

#include <stddef.h>
#include <stdint.h>

/* C names. NOLINTBEGIN(readability-identifier-naming) */
#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_DM_UNIT 64

/* Where the memory may lie. (Functions take ints: what is no value of these is refused.) */
enum weft_dm_place {
  WEFT_DM_DEVICE = 0,         /* in device memory, or the call fails */
  WEFT_DM_DEVICE_OR_HOST = 1, /* in host memory, shared likewise, when the device has none left */
  WEFT_DM_HOST = 2            /* in host memory */
};

/* An allocation, one's own or one attached to. */
typedef struct weft_dm weft_dm;

/* What another process needs to attach: plain data, to be sent by whatever way there is. */
typedef struct weft_dm_handle {
  uint64_t word[12];
} weft_dm_handle;

/* Allocates `bytes` (at least 1, rounded up to units) of zeroed memory; `place` is one of enum
 * weft_dm_place. EINVAL, ENOMEM. */
int weft_dm_alloc(size_t bytes, int place, weft_dm** dm);
/* Attaches to another process's. EINVAL (no handle), EHOSTUNREACH (its process is gone or not on
 * this node), ESTALE (freed). */
int weft_dm_attach(const weft_dm_handle* handle, weft_dm** dm);
/* Frees one's own, for all who are attached too; or ends an attachment. NULL does nothing. */
void weft_dm_free(weft_dm* dm);

size_t weft_dm_size(const weft_dm* dm);
void* weft_dm_address(const weft_dm* dm);
/* 1 in device memory, 0 in host memory. */
int weft_dm_in_device(const weft_dm* dm);
void weft_dm_get_handle(const weft_dm* dm, weft_dm_handle* handle);
/* Bytes of the device's memory, all and free. */
int weft_dm_usage(size_t* total, size_t* available);
/* Why the calling thread's last call failed: a line for people. */
const char* weft_dm_error(void);

/* A counter of 64 bits: one unit of an allocation. */
typedef struct weft_dm_counter weft_dm_counter;

/* The counter in unit `index`; NULL beyond the end. Valid until the allocation is freed. */
weft_dm_counter* weft_dm_counter_at(weft_dm* dm, size_t index);
uint64_t weft_dm_load(const weft_dm_counter* counter);
void weft_dm_store(weft_dm_counter* counter, uint64_t value);
void weft_dm_add(weft_dm_counter* counter, uint64_t value);
/* These return the value before. */
uint64_t weft_dm_fetch_add(weft_dm_counter* counter, uint64_t value);
uint64_t weft_dm_swap(weft_dm_counter* counter, uint64_t value);
uint64_t weft_dm_compare_swap(weft_dm_counter* counter, uint64_t expected, uint64_t desired);

enum weft_dm_comparison { WEFT_DM_EQUAL, WEFT_DM_NOT_EQUAL, WEFT_DM_AT_LEAST };

/* Waits until the counter compares so with `value`: first at full speed, then giving way, then
 * asleep. ETIMEDOUT after `milliseconds`; negative ones wait for ever. `seen`, unless NULL, gets
 * the value that decided. */
int weft_dm_wait(const weft_dm_counter* counter, int comparison, uint64_t value, long milliseconds,
                 uint64_t* seen);

/* A slot holds a payload of up to `capacity` bytes that one process writes and all may read,
 * always whole. */
typedef struct weft_dm_slot {
  void* address;
  size_t capacity;
} weft_dm_slot;

/* Bytes that a slot takes. */
size_t weft_dm_slot_bytes(size_t capacity);
/* The slot at byte `offset`, a multiple of the unit. EINVAL when it does not lie in the memory. */
int weft_dm_slot_at(weft_dm* dm, size_t offset, size_t capacity, weft_dm_slot* slot);
/* EMSGSIZE when `length` is over the capacity. */
int weft_dm_slot_write(const weft_dm_slot* slot, const void* data, size_t length);
/* Copies what was written last, `size` bytes of it at most, and its whole length to `length`
 * (unless NULL). Returns how often the slot was written, 0 before the first time. */
uint64_t weft_dm_slot_read(const weft_dm_slot* slot, void* data, size_t size, size_t* length);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming) */
#endif
