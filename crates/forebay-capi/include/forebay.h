/* libforebay: a userspace disk I/O scheduler for storage engines. docs/c-api.md says how to use it.
 *
 * Generated from crates/forebay-capi/src by `cargo run -p generate -- header --write`. Do not edit.
 *
 * - Handles are numbers, never pointers; 0 is none. One that is wrong in any way is FOREBAY_E_HANDLE.
 *   A child that is forked without exec has none of its parent's, and makes its own.
 * - Every function may be called by any thread at any time. A class that a thread has entered is the
 *   thread's own. No thread is cancelled (pthread_cancel) within a call: that would end the process.
 * - What is wrong is a code, with a message in the calling thread: forebay_last_error. No function
 *   changes errno, writes to the standard error, or throws.
 * - Strings have a length and need no NUL: FOREBAY_STR("...") is both of a literal. Structures begin
 *   with their size: FOREBAY_INIT makes one.
 * - Pointers are to memory of the caller, which the library uses as long as the call lasts. Descriptors
 *   stay open as long as the call, those of writers as long as the writer.
 */

#ifndef FOREBAY_H
#define FOREBAY_H

#include <stddef.h>
#include <stdint.h>

#define FOREBAY_STR(literal) (literal), (sizeof(literal) - 1)
#define FOREBAY_INIT(type) {.size = sizeof(struct type)}


// A read.
#define FOREBAY_READ 0

// A write.
#define FOREBAY_WRITE 1

// A discard, whose length is that of the discarded range.
#define FOREBAY_DISCARD 2

// A flush, whose length may be 0.
#define FOREBAY_FLUSH 3

// A timeout that never ends. No other timeout may be below 0.
#define FOREBAY_FOREVER -1

// An unknown offset. No other offset may be below 0.
#define FOREBAY_OFFSET_UNKNOWN -1

// Flushes all attributes (`fsync`), not only those that are needed to read the data back (`fdatasync`).
#define FOREBAY_SYNC_ALL 1

// The offset after the last write. With `O_APPEND` it is the end of the file. No other offset may be
// below 0.
#define FOREBAY_OFFSET_NEXT -1

// Success.
#define FOREBAY_OK 0

// The request waits. A callback or an event will report its end.
#define FOREBAY_PENDING 1

// The handle is 0, was freed, is of another kind or of another process, or was inherited by a forked
// child.
#define FOREBAY_E_HANDLE -1

// An argument is invalid: a null pointer, an unknown operation or a length of 0, for example.
#define FOREBAY_E_INVALID -2

// The timeout has passed, or was 0 and the request would have to wait.
#define FOREBAY_E_TIMED_OUT -3

// The queue has no event. Ask again when its descriptor is readable.
#define FOREBAY_E_AGAIN -4

// There is no class, disk or entry of that name or number.
#define FOREBAY_E_NOT_FOUND -5

// A class or group of that name exists already.
#define FOREBAY_E_EXISTS -6

// It has queued requests or contains classes, or a maximum number is reached.
#define FOREBAY_E_BUSY -7

// The class or group was removed.
#define FOREBAY_E_REMOVED -8

// The I/O properties are missing or invalid.
#define FOREBAY_E_CONFIG -9

// The file is on a disk that no entry of the properties covers, and the scheduler is strict.
#define FOREBAY_E_UNLISTED -10

// A system call failed: see `forebay_last_errno`.
#define FOREBAY_E_SYSTEM -11

// The buffer is too small. The returned length is the size that it needs.
#define FOREBAY_E_TOO_SMALL -12

// The request or deletion was cancelled.
#define FOREBAY_E_CANCELLED -13

// A callback would wait for the library's thread that runs it.
#define FOREBAY_E_DEADLOCK -14

// The library is older than the header, or has an incompatible interface.
#define FOREBAY_E_VERSION -15

// A bug in forebay. The program may continue; please report the message.
#define FOREBAY_E_INTERNAL -16

