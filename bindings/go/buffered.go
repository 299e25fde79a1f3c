package forebay

// #include <forebay.h>
//
// // The data are char, because for a void pointer Go checks the whole object for pointers.
// static int forebay_go_read(forebay_class c, int fd, char *data, size_t len, uint64_t offset, size_t *done) {
//     return forebay_read(c, fd, data, len, offset, done);
// }
//
// static int forebay_go_write(forebay_writer writer, const char *data, size_t len, int64_t offset) {
//     return forebay_write(writer, data, len, offset);
// }
import "C"

import (
	"fmt"
	"io"
	"runtime"
	"unsafe"
)

// File has a descriptor: *os.File, or a file of Pebble.
type File interface{ Fd() uintptr }

// ReadAt reads through the page cache. Pages in memory need no permit; the others wait for permits. Like
// other reads of files it blocks a thread.
func (c *Class) ReadAt(file File, data []byte, offset int64) (int, error) {
	defer runtime.KeepAlive(file)
	var done C.size_t
	err := c.call(func(handle C.uint64_t) C.int {
		to, length := bytes(data)
		return C.forebay_go_read(handle, C.int(file.Fd()), to, length, C.uint64_t(offset), &done)
	})
	if err == nil && int(done) < len(data) {
		err = io.EOF
	}
	return int(done), err
}

// Prefetch reads length bytes from offset on into the page cache, for example before they are read through
// a memory mapping. Each part waits for a permit. Negative arguments give ErrInvalid.
func (c *Class) Prefetch(file File, offset, length int64) error {
	if offset < 0 || length < 0 {
		return &Error{ErrInvalid, 0, fmt.Sprintf("%d bytes from %d on: neither is below 0", length, offset)}
	}
	defer runtime.KeepAlive(file)
	return c.call(func(handle C.uint64_t) C.int {
		return C.forebay_prefetch(handle, C.int(file.Fd()), C.uint64_t(offset), C.uint64_t(length))
	})
}

// Sync makes durable what the program wrote to a file without a Writer.
func (c *Class) Sync(file File) error {
	defer runtime.KeepAlive(file)
	return c.call(func(handle C.uint64_t) C.int {
		return C.forebay_sync(handle, C.int(file.Fd()), C.FOREBAY_SYNC_ALL)
	})
}

// Writer writes to a file through the page cache, and schedules write-back of its dirty bytes in a class.
// Sync, and writes that wait because too many bytes are dirty, block a thread.
type Writer struct {
	*object
	file File
}

// NewWriter makes a writer to a file, which has to stay open as long as the writer. At most dirtyMax bytes
// are dirty; 0 means 16 MiB.
func (c *Class) NewWriter(file File, dirtyMax uint64) (*Writer, error) {
	made, err := c.make(func(handle C.uint64_t, made *C.uint64_t) C.int {
		return C.forebay_writer_new(handle, C.int(file.Fd()), C.uint64_t(dirtyMax), made)
	})
	if err != nil {
		return nil, err
	}
	return &Writer{made, file}, nil
}

// Write writes after the previous write, or, with O_APPEND, at the end of the file.
func (w *Writer) Write(data []byte) (int, error) { return w.write(data, C.FOREBAY_OFFSET_NEXT) }

// WriteAt writes at an offset.
func (w *Writer) WriteAt(data []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, &Error{ErrInvalid, 0, fmt.Sprintf("the offset %d is below 0", offset)}
	}
	return w.write(data, offset)
}

func (w *Writer) write(data []byte, offset int64) (int, error) {
	defer runtime.KeepAlive(w)
	err := w.call(func(handle C.uint64_t) C.int {
		from, length := bytes(data)
		return C.forebay_go_write(handle, from, length, C.int64_t(offset))
	})
	if err != nil {
		return 0, err
	}
	return len(data), nil
}

// WriteBack starts write-back of the dirty bytes, and does not wait for its end.
func (w *Writer) WriteBack() error {
	defer runtime.KeepAlive(w)
	return w.call(func(handle C.uint64_t) C.int { return C.forebay_write_back(handle) })
}

// SetWriteBackAfter sets how many bytes may be dirty before write-back begins. Up to that number, closing the
// writer does not start write-back either. Sync still writes back all dirty bytes. Use it for logs, which are
// often deleted before they are synced.
func (w *Writer) SetWriteBackAfter(bytes uint64) error {
	defer runtime.KeepAlive(w)
	return w.call(func(handle C.uint64_t) C.int {
		return C.forebay_writer_set_write_back_after(handle, C.uint64_t(bytes))
	})
}

// Sync makes the writes durable.
func (w *Writer) Sync() error { return w.sync(C.FOREBAY_SYNC_ALL) }

// SyncData is Sync without the attributes that are not needed to read the data back.
func (w *Writer) SyncData() error { return w.sync(0) }

func (w *Writer) sync(flags C.uint32_t) error {
	defer runtime.KeepAlive(w)
	return w.call(func(handle C.uint64_t) C.int { return C.forebay_writer_sync(handle, flags) })
}

// Dirty returns the number of written bytes that are not on the disk yet.
func (w *Writer) Dirty() (uint64, error) {
	defer runtime.KeepAlive(w)
	var dirty C.uint64_t
	err := w.call(func(handle C.uint64_t) C.int { return C.forebay_writer_dirty(handle, &dirty) })
	return uint64(dirty), err
}

// Close starts write-back of the dirty bytes, and frees the writer. The file stays open.
func (w *Writer) Close() error {
	return w.call(func(handle C.uint64_t) C.int { return C.forebay_free(handle) })
}

// bytes returns the pointer and the length of a slice.
func bytes(data []byte) (*C.char, C.size_t) {
	return (*C.char)(unsafe.Pointer(unsafe.SliceData(data))), C.size_t(len(data))
}
