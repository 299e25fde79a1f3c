package forebay

// #include <forebay.h>
import "C"

import "runtime"

// DeleterOptions are the options of a deleter. The zero value has the defaults.
type DeleterOptions struct {
	// The most bytes freed per second; 0 for no limit but the scheduling of the class.
	Rate uint64
	// The most extents discarded per second; 0 for no limit.
	CommandsPerSecond uint64
	// The directory in which the trash for all files is; empty for a trash in the directory of each file.
	TrashIn string
	// The most files that may wait; 0 for 1,048,576.
	FilesMax uint64
	// Unlink files at once and free their blocks through descriptors, instead of moving them to a trash.
	InPlace bool
	// Delete in steps even on disks where deleting sends no discards.
	AlwaysInSteps bool
}

// Deleter deletes files in small steps, scheduled in a class.
type Deleter struct{ *object }

// Deletion is a requested deletion. It continues even if nothing refers to it.
type Deletion struct{ *object }

// Deleted is the result of a deletion.
type Deleted struct {
	// The number of deleted files: 1, or all files of a trash.
	Files uint64
	// The bytes freed in steps, and the number of steps.
	Bytes, Steps uint64
	// Whether the last file was unlinked at once.
	Unlinked bool
}

// NewDeleter makes a deleter. It raises the shares of the class as its backlog nears the maximum, so give
// it a class of its own.
func (c *Class) NewDeleter(options DeleterOptions) (*Deleter, error) {
	var pinner runtime.Pinner
	defer pinner.Unpin()
	given := C.forebay_deleter_options{
		size:                C.sizeof_forebay_deleter_options,
		rate:                C.uint64_t(options.Rate),
		commands_per_second: C.uint64_t(options.CommandsPerSecond),
		files_max:           C.uint64_t(options.FilesMax),
	}
	if options.TrashIn != "" {
		given.trash_in, given.trash_in_len = str(options.TrashIn)
		pinner.Pin(given.trash_in)
	}
	if options.InPlace {
		given.flags |= C.FOREBAY_DELETE_IN_PLACE
	}
	if options.AlwaysInSteps {
		given.flags |= C.FOREBAY_DELETE_ALWAYS_IN_STEPS
	}
	made, err := c.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		return C.forebay_deleter_new(handle, &given, made)
	})
	if err != nil {
		return nil, err
	}
	return &Deleter{made}, nil
}

// Delete deletes a file. It returns at once; Wait returns errors of the deletion.
func (d *Deleter) Delete(path string) (*Deletion, error) {
	return toDeletion(d.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		text, length := str(path)
		return C.forebay_delete(handle, text, length, made)
	}))
}

// EmptyTrash deletes files that earlier processes left in the trash of a directory. Call it when the
// program starts.
func (d *Deleter) EmptyTrash(dir string) (*Deletion, error) {
	return toDeletion(d.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		text, length := str(dir)
		return C.forebay_deleter_empty_trash(handle, text, length, made)
	}))
}

// Close waits until all deletions have ended, and ends the deleter.
func (d *Deleter) Close() error {
	if err := d.call(func(handle C.uint64_t) C.int { return C.forebay_deleter_drain(handle) }); err != nil {
		return err
	}
	return d.call(func(handle C.uint64_t) C.int { return C.forebay_free(handle) })
}

func toDeletion(made *object, err error) (*Deletion, error) {
	if err != nil {
		return nil, err
	}
	return &Deletion{made}, nil
}

// Wait waits until the file is deleted and its blocks are freed. It blocks a thread.
func (d *Deletion) Wait() (Deleted, error) {
	deleted := C.forebay_deleted{size: C.sizeof_forebay_deleted}
	err := d.call(func(handle C.uint64_t) C.int { return C.forebay_deletion_wait(handle, &deleted) })
	steps, unlinked := uint64(deleted.steps), deleted.unlinked != 0
	return Deleted{uint64(deleted.files), uint64(deleted.bytes), steps, unlinked}, err
}

// WaitRemoved waits until the file is durably removed from its path. It blocks a thread.
func (d *Deletion) WaitRemoved() error {
	return d.call(func(handle C.uint64_t) C.int { return C.forebay_deletion_wait_removed(handle) })
}

// Cancel cancels the deletion if the file is still at its path; else it returns ErrBusy.
func (d *Deletion) Cancel() error {
	return d.call(func(handle C.uint64_t) C.int { return C.forebay_deletion_cancel(handle) })
}
