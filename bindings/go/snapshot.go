package forebay

// #include <forebay.h>
import "C"

import (
	"errors"
	"runtime"
	"time"
	"unsafe"
)

// Snapshot has the values of all counters of a scheduler at one moment.
type Snapshot struct {
	// The time since the process first used forebay.
	Uptime time.Duration
	// The number of look-ups of files that no entry covers.
	UnlistedOpens uint64
	// The number of broken invariants. Each is a bug in forebay.
	Bugs uint64
	// All disks, including the one for files that no entry covers.
	Disks []DiskStats
}

// DiskStats is one disk.
type DiskStats struct {
	Name string
	// The limit of the disk time of requests in the disk; 0 if there is none.
	EffectiveGoal time.Duration
	// The disk time of the requests in the disk now.
	InFlight time.Duration
	// Bytes that the disk read and wrote without permits.
	UnscheduledRead, UnscheduledWritten uint64
	// The classes in the order in which they were added.
	Classes []ClassStats
}

// ClassStats is one class on one disk. Arrays are by operation.
type ClassStats struct {
	Name   string
	Shares uint32
	// Requests in the queue, requests in the disk, and permits that have been held for far too long.
	Queued, InDisk, HeldLong uint32
	// Requests that were completed without an error, and their bytes.
	Operations, Bytes [4]uint64
	// Requests that were completed with an error, and requests that were cancelled in the queue.
	Errors, Cancelled uint64
	// The disk time that it has used, the time for which its requests waited while none of them was in the
	// disk, and the time for which a limit throttled it.
	Consumption, Starved, Limited time.Duration
	// The median and the 99th percentile of the time in the queue.
	QueueP50, QueueP99 time.Duration
	// The median and the 99th percentile of the time in the disk.
	DiskP50, DiskP99 time.Duration
}

// Snapshot takes a snapshot of all counters. Do not call it for each request.
func (s *Scheduler) Snapshot() (*Snapshot, error) {
	info := C.forebay_snapshot_info{size: C.sizeof_forebay_snapshot_info}
	taken, err := s.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		return C.forebay_snapshot_take(handle, &info, made)
	})
	if err != nil {
		return nil, err
	}
	snapshot := &Snapshot{
		Uptime:        nanos(info.uptime_ns),
		UnlistedOpens: uint64(info.unlisted_opens),
		Bugs:          uint64(info.bugs),
	}
	for number := range info.disks {
		disk, err := diskStats(taken, number, info.classes)
		if err != nil {
			return nil, err
		}
		snapshot.Disks = append(snapshot.Disks, disk)
	}
	return snapshot, nil
}

func diskStats(taken *object, number, classes C.uint64_t) (DiskStats, error) {
	got := C.forebay_disk_stats{size: C.sizeof_forebay_disk_stats}
	err := taken.call(func(handle C.uint64_t) C.int {
		return C.forebay_snapshot_disk(handle, number, &got)
	})
	if err != nil {
		return DiskStats{}, err
	}
	name, err := taken.written(int(got.name_len), func(handle C.uint64_t, to *C.char, size C.size_t, length *C.size_t) C.int {
		return C.forebay_snapshot_disk_name(handle, number, to, size, length)
	})
	stats := DiskStats{
		Name:               name,
		EffectiveGoal:      nanos(got.effective_goal_ns),
		InFlight:           nanos(got.in_flight_ns),
		UnscheduledRead:    uint64(got.unscheduled_read),
		UnscheduledWritten: uint64(got.unscheduled_written),
	}
	for class := C.uint64_t(0); class < classes && err == nil; class++ {
		var of ClassStats
		of, err = classStats(taken, number, class)
		stats.Classes = append(stats.Classes, of)
	}
	return stats, err
}

func classStats(taken *object, disk, class C.uint64_t) (ClassStats, error) {
	got := C.forebay_class_stats{size: C.sizeof_forebay_class_stats}
	err := taken.call(func(handle C.uint64_t) C.int {
		return C.forebay_snapshot_class(handle, disk, class, &got)
	})
	if err != nil {
		return ClassStats{}, err
	}
	name, err := taken.written(int(got.name_len), func(handle C.uint64_t, to *C.char, size C.size_t, length *C.size_t) C.int {
		return C.forebay_snapshot_class_name(handle, disk, class, to, size, length)
	})
	stats := ClassStats{
		Name:        name,
		Shares:      uint32(got.shares),
		Queued:      uint32(got.queued),
		InDisk:      uint32(got.in_disk),
		HeldLong:    uint32(got.held_long),
		Errors:      uint64(got.errors),
		Cancelled:   uint64(got.cancelled),
		Consumption: nanos(got.consumption_ns),
		Starved:     nanos(got.starved_ns),
		Limited:     nanos(got.limited_ns),
		QueueP50:    nanos(got.queue_p50_ns),
		QueueP99:    nanos(got.queue_p99_ns),
		DiskP50:     nanos(got.disk_p50_ns),
		DiskP99:     nanos(got.disk_p99_ns),
	}
	for op := range stats.Operations {
		stats.Operations[op], stats.Bytes[op] = uint64(got.operations[op]), uint64(got.bytes[op])
	}
	return stats, err
}

// Class returns the class of that name on the first disk that has it; nil if there is none.
func (s *Snapshot) Class(name string) *ClassStats {
	for _, disk := range s.Disks {
		for i := range disk.Classes {
			if disk.Classes[i].Name == name {
				return &disk.Classes[i]
			}
		}
	}
	return nil
}

// OpenMetrics returns all metrics as OpenMetrics text.
func (s *Scheduler) OpenMetrics() (string, error) {
	return s.written(64<<10, func(handle C.uint64_t, to *C.char, size C.size_t, length *C.size_t) C.int {
		return C.forebay_snapshot_openmetrics(handle, to, size, length)
	})
}

// written returns the text that a function of the library writes, which may be longer than size.
func (o *object) written(size int, write func(handle C.uint64_t, to *C.char, size C.size_t, length *C.size_t) C.int) (string, error) {
	for text := make([]byte, size); ; {
		var length C.size_t
		err := o.call(func(handle C.uint64_t) C.int {
			to := (*C.char)(unsafe.Pointer(unsafe.SliceData(text)))
			return write(handle, to, C.size_t(len(text)), &length)
		})
		runtime.KeepAlive(text)
		if err == nil {
			return string(text[:length]), nil
		}
		if int(length) <= len(text) || !errors.Is(err, Code(C.FOREBAY_E_TOO_SMALL)) {
			return "", err
		}
		text = make([]byte, length)
	}
}

func nanos(time_ns C.uint64_t) time.Duration { return time.Duration(time_ns) }