// Unlinks files at once and frees their blocks through descriptors, instead of moving them to a trash.
#define FOREBAY_DELETE_IN_PLACE 1

// Deletes in steps even on disks where deleting sends no discards.
#define FOREBAY_DELETE_ALWAYS_IN_STEPS 2

// The file is still at its path.
#define FOREBAY_DELETION_WAITING 0

// The file is being removed from its path, and the deletion can no longer be cancelled.
#define FOREBAY_DELETION_REMOVING 1

// The file is durably removed from its path.
#define FOREBAY_DELETION_REMOVED 2

// The deletion has ended, with or without an error.
#define FOREBAY_DELETION_ENDED 3

// The level of messages that need an operator's action.
#define FOREBAY_LOG_WARN 2

// The level of messages for information.
#define FOREBAY_LOG_INFO 3

// Refuses files on disks that no entry covers (`FOREBAY_E_UNLISTED`). Without it their I/O is not
// limited.
#define FOREBAY_STRICT 1

// Counts requests but lets none wait. It is for comparisons.
#define FOREBAY_UNLIMITED 2

// The size of a name in a structure, in bytes, with its NUL.
#define FOREBAY_NAME_SIZE 64

// The version of this header: 1,000,000 times the major version, plus 1,000 times the minor version,
// plus the patch.
#define FOREBAY_VERSION 1000

// Event loops can wait for permits by a descriptor.
#define FOREBAY_FEATURE_EVENTS 1

// Snapshots are available as OpenMetrics text.
#define FOREBAY_FEATURE_OPEN_METRICS 2

// Writes, flushes and reads through the page cache can be scheduled.
#define FOREBAY_FEATURE_PAGE_CACHE 4

// Files can be deleted in steps.
#define FOREBAY_FEATURE_DELETER 8

// A priority class, on one disk of its scheduler. That is the scheduler's first disk, unless
// `forebay_class_on_disk` or `forebay_class_on_file` made the handle.
typedef uint64_t forebay_class;

// Permission for one I/O now. Hold it for exactly as long as the I/O takes. Any thread may complete
// it.
typedef uint64_t forebay_permit;

// Writes to a file through the page cache, and schedules write-back of its dirty bytes in a class.
typedef uint64_t forebay_writer;

// A group of classes, which competes with classes and other groups as one class of its shares.
typedef uint64_t forebay_group;

// A scheduler: disks, each with its own budget, and the classes that share them. Functions that take a
// class also take a scheduler, and then use the class that the calling thread has entered.
typedef uint64_t forebay_scheduler;

// Upper limits of a class or a group on each disk, in addition to its shares; 0 for none.
typedef struct forebay_limits {
  // `sizeof(struct forebay_limits)`.
  size_t size;
  // Bytes per second, reads and writes together.
  uint64_t bytes_per_second;
  // Requests per second.
  uint64_t operations_per_second;
} forebay_limits;

// The options of a deleter. All fields but the size may be 0, which gives the defaults.
typedef struct forebay_deleter_options {
  // `sizeof(struct forebay_deleter_options)`.
  size_t size;
  // The most bytes freed per second; 0 for no limit but the scheduling of the class.
  uint64_t rate;
  // The most extents discarded per second; 0 for no limit.
  uint64_t commands_per_second;
  // The directory in which the trash for all files is; null for a trash in the directory of each file.
  const char *trash_in;
  // The length of `trash_in` in bytes.
  size_t trash_in_len;
  // The most files that may wait; 0 for 1,048,576.
  uint64_t files_max;
  // A sum of `FOREBAY_DELETE_...`.
  uint32_t flags;
} forebay_deleter_options;

// Deletes files in small steps, scheduled in a class.
typedef uint64_t forebay_deleter;

// A deletion that was requested. It continues after its handle is freed.
typedef uint64_t forebay_deletion;

