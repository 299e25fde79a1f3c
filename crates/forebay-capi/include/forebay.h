/* libforebay: a userspace disk I/O scheduler for storage engines. docs/c-api.md says how to use it.
 *
 * Made of crates/forebay-capi/src by `cargo run -p generate -- header --write`: not edited by hand.
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

// A discard: the length of what is deleted.
#define FOREBAY_DISCARD 2

// A flush, whose length may be 0.
#define FOREBAY_FLUSH 3

// A time without end. No other is below 0.
#define FOREBAY_FOREVER -1

// No offset is known. No other is below 0.
#define FOREBAY_OFFSET_UNKNOWN -1

// With all attributes (`fsync`), not only those that are needed to read it back (`fdatasync`).
#define FOREBAY_SYNC_ALL 1

// Behind what was written last; with `O_APPEND` at the end of the file. No other offset is below 0.
#define FOREBAY_OFFSET_NEXT -1

// It is done.
#define FOREBAY_OK 0

// It waits. A callback or an event reports its end.
#define FOREBAY_PENDING 1

// The handle is 0, freed, of another kind, of another process, or of the parent of a forked child.
#define FOREBAY_E_HANDLE -1

// An argument that is not allowed: a null pointer, an unknown operation, a length of 0.
#define FOREBAY_E_INVALID -2

// The time that was given has passed, or was 0 and it would have to wait.
#define FOREBAY_E_TIMED_OUT -3

// Nothing is there now; ask again when the descriptor is readable.
#define FOREBAY_E_AGAIN -4

// There is no class, disk or entry of that name or number.
#define FOREBAY_E_NOT_FOUND -5

// A class or group has that name.
#define FOREBAY_E_EXISTS -6

// It has work queued or classes in it, or there is no room for more.
#define FOREBAY_E_BUSY -7

// The class or group was removed.
#define FOREBAY_E_REMOVED -8

// The properties are missing or not as they must be.
#define FOREBAY_E_CONFIG -9

// The file is on a disk that no entry of the properties covers, and the scheduler is strict.
#define FOREBAY_E_UNLISTED -10

// The system refused something: see `forebay_last_errno`.
#define FOREBAY_E_SYSTEM -11

// The buffer is too small; its length says what is needed.
#define FOREBAY_E_TOO_SMALL -12

// It was cancelled.
#define FOREBAY_E_CANCELLED -13

// A callback, which a thread of the library runs, would wait for that thread.
#define FOREBAY_E_DEADLOCK -14

// The library is older than the header, or has another interface.
#define FOREBAY_E_VERSION -15

// A bug in forebay. It is safe to go on; please report the message.
#define FOREBAY_E_INTERNAL -16

// Files are unlinked at once and freed by their descriptors, instead of being moved into a trash.
#define FOREBAY_DELETE_IN_PLACE 1

// In steps also where nothing is discarded.
#define FOREBAY_DELETE_ALWAYS_IN_STEPS 2

// The file is where it was.
#define FOREBAY_DELETION_WAITING 0

// It is being moved away, and cannot be cancelled any more.
#define FOREBAY_DELETION_REMOVING 1

// It is gone from its path, durably.
#define FOREBAY_DELETION_REMOVED 2

// It is over, well or not.
#define FOREBAY_DELETION_ENDED 3

// An operator should do something about it.
#define FOREBAY_LOG_WARN 2

// An operator may want to know.
#define FOREBAY_LOG_INFO 3

// Files on disks that no entry covers are refused (`FOREBAY_E_UNLISTED`), instead of belonging to a
// disk that nothing limits.
#define FOREBAY_STRICT 1

// All is counted and nothing waits: to compare with.
#define FOREBAY_UNLIMITED 2

// Bytes of a name that structures have room for, with a NUL.
#define FOREBAY_NAME_SIZE 64

// The version of this header: major times 1,000,000, minor times 1,000, patch.
#define FOREBAY_VERSION 1000

// Threads and event loops can wait for permits by a descriptor.
#define FOREBAY_FEATURE_EVENTS 1

// Snapshots can be had as OpenMetrics text.
#define FOREBAY_FEATURE_OPEN_METRICS 2

// Writes, flushes and reads through the page cache.
#define FOREBAY_FEATURE_PAGE_CACHE 4

// Files are deleted in steps.
#define FOREBAY_FEATURE_DELETER 8

// A priority class, on one disk of its scheduler: the first, unless it was got by another way.
typedef uint64_t forebay_class;

// The permission to do one I/O now. Hold it for exactly as long as the I/O takes; any thread may
// complete it.
typedef uint64_t forebay_permit;

// Writes to a file through the page cache, and has what is dirty written back in the turn of a class.
typedef uint64_t forebay_writer;

// A group of classes, which competes with classes and other groups as one class of its shares.
typedef uint64_t forebay_group;

// A scheduler: disks, each with one budget, and the classes that share them. Where a function takes
// a class, a scheduler stands for the class that the calling thread has entered.
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

// How a deleter deletes; all zeros but the size is the usual way.
typedef struct forebay_deleter_options {
  // `sizeof(struct forebay_deleter_options)`.
  size_t size;
  // Bytes that are freed per second at most; 0 for what the class lets through.
  uint64_t rate;
  // Extents that are discarded per second at most; 0 for no limit.
  uint64_t commands_per_second;
  // The directory of the trash of all files; null for a trash in the directory of each file.
  const char *trash_in;
  // Bytes of that.
  size_t trash_in_len;
  // Files that may wait; 0 for 1,048,576.
  uint64_t files_max;
  // A sum of `FOREBAY_DELETE_...`.
  uint32_t flags;
} forebay_deleter_options;

// Deletes files at the pace of a class.
typedef uint64_t forebay_deleter;

// What was asked to be deleted. It goes on when the handle is freed.
typedef uint64_t forebay_deletion;

// How far a deletion is, or what came of it.
typedef struct forebay_deleted {
  // `sizeof(struct forebay_deleted)`.
  size_t size;
  // Files: 1, or what was found in a trash; 0 before it ended.
  uint64_t files;
  // Bytes that were freed in steps.
  uint64_t bytes;
  // Bytes that it had when it was removed from its path; 0 of what has ended.
  uint64_t bytes_total;
  // Steps that it took.
  uint64_t steps;
  // `FOREBAY_DELETION_WAITING` to `FOREBAY_DELETION_ENDED`.
  uint32_t state;
  // Whether the last file was unlinked at once instead of being freed in steps.
  uint32_t unlinked;
} forebay_deleted;

// A queue of events, for any number of requests that wait, of any number of schedulers.
typedef uint64_t forebay_events;

// A request that waits for a permit. Freeing it takes the request back, without an event.
typedef uint64_t forebay_waiting;

// How a request ended.
typedef struct forebay_event {
  // `sizeof(struct forebay_event)`.
  size_t size;
  // What was given with the request.
  uint64_t user_data;
  // The request, whose handle is freed.
  forebay_waiting waiting;
  // The permit; 0 if there is none.
  forebay_permit permit;
  // `FOREBAY_OK`, or an error, whose message is the last error of the calling thread.
  int code;
} forebay_event;

// Receives a message of `len` bytes of UTF-8 that no NUL ends. It is called by a thread of the
// library, without any lock.
typedef void (*forebay_log_callback)(void *context, int level, const char *text, size_t len);

// A disk by its rates: the vendor's are enough to start with.
typedef struct forebay_disk {
  // `sizeof(struct forebay_disk)`.
  size_t size;
  // Its name, in UTF-8.
  const char *name;
  // Bytes of that.
  size_t name_len;
  // A directory on it, or its block device; null if files need not be found on it.
  const char *mountpoint;
  // Bytes of that.
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

// What was counted of all disks.
typedef struct forebay_snapshot_info {
  // `sizeof(struct forebay_snapshot_info)`.
  size_t size;
  // For how long the process had used forebay: rates are by what this grew.
  uint64_t uptime_ns;
  // Disks, the one of files that no entry covers among them.
  uint64_t disks;
  // Classes, which are on each disk.
  uint64_t classes;
  // Files that were looked up and that no entry covers.
  uint64_t unlisted_opens;
  // Impossible states that were met in this process: each is a bug in forebay.
  uint64_t bugs;
} forebay_snapshot_info;

// Everything that a scheduler had counted at one moment.
typedef uint64_t forebay_snapshot;

// One disk.
typedef struct forebay_disk_stats {
  // `sizeof(struct forebay_disk_stats)`.
  size_t size;
  // Its name: the first mountpoint, or what it was given; cut at `FOREBAY_NAME_SIZE`.
  char name[FOREBAY_NAME_SIZE];
  // Bytes of the whole name.
  size_t name_len;
  // How much may wait in the disk, in nanoseconds of its time; 0 if nothing binds.
  uint64_t effective_goal_ns;
  // Disk time of what is in the disk now.
  uint64_t in_flight_ns;
  // Thousandths of what its figures say that it did when work last waited; `UINT64_MAX` before.
  uint64_t speed_permille;
  // Bytes that the disk read, and for which there was no permit.
  uint64_t unscheduled_read;
  // Bytes that the disk wrote, and for which there was no permit.
  uint64_t unscheduled_written;
} forebay_disk_stats;

// One class on one disk. Arrays are by operation: `FOREBAY_READ` to `FOREBAY_FLUSH`.
typedef struct forebay_class_stats {
  // `sizeof(struct forebay_class_stats)`.
  size_t size;
  // Its name, cut at `FOREBAY_NAME_SIZE`.
  char name[FOREBAY_NAME_SIZE];
  // Bytes of the whole name.
  size_t name_len;
  // Its shares.
  uint32_t shares;
  // Requests that wait now.
  uint32_t queued;
  // Requests in the disk now.
  uint32_t in_disk;
  // Permits that are held for far longer than the disk should take.
  uint32_t held_long;
  // Requests that were completed without an error.
  uint64_t operations[4];
  // Bytes of those.
  uint64_t bytes[4];
  // Requests that were completed with an error.
  uint64_t errors;
  // Requests that were cancelled while they waited.
  uint64_t cancelled;
  // Disk time that it had, in nanoseconds.
  uint64_t consumption_ns;
  // Time for which requests waited and none of the class was in the disk.
  uint64_t starved_ns;
  // Time for which an upper limit kept it back.
  uint64_t limited_ns;
  // Half of the requests waited no longer.
  uint64_t queue_p50_ns;
  // 99 of 100 requests waited no longer.
  uint64_t queue_p99_ns;
  // Half of the requests were in the disk no longer.
  uint64_t disk_p50_ns;
  // 99 of 100 requests were in the disk no longer.
  uint64_t disk_p99_ns;
} forebay_class_stats;

// Receives how a request ended: `code` is `FOREBAY_OK` and `permit` granted, or an error, whose
// message is the last error of the calling thread. It is called once, without any lock, by a thread
// of the library or one that gives room back. It may call all functions; what would wait for the
// thread that runs it is `FOREBAY_E_DEADLOCK`. If it gives room back, who gets that is called after it.
typedef void (*forebay_admit_callback_fn)(void *context, int code, forebay_permit permit);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Waits until the disk can take `op` of `len` bytes and it is the class's turn; for `timeout_ns`
// nanoseconds at most, or at all (`FOREBAY_FOREVER`), or not (0): then `FOREBAY_E_TIMED_OUT`.
// `class` may be a scheduler.
int forebay_admit(forebay_class class_,
                  int op,
                  uint64_t len,
                  int64_t timeout_ns,
                  forebay_permit *permit);

// `forebay_admit` on the disk of the file of `fd`, whatever the disk of the class is. On a disk that
// seeks say where: `offset`, or `FOREBAY_OFFSET_UNKNOWN`. Each call looks the disk up; for many, see
// `forebay_class_on_file`.
int forebay_admit_file(forebay_class class_,
                       int fd,
                       int op,
                       int64_t offset,
                       uint64_t len,
                       int64_t timeout_ns,
                       forebay_permit *permit);

// `forebay_admit_file` for the first bytes of a large request: as many as cost the disk no more than
// its effective goal. `part` is how many. Do these under the permit, and ask again for the rest.
int forebay_admit_part(forebay_class class_,
                       int fd,
                       int op,
                       int64_t offset,
                       uint64_t len,
                       int64_t timeout_ns,
                       forebay_permit *permit,
                       uint64_t *part);

// `forebay_admit` for an owner of `permit` who completes it only after the I/O of this one:
// it waits for its turn, but not for room in the disk, which may be full of permits whose holders
// wait.
int forebay_admit_nested(forebay_permit permit,
                         forebay_class class_,
                         int op,
                         uint64_t len,
                         int64_t timeout_ns,
                         forebay_permit *nested);

// The I/O has ended. `result` is what `pread` and the like return: the bytes that were moved, or a
// negative number, which is counted as an error and whose duration says nothing about the disk.
// Frees the permit.
int forebay_complete(forebay_permit permit, int64_t result);

// A writer to the file of `fd`, which is open for writing, in the turn of `class`. The descriptor
// stays the caller's, who closes it after the writer is freed. At most `dirty_max` bytes of the file
// are dirty; 0 for 16 MiB.
int forebay_writer_new(forebay_class class_,
                       int fd,
                       uint64_t dirty_max,
                       forebay_writer *writer);

// Writes all of `data` at `offset`, or at `FOREBAY_OFFSET_NEXT`; waits while too much is dirty. After an
// error a part of it may have been written.
int forebay_write(forebay_writer writer,
                  const void *data,
                  size_t len,
                  int64_t offset);

// Hands over what is dirty, to be written back in the class's turn, and does not wait for it.
int forebay_write_back(forebay_writer writer);

// From now on nothing is written back while at most `bytes` of the file are dirty, nor when the writer is
// freed; 0 unless set, and half of `dirty_max` at most. Flushes still write back all. This is for files that are
// often deleted before anybody flushes them, such as logs.
int forebay_writer_set_write_back_after(forebay_writer writer,
                                        uint64_t bytes);

// Makes what was written durable: the dirt first, in parts of the class, then the flush. Fails while
// bytes that were written before could not be written back, even if another call has reported it. `flags` is 0 or
// `FOREBAY_SYNC_ALL`.
int forebay_writer_sync(forebay_writer writer,
                        uint32_t flags);

// Bytes of the file that were written by the writer and are not on the disk yet.
int forebay_writer_dirty(forebay_writer writer, uint64_t *dirty);

// `forebay_writer_sync` for a file that the program writes without a writer.
int forebay_sync(forebay_class class_, int fd, uint32_t flags);

// Reads into `data` what the file of `fd` has from `offset` on, through the page cache: what is in
// memory costs nothing, for the rest a permit of the class is waited for. `done` is how many bytes:
// `len` unless the file ends before.
int forebay_read(forebay_class class_,
                 int fd,
                 void *data,
                 size_t len,
                 uint64_t offset,
                 size_t *done);

// Brings what the file of `fd` has of the `len` bytes from `offset` on into the page cache, in parts
// that each have a permit of the class, so that who reads it through a mapping finds it there. For the
// whole file give 0 and `UINT64_MAX`.
int forebay_prefetch(forebay_class class_,
                     int fd,
                     uint64_t offset,
                     uint64_t len);

// Adds a class of `shares` to `parent`, a scheduler or a group, on all disks.
int forebay_class_add(uint64_t parent,
                      const char *name,
                      size_t name_len,
                      uint32_t shares,
                      forebay_class *class_);

// Adds a group of `shares` to `parent`, a scheduler or a group, on all disks.
int forebay_group_add(uint64_t parent,
                      const char *name,
                      size_t name_len,
                      uint32_t shares,
                      forebay_group *group);

// A handle of the class of that name; `FOREBAY_E_NOT_FOUND` if there is none.
int forebay_class_find(forebay_scheduler scheduler,
                       const char *name,
                       size_t name_len,
                       forebay_class *class_);

// A handle of the same class on the disk of that name, by which its permits are charged.
int forebay_class_on_disk(forebay_class class_,
                          const char *disk,
                          size_t disk_len,
                          forebay_class *on_disk);

// A handle of the same class on the disk that the file of `fd` is on.
int forebay_class_on_file(forebay_class class_, int fd, forebay_class *on_disk);

// Removes a class or a group from all disks; its handles stay until they are freed, and are refused
// with `FOREBAY_E_REMOVED`. `FOREBAY_E_BUSY` while it has work queued or classes in it.
int forebay_remove(uint64_t class_or_group);

// The present shares of a class or a group.
int forebay_get_shares(uint64_t class_or_group, uint32_t *shares);

// Changes the shares of a class or a group, on all disks, from the next request on.
int forebay_set_shares(uint64_t class_or_group, uint32_t shares);

// The present upper limits of a class or a group.
int forebay_get_limits(uint64_t class_or_group, struct forebay_limits *limits);

// Changes the upper limits of a class or a group, on each disk.
int forebay_set_limits(uint64_t class_or_group, const struct forebay_limits *limits);

// Makes this the class of what the calling thread does through its scheduler without naming one,
// until it leaves it. The innermost counts. Leave it before the handle is freed.
int forebay_class_enter(forebay_class class_);

// Leaves what the calling thread entered last by this handle.
int forebay_class_leave(forebay_class class_);

// The name of a code, such as "FOREBAY_E_HANDLE"; "unknown" for others.
const char *forebay_code_name(int code);

// A deleter in the turn of `class`, on whichever disk each file is. `options` may be null. The
// class's shares rise as the backlog nears a ceiling: give it a class of its own.
int forebay_deleter_new(forebay_class class_,
                        const struct forebay_deleter_options *options,
                        forebay_deleter *deleter);

// Deletes the file at `path`. Returns at once; `forebay_deletion_wait` reports what failed.
// `deletion` may be null.
int forebay_delete(forebay_deleter deleter,
                   const char *path,
                   size_t path_len,
                   forebay_deletion *deletion);

// Deletes what earlier processes left in the trash directory in `dir`: for when a program starts.
// `deletion` may be null.
int forebay_deleter_empty_trash(forebay_deleter deleter,
                                const char *dir,
                                size_t dir_len,
                                forebay_deletion *deletion);

// Waits until nothing waits for the deleter any more: for when a program ends.
int forebay_deleter_drain(forebay_deleter deleter);

// Waits until the file is deleted and its blocks are free. `deleted` may be null.
int forebay_deletion_wait(forebay_deletion deletion, struct forebay_deleted *deleted);

// Waits until the file is gone from its path, durably: it does not come back, and its blocks are
// freed sooner or later.
int forebay_deletion_wait_removed(forebay_deletion deletion);

// How far it is.
int forebay_deletion_progress(forebay_deletion deletion, struct forebay_deleted *progress);

// Keeps the file, if nothing was done with it yet; else `FOREBAY_E_BUSY`. What was cancelled ends
// with `FOREBAY_E_CANCELLED`.
int forebay_deletion_cancel(forebay_deletion deletion);

// The message of the last error of the calling thread, which ends with a NUL; empty before any. It
// is valid until the thread's next error. `len` may be null, and is the length without the NUL.
const char *forebay_last_error(size_t *len);

// The system's number (`errno`) of the last error of the calling thread; 0 if it has none.
int forebay_last_errno(void);

// Makes a queue of events. When it is freed, permits in it end; so do those that are granted to
// requests that still wait for it.
int forebay_events_new(forebay_events *events);

// The descriptor that is readable while there are events: for `poll` and `epoll`, never to be read
// or closed. The library closes it when the queue is freed.
int forebay_events_fd(forebay_events events, int *fd);

// Takes the first event out; `FOREBAY_E_AGAIN` if there is none.
int forebay_events_next(forebay_events events, struct forebay_event *event);

// Frees a handle of whatever kind. A permit ends as done, a request that waits gives its place back,
// dirt of a buffered writer is handed over; classes, groups and deletions go on without a handle. A
// scheduler ends when nothing that was made with it has a handle any more.
int forebay_free(uint64_t handle);

// Has `callback` receive what operators should know, of all schedulers of the process: disks that
// nobody has described, unscheduled I/O, slow requests. Without one nothing is written anywhere.
// Null ends it; one that is running may still return after that.
int forebay_set_log(forebay_log_callback callback, void *context);

// A scheduler for the disks of the properties file at `path`: what `forebay tune` writes. `flags` is
// a sum of `FOREBAY_STRICT` and `FOREBAY_UNLIMITED`.
int forebay_scheduler_from_file(const char *path,
                                size_t path_len,
                                uint32_t flags,
                                forebay_scheduler *scheduler);

// A scheduler for `count` disks by their rates. All of them have the size of the first.
int forebay_scheduler_from_rates(const struct forebay_disk *disks,
                                 size_t count,
                                 uint32_t flags,
                                 forebay_scheduler *scheduler);

// Takes over the figures of the properties file at `path` while everything goes on.
int forebay_scheduler_reload(forebay_scheduler scheduler, const char *path, size_t path_len);

// Counts everything now; `info` may be null. It takes some locks: not for the hot path.
int forebay_snapshot_take(forebay_scheduler scheduler,
                          struct forebay_snapshot_info *info,
                          forebay_snapshot *snapshot);

// The disk of that number, from 0; `FOREBAY_E_NOT_FOUND` behind the last.
int forebay_snapshot_disk(forebay_snapshot snapshot,
                          uint64_t disk,
                          struct forebay_disk_stats *stats);

// The class of that number on a disk, both from 0, in the order in which classes were added;
// `FOREBAY_E_NOT_FOUND` behind the last.
int forebay_snapshot_class(forebay_snapshot snapshot,
                           uint64_t disk,
                           uint64_t class_,
                           struct forebay_class_stats *stats);

// What was counted as OpenMetrics text, in `text` of `size` bytes; no NUL ends it. `len` is how many
// there are, also of `FOREBAY_E_TOO_SMALL`: then `text` has none of them.
int forebay_snapshot_openmetrics(forebay_scheduler scheduler,
                                 char *text,
                                 size_t size,
                                 size_t *len);

// The version of the library, in the form of `FOREBAY_VERSION`.
uint32_t forebay_version(void);

// What the library can do: a sum of `FOREBAY_FEATURE_...`.
uint64_t forebay_features(void);

// Whether the library fits a program that was compiled with a header of `version`: call it once,
// with `FOREBAY_VERSION`. `FOREBAY_E_VERSION` if the library is older, or has another major version;
// before 1.0 also if the minor version is another.
int forebay_check_version(uint32_t version);

// `forebay_admit` that does not wait: returns `FOREBAY_OK` and a permit if it is granted at once, and
// calls nobody; else `FOREBAY_PENDING` and what waits, and `callback` is called later, perhaps before
// this returns.
int forebay_admit_callback(forebay_class class_,
                           int op,
                           uint64_t len,
                           forebay_admit_callback_fn callback,
                           void *context,
                           forebay_permit *permit,
                           forebay_waiting *waiting);

// `forebay_admit_callback` that puts an event into `events` instead of calling, with the number
// `user_data`.
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
