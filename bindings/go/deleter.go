package forebay

// #include <forebay.h>
import "C"

import "runtime"

// DeleterOptions is how a deleter deletes; the zero value is the usual way.
type DeleterOptions struct {
	// Bytes that are freed per second at most; 0 for what the class lets through.
	Rate uint64
	// Extents that are discarded per second at most; 0 for no limit.
	CommandsPerSecond uint64
	// A directory in which all trash is; empty for a trash alongside each file.
	TrashIn string
	// Files that may wait; 0 for 1,048,576.
	FilesMax uint64
	// Files are unlinked at once and freed by their descriptors, instead of being moved into a trash.
	InPlace bool
	// In steps also where nothing is discarded.
	AlwaysInSteps bool
}

// Deleter deletes files at the pace of a class.
type Deleter struct{ *object }

// Deletion is what was asked to be deleted. It goes on when nothing refers to it.
type Deletion struct{ *object }

// Deleted is what came of a deletion.
type Deleted struct {
	// 1, or what was found in a trash.
	Files uint64
	// Bytes that were freed in steps, and how many steps.
	Bytes, Steps uint64
	// Whether the last file was unlinked at once.
	Unlinked bool
}

// NewDeleter makes one. The class's shares rise as the backlog nears a ceiling: give it a class
// of its own.
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

// Delete deletes a file. It returns at once; what went wrong is told by Wait.
func (d *Deleter) Delete(path string) (*Deletion, error) {
	return toDeletion(d.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		text, length := str(path)
		return C.forebay_delete(handle, text, length, made)
	}))
}

// EmptyTrash deletes what earlier processes left in the trash in a directory: for when a program
// starts.
func (d *Deleter) EmptyTrash(dir string) (*Deletion, error) {
	return toDeletion(d.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		text, length := str(dir)
		return C.forebay_deleter_empty_trash(handle, text, length, made)
	}))
}

// Close waits until nothing waits for the deleter any more, and ends it.
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

// Wait waits until the file is deleted and its blocks are free. It holds a thread.
func (d *Deletion) Wait() (Deleted, error) {
	deleted := C.forebay_deleted{size: C.sizeof_forebay_deleted}
	err := d.call(func(handle C.uint64_t) C.int { return C.forebay_deletion_wait(handle, &deleted) })
	steps, unlinked := uint64(deleted.steps), deleted.unlinked != 0
	return Deleted{uint64(deleted.files), uint64(deleted.bytes), steps, unlinked}, err
}

// WaitRemoved waits until the file is gone from its path, durably. It holds a thread.
func (d *Deletion) WaitRemoved() error {
	return d.call(func(handle C.uint64_t) C.int { return C.forebay_deletion_wait_removed(handle) })
}

// Cancel keeps the file, if nothing was done with it yet; else ErrBusy.
func (d *Deletion) Cancel() error {
	return d.call(func(handle C.uint64_t) C.int { return C.forebay_deletion_cancel(handle) })
}