// The progress or result of a deletion.
typedef struct forebay_deleted {
  // `sizeof(struct forebay_deleted)`.
  size_t size;
  // The number of deleted files: 1, or all files of a trash. 0 before the deletion has ended.
  uint64_t files;
  // The bytes freed in steps so far.
  uint64_t bytes;
  // The size in bytes when the file was removed from its path; 0 in the result of `forebay_deletion_wait`.
  uint64_t bytes_total;
  // The number of steps so far.
  uint64_t steps;
  // `FOREBAY_DELETION_WAITING` to `FOREBAY_DELETION_ENDED`.
  uint32_t state;
  // Whether the last file was unlinked at once instead of being freed in steps.
  uint32_t unlinked;
} forebay_deleted;

// A queue of events, for any number of waiting requests of any number of schedulers.
typedef uint64_t forebay_events;

// A request that waits for a permit. Freeing its handle cancels the request, without an event.
typedef uint64_t forebay_waiting;

// How a request ended.
typedef struct forebay_event {
  // `sizeof(struct forebay_event)`.
  size_t size;
  // The number that was passed with the request.
  uint64_t user_data;
  // The handle of the request, which is already freed.
  forebay_waiting waiting;
  // The permit; 0 after an error.
  forebay_permit permit;
  // `FOREBAY_OK`, or an error, whose message is the last error of the calling thread.
  int code;
} forebay_event;

// Receives a message of `len` bytes of UTF-8, without a NUL at its end. A thread of the library calls
// it, and holds no lock while it does.
typedef void (*forebay_log_callback)(void *context, int level, const char *text, size_t len);

// A disk with its rates. The vendor's figures are enough to begin with.
typedef struct forebay_disk {
  // `sizeof(struct forebay_disk)`.
  size_t size;
  // Its name, in UTF-8.
  const char *name;
  // The length of `name` in bytes.
  size_t name_len;
  // A directory on it, or its block device. Null if no file has to be assigned to it by its path.
  const char *mountpoint;
  // The length of `mountpoint` in bytes.
  size_t mountpoint_len;
  // Small reads per second.
  uint64_t read_iops;
  // Small writes per second.
  uint64_t write_iops;
  // Bytes read per second.
  uint64_t read_bandwidth;
  // Bytes written per second.
  uint64_t write_bandwidth;
} forebay_disk;

// The counters of all disks together.
typedef struct forebay_snapshot_info {
  // `sizeof(struct forebay_snapshot_info)`.
  size_t size;
  // The time since the process first used forebay. Divide the growth of other counters by its growth to
  // get rates.
  uint64_t uptime_ns;
  // The number of disks, including the one for files that no entry covers.
  uint64_t disks;
  // The number of classes, each of which is on all disks.
  uint64_t classes;
  // The number of look-ups of files that no entry covers.
  uint64_t unlisted_opens;
  // The number of broken invariants found in this process. Each is a bug in forebay.
  uint64_t bugs;
} forebay_snapshot_info;

// The values of all counters of a scheduler at one moment.
typedef uint64_t forebay_snapshot;

// One disk.
typedef struct forebay_disk_stats {
  // `sizeof(struct forebay_disk_stats)`.
  size_t size;
  // Its name: the one that the program gave, or its first mountpoint. It is cut at
  // `FOREBAY_NAME_SIZE`; `forebay_snapshot_disk_name` has all of it.
  char name[FOREBAY_NAME_SIZE];
  // The length of the whole name in bytes.
  size_t name_len;
  // The limit of the disk time of requests in the disk, in nanoseconds; 0 if there is none.
  uint64_t effective_goal_ns;
  // The disk time of the requests in the disk now.
  uint64_t in_flight_ns;
  // The disk's speed when requests last queued, in thousandths of its configured rates. `UINT64_MAX`
  // before that was measured.
  uint64_t speed_permille;
  // Bytes that the disk read without a permit.
  uint64_t unscheduled_read;
  // Bytes that the disk wrote without a permit.
  uint64_t unscheduled_written;
} forebay_disk_stats;

