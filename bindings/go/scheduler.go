// Package forebay is a userspace disk I/O scheduler for storage engines, which grants goroutines permits for I/O.
//
// A goroutine that waits for a permit blocks no thread. All types may be used by any goroutine. The garbage
// collector frees schedulers, classes, groups and deletions. Permits have to be completed, and writers and
// deleters closed.
package forebay

// #include <stdlib.h>
// #include <forebay.h>
import "C"

import (
	"runtime"
	"unsafe"
)

// Flags changes how a scheduler works.
type Flags uint32

const (
	// Strict refuses files on disks that no entry covers, with ErrUnlisted.
	Strict Flags = C.FOREBAY_STRICT
	// Unlimited counts requests but lets none wait. It is for comparisons.
	Unlimited Flags = C.FOREBAY_UNLIMITED
)

// Disk is a disk with its rates. The vendor's figures are enough to begin with.
type Disk struct {
	Name string
	// A directory on it, or its block device. Empty if no file has to be assigned to it by its path.
	Mountpoint string
	// Small requests per second.
	ReadIOPS, WriteIOPS uint64
	// Bytes per second.
	ReadBandwidth, WriteBandwidth uint64
}

// parent is a scheduler or a group, to which classes and groups are added.
type parent struct{ *object }

// Scheduler has disks, each with its own budget, and the classes that share them.
type Scheduler struct{ parent }

// FromFile makes a scheduler for the disks in a file of I/O properties, which `forebay tune` writes.
func FromFile(path string, flags Flags) (*Scheduler, error) {
	return newScheduler(func(made *C.forebay_scheduler) C.int {
		text, length := str(path)
		return C.forebay_scheduler_from_file(text, length, C.uint32_t(flags), made)
	})
}

// FromRates makes a scheduler for disks with the given rates.
func FromRates(disks []Disk, flags Flags) (*Scheduler, error) {
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinned := func(s string) (*C.char, C.size_t) {
		if s == "" {
			return nil, 0
		}
		text, length := str(s)
		pinner.Pin(text)
		return text, length
	}
	given := make([]C.forebay_disk, len(disks))
	for i, disk := range disks {
		to := &given[i]
		to.size = C.sizeof_forebay_disk
		to.name, to.name_len = pinned(disk.Name)
		to.mountpoint, to.mountpoint_len = pinned(disk.Mountpoint)
		to.read_iops, to.write_iops = C.uint64_t(disk.ReadIOPS), C.uint64_t(disk.WriteIOPS)
		to.read_bandwidth = C.uint64_t(disk.ReadBandwidth)
		to.write_bandwidth = C.uint64_t(disk.WriteBandwidth)
	}
	return newScheduler(func(made *C.forebay_scheduler) C.int {
		first, count := unsafe.SliceData(given), C.size_t(len(given))
		return C.forebay_scheduler_from_rates(first, count, C.uint32_t(flags), made)
	})
}

func newScheduler(work func(made *C.forebay_scheduler) C.int) (*Scheduler, error) {
	if err := call(func() C.int { return C.forebay_check_version(C.FOREBAY_VERSION) }); err != nil {
		return nil, err
	}
	var made C.forebay_scheduler
	if err := call(func() C.int { return work(&made) }); err != nil {
		return nil, err
	}
	return &Scheduler{parent{newObject(made)}}, nil
}

// Reload reads the figures of the disks from a file of I/O properties, without stopping I/O.
func (s *Scheduler) Reload(path string) error {
	return s.call(func(handle C.uint64_t) C.int {
		text, length := str(path)
		return C.forebay_scheduler_reload(handle, text, length)
	})
}

// Class returns the class of that name, or ErrNotFound.
func (s *Scheduler) Class(name string) (*Class, error) {
	return toClass(s.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		text, length := str(name)
		return C.forebay_class_find(handle, text, length, made)
	}))
}

// AddClass adds a class on all disks.
func (p parent) AddClass(name string, shares uint32) (*Class, error) {
	return toClass(p.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		text, length := str(name)
		return C.forebay_class_add(handle, text, length, C.uint32_t(shares), made)
	}))
}

// AddGroup adds a group, which competes as one class with its shares.
func (p parent) AddGroup(name string, shares uint32) (*Group, error) {
	made, err := p.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		text, length := str(name)
		return C.forebay_group_add(handle, text, length, C.uint32_t(shares), made)
	})
	if err != nil {
		return nil, err
	}
	return &Group{parent{made}, member{made}}, nil
}

// Limits are upper limits on each disk; 0 means no limit.
type Limits struct{ BytesPerSecond, OperationsPerSecond uint64 }

// member is a class or a group, which has shares.
type member struct{ *object }

// Class is a priority class, on one disk of its scheduler. That is the first disk, unless On or OnFile chose
// another one.
type Class struct{ member }

// Group is a group of classes.
type Group struct {
	parent
	member
}

func toClass(made *object, err error) (*Class, error) {
	if err != nil {
		return nil, err
	}
	return &Class{member{made}}, nil
}

// On returns the same class on the disk of that name.
func (c *Class) On(disk string) (*Class, error) {
	return toClass(c.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		text, length := str(disk)
		return C.forebay_class_on_disk(handle, text, length, made)
	}))
}

// OnFile returns the same class on the disk that holds the file.
func (c *Class) OnFile(file File) (*Class, error) {
	defer runtime.KeepAlive(file)
	return toClass(c.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		return C.forebay_class_on_file(handle, C.int(file.Fd()), made)
	}))
}

// Shares returns the present shares.
func (m member) Shares() (uint32, error) {
	var shares C.uint32_t
	err := m.call(func(handle C.uint64_t) C.int { return C.forebay_get_shares(handle, &shares) })
	return uint32(shares), err
}

// SetShares changes the shares on all disks, from the next request on.
func (m member) SetShares(shares uint32) error {
	return m.call(func(handle C.uint64_t) C.int {
		return C.forebay_set_shares(handle, C.uint32_t(shares))
	})
}

// Limits returns the present limits.
func (m member) Limits() (Limits, error) {
	limits := C.forebay_limits{size: C.sizeof_forebay_limits}
	err := m.call(func(handle C.uint64_t) C.int { return C.forebay_get_limits(handle, &limits) })
	return Limits{uint64(limits.bytes_per_second), uint64(limits.operations_per_second)}, err
}

// SetLimits changes the limits on each disk.
func (m member) SetLimits(limits Limits) error {
	given := C.forebay_limits{
		size:                  C.sizeof_forebay_limits,
		bytes_per_second:      C.uint64_t(limits.BytesPerSecond),
		operations_per_second: C.uint64_t(limits.OperationsPerSecond),
	}
	return m.call(func(handle C.uint64_t) C.int { return C.forebay_set_limits(handle, &given) })
}

// Remove removes it from all disks. ErrBusy while it has queued requests or contains classes.
func (m member) Remove() error {
	return m.call(func(handle C.uint64_t) C.int { return C.forebay_remove(handle) })
}