// One class on one disk. Arrays are by operation: `FOREBAY_READ` to `FOREBAY_FLUSH`.
typedef struct forebay_class_stats {
  // `sizeof(struct forebay_class_stats)`.
  size_t size;
  // Its name, cut at `FOREBAY_NAME_SIZE`; `forebay_snapshot_class_name` has all of it.
  char name[FOREBAY_NAME_SIZE];
  // The length of the whole name in bytes.
  size_t name_len;
  // Its shares.
  uint32_t shares;
  // Requests in the queue now.
  uint32_t queued;
  // Requests in the disk now.
  uint32_t in_disk;
  // Permits that have been held for far longer than the disk should take.
  uint32_t held_long;
  // Requests that were completed without an error.
  uint64_t operations[4];
  // The bytes of those requests.
  uint64_t bytes[4];
  // Requests that were completed with an error.
  uint64_t errors;
  // Requests that were cancelled in the queue.
  uint64_t cancelled;
  // The disk time that it has used.
  uint64_t consumption_ns;
  // The time for which its requests waited while none of them was in the disk.
  uint64_t starved_ns;
  // The time for which an upper limit throttled it.
  uint64_t limited_ns;
  // The median time in the queue.
  uint64_t queue_p50_ns;
  // The 99th percentile of the time in the queue.
  uint64_t queue_p99_ns;
  // The median time in the disk.
  uint64_t disk_p50_ns;
  // The 99th percentile of the time in the disk.
  uint64_t disk_p99_ns;
} forebay_class_stats;

// Receives the result of a request: `FOREBAY_OK` and a granted permit, or an error whose message is the
// last error of the calling thread. It is called once, by a thread of the library or by a thread that
// completes a permit, which holds no lock. It may call all functions. One that would wait for the thread
// that runs it returns `FOREBAY_E_DEADLOCK`. Requests that it gives room are called back after it.
typedef void (*forebay_admit_callback_fn)(void *context, int code, forebay_permit permit);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Waits until the scheduler grants `op` of `len` bytes to the class. It waits for `timeout_ns`
// nanoseconds at most, not at all if that is 0, and without limit if it is `FOREBAY_FOREVER`. After
// the timeout it returns `FOREBAY_E_TIMED_OUT`. `class` may be a scheduler.
int forebay_admit(forebay_class class_,
                  int op,
                  uint64_t len,
                  int64_t timeout_ns,
                  forebay_permit *permit);

// `forebay_admit` on the disk that holds the file of `fd`, whatever the disk of the class is. Disks
// that seek price the request by its `offset` in bytes, or by `FOREBAY_OFFSET_UNKNOWN`. Each call looks
// up the disk; for many calls use `forebay_class_on_file`.
int forebay_admit_file(forebay_class class_,
                       int fd,
                       int op,
                       int64_t offset,
                       uint64_t len,
                       int64_t timeout_ns,
                       forebay_permit *permit);

// `forebay_admit_file` for the first part of a large request, which costs the disk no more than its
// effective goal. `part` receives the length of the part in bytes. Do the I/O of that part under the
// permit, and ask again for the rest.
int forebay_admit_part(forebay_class class_,
                       int fd,
                       int op,
                       int64_t offset,
                       uint64_t len,
                       int64_t timeout_ns,
                       forebay_permit *permit,
                       uint64_t *part);

// `forebay_admit` for a thread that holds `permit` and completes it only after this nested I/O. The
// nested request waits for its turn, but not for room in the window, which may be full of permits
// whose holders wait.
int forebay_admit_nested(forebay_permit permit,
                         forebay_class class_,
                         int op,
                         uint64_t len,
                         int64_t timeout_ns,
                         forebay_permit *nested);

// Completes a permit after its I/O, and frees it. `result` is the return value of `pread` or a similar
// call: the bytes that were transferred, or a negative number. That is counted as an error, and its
// duration is not used as a measurement of the disk.
int forebay_complete(forebay_permit permit,
                     int64_t result);

// Makes a writer in `class` for the file of `fd`, which must be open for writing. The caller still
// owns the descriptor, and closes it after it has freed the writer. At most `dirty_max` bytes of the
// file are dirty; 0 means 16 MiB.
int forebay_writer_new(forebay_class class_,
                       int fd,
                       uint64_t dirty_max,
                       forebay_writer *writer);

// Writes all of `data` at `offset`, or at `FOREBAY_OFFSET_NEXT`. Waits while `dirty_max` bytes of the
// file are dirty. After an error a part of the data may have been written.
int forebay_write(forebay_writer writer,
                  const void *data,
                  size_t len,
                  int64_t offset);

// Starts write-back of the dirty bytes, scheduled in the class, and does not wait for its end.
int forebay_write_back(forebay_writer writer);

// Sets how many bytes of the file may be dirty before write-back begins: 0 by default, and half of
// `dirty_max` at most. Up to that number, freeing the writer does not start write-back either. Flushes
// still write back all dirty bytes. Use this for files that are often deleted before they are flushed,
// such as logs.
int forebay_writer_set_write_back_after(forebay_writer writer,
                                        uint64_t bytes);

// Makes the writes durable: first it writes back the dirty bytes in parts, scheduled in the class, then
// it flushes. It fails as long as earlier writes could not be written back, even if another call has
// reported that error. `flags` is 0 or `FOREBAY_SYNC_ALL`.
int forebay_writer_sync(forebay_writer writer,
                        uint32_t flags);

// Gets the number of bytes that this writer wrote and that are not on the disk yet.
int forebay_writer_dirty(forebay_writer writer, uint64_t *dirty);

// `forebay_writer_sync` for a file that the program writes without a `forebay_writer`.
int forebay_sync(forebay_class class_, int fd, uint32_t flags);

// Reads `len` bytes of the file of `fd` at `offset` into `data`, through the page cache. Pages in
// memory need no permit; the others wait for permits of the class. `done` receives the number of bytes
// read, which is `len` unless the file ends before that.
int forebay_read(forebay_class class_,
                 int fd,
                 void *data,
                 size_t len,
                 uint64_t offset,
                 size_t *done);

// Reads `len` bytes of the file of `fd` from `offset` on into the page cache, for example before they
// are read through a memory mapping. Each part waits for a permit of the class. For the whole file pass
// 0 and `UINT64_MAX`.
int forebay_prefetch(forebay_class class_,
                     int fd,
                     uint64_t offset,
                     uint64_t len);

// Adds a class with `shares` to `parent`, a scheduler or a group, on all disks.
int forebay_class_add(uint64_t parent,
                      const char *name,
                      size_t name_len,
                      uint32_t shares,
                      forebay_class *class_);

// Adds a group with `shares` to `parent`, a scheduler or a group, on all disks.
int forebay_group_add(uint64_t parent,
                      const char *name,
                      size_t name_len,
                      uint32_t shares,
                      forebay_group *group);

// Finds the class of that name. `FOREBAY_E_NOT_FOUND` if there is none.
int forebay_class_find(forebay_scheduler scheduler,
                       const char *name,
                       size_t name_len,
                       forebay_class *class_);

// Makes a handle of the same class on the disk of that name. Its permits are charged to that disk.
int forebay_class_on_disk(forebay_class class_,
                          const char *disk,
                          size_t disk_len,
                          forebay_class *on_disk);

// Makes a handle of the same class on the disk that holds the file of `fd`.
int forebay_class_on_file(forebay_class class_, int fd, forebay_class *on_disk);

// Removes a class or a group from all disks. Its handles still have to be freed; other calls with
// them return `FOREBAY_E_REMOVED`. Returns `FOREBAY_E_BUSY` while it has queued requests or contains
// classes.
int forebay_remove(uint64_t class_or_group);

// Gets the present shares of a class or a group.
int forebay_get_shares(uint64_t class_or_group, uint32_t *shares);

// Changes the shares of a class or a group, on all disks, from the next request on.
int forebay_set_shares(uint64_t class_or_group, uint32_t shares);

// Gets the present upper limits of a class or a group.
int forebay_get_limits(uint64_t class_or_group, struct forebay_limits *limits);

// Changes the upper limits of a class or a group, on each disk.
int forebay_set_limits(uint64_t class_or_group, const struct forebay_limits *limits);

// Makes this the class of the calling thread until it leaves it: calls on the scheduler that name no
// class use it. A thread may enter several classes; the last one applies. Leave the class before its
// handle is freed.
int forebay_class_enter(forebay_class class_);

// Leaves the class that the calling thread last entered with this handle.
int forebay_class_leave(forebay_class class_);

// The name of a code, such as "FOREBAY_E_HANDLE"; "unknown" for others.
const char *forebay_code_name(int code);

// Makes a deleter in `class`, for files on all disks. `options` may be null. The deleter raises the
// shares of the class as its backlog nears the maximum, so give it a class of its own.
int forebay_deleter_new(forebay_class class_,
                        const struct forebay_deleter_options *options,
                        forebay_deleter *deleter);

// Deletes the file at `path`. Returns at once; `forebay_deletion_wait` reports errors. `deletion` may be
// null.
int forebay_delete(forebay_deleter deleter,
                   const char *path,
                   size_t path_len,
                   forebay_deletion *deletion);

// Deletes files that earlier processes left in the trash of the directory `dir`. Call it when the
// program starts. `deletion` may be null.
int forebay_deleter_empty_trash(forebay_deleter deleter,
                                const char *dir,
                                size_t dir_len,
                                forebay_deletion *deletion);

// Waits until all requested deletions have ended. Call it when the program ends.
int forebay_deleter_drain(forebay_deleter deleter);

// Waits until the file is deleted and its blocks are freed. `deleted` may be null.
int forebay_deletion_wait(forebay_deletion deletion, struct forebay_deleted *deleted);

// Waits until the file is durably removed from its path: it does not come back. Its blocks are freed
// later.
int forebay_deletion_wait_removed(forebay_deletion deletion);

// Gets the progress of a deletion.
int forebay_deletion_progress(forebay_deletion deletion, struct forebay_deleted *progress);

// Cancels the deletion if the file is still at its path; else returns `FOREBAY_E_BUSY`. A cancelled
// deletion ends with `FOREBAY_E_CANCELLED`.
int forebay_deletion_cancel(forebay_deletion deletion);

// Returns the message of the calling thread's last error, which ends with a NUL. It is empty before the
// first error, and valid until the thread's next one. `len` receives its length in bytes without the
// NUL, and may be null.
const char *forebay_last_error(size_t *len);

// Returns the `errno` of the calling thread's last error; 0 if it came from no system call.
int forebay_last_errno(void);

// Makes a queue of events. When it is freed, the permits in it end, and so does each permit that is
// later granted to one of its waiting requests.
int forebay_events_new(forebay_events *events);

// Gets the descriptor that is readable while the queue has events, for `poll` and `epoll`. The program
// must not read or close it. The library closes it when the queue is freed.
int forebay_events_fd(forebay_events events,
                      int *fd);

// Takes the first event out of the queue. Returns `FOREBAY_E_AGAIN` if there is none.
int forebay_events_next(forebay_events events, struct forebay_event *event);

// Frees a handle of any kind. A permit ends as if its I/O had succeeded, a waiting request is
// cancelled, and write-back of a writer's dirty bytes begins (see `forebay_writer_set_write_back_after`).
// Classes, groups and deletions continue to exist without a handle. A scheduler ends when all handles
// of objects that were made with it are freed.
int forebay_free(uint64_t handle);

// Sets the callback that receives log messages of all schedulers of the process, such as disks without
// an entry, unscheduled I/O and slow requests. Without a callback nothing is logged. Null removes it; a
// call that is running may still return after that.
int forebay_set_log(forebay_log_callback callback,
                    void *context);

// Makes a scheduler for the disks in the file of I/O properties at `path`, which `forebay tune` writes.
// `flags` is a sum of `FOREBAY_STRICT` and `FOREBAY_UNLIMITED`, or 0.
int forebay_scheduler_from_file(const char *path,
                                size_t path_len,
                                uint32_t flags,
                                forebay_scheduler *scheduler);

// Makes a scheduler for `count` disks with the given rates. All structures have the `size` of the first.
int forebay_scheduler_from_rates(const struct forebay_disk *disks,
                                 size_t count,
                                 uint32_t flags,
                                 forebay_scheduler *scheduler);

// Reloads the figures of the disks from the file of I/O properties at `path`, without stopping I/O.
int forebay_scheduler_reload(forebay_scheduler scheduler, const char *path, size_t path_len);

// Takes a snapshot of all counters. `info` may be null. It takes some locks, so do not call it for each
// request.
int forebay_snapshot_take(forebay_scheduler scheduler,
                          struct forebay_snapshot_info *info,
                          forebay_snapshot *snapshot);

// Gets the disk of that number, counted from 0. Returns `FOREBAY_E_NOT_FOUND` after the last.
int forebay_snapshot_disk(forebay_snapshot snapshot,
                          uint64_t disk,
                          struct forebay_disk_stats *stats);

// Gets the class of that number on a disk, both counted from 0. Classes are in the order in which they
// were added. Returns `FOREBAY_E_NOT_FOUND` after the last.
int forebay_snapshot_class(forebay_snapshot snapshot,
                           uint64_t disk,
                           uint64_t class_,
                           struct forebay_class_stats *stats);

// Writes the whole name of the disk of that number to `text`, which has `size` bytes, without a NUL at the
// end. `len` receives its length in bytes. If it does not fit, `text` is not written and
// `FOREBAY_E_TOO_SMALL` is returned.
int forebay_snapshot_disk_name(forebay_snapshot snapshot,
                               uint64_t disk,
                               char *text,
                               size_t size,
                               size_t *len);

// Writes the whole name of the class of that number on a disk, as `forebay_snapshot_disk_name` does.
int forebay_snapshot_class_name(forebay_snapshot snapshot,
                                uint64_t disk,
                                uint64_t class_,
                                char *text,
                                size_t size,
                                size_t *len);

// Writes all metrics as OpenMetrics text to `text`, which has `size` bytes, without a NUL at the end.
// `len` receives the length of the text in bytes. If it does not fit, `text` is not written and
// `FOREBAY_E_TOO_SMALL` is returned.
int forebay_snapshot_openmetrics(forebay_scheduler scheduler,
                                 char *text,
                                 size_t size,
                                 size_t *len);

// Returns the version of the library, in the form of `FOREBAY_VERSION`.
uint32_t forebay_version(void);

// Returns the features of the library: a sum of `FOREBAY_FEATURE_...`.
uint64_t forebay_features(void);

// Checks that the library fits a program that was compiled with a header of `version`. Call it once,
// with `FOREBAY_VERSION`. Returns `FOREBAY_E_VERSION` if the library is older or has another major
// version. Before 1.0 another minor version does not fit either.
int forebay_check_version(uint32_t version);

// `forebay_admit` without waiting. If the permit is granted at once, it returns `FOREBAY_OK` and the
// permit, and does not call `callback`. Otherwise it returns `FOREBAY_PENDING` and a handle of the
// waiting request, and `callback` is called later, possibly before this function returns.
int forebay_admit_callback(forebay_class class_,
                           int op,
                           uint64_t len,
                           forebay_admit_callback_fn callback,
                           void *context,
                           forebay_permit *permit,
                           forebay_waiting *waiting);

// `forebay_admit_callback` that puts an event with the number `user_data` into `events`, instead of
// calling a function.
int forebay_admit_event(forebay_class class_,
                        int op,
                        uint64_t len,
                        forebay_events events,
                        uint64_t user_data,
                        forebay_permit *permit,
                        forebay_waiting *waiting);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FOREBAY_H */
