// Package pebblefs schedules the I/O of Pebble: it is a vfs.FS that wraps another one.
package pebblefs

import (
	"context"
	"errors"
	"io"
	"slices"
	"syscall"

	"forebay"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Classes are the classes of each kind of I/O.
type Classes struct {
	// Reads of files that were opened without that option, mostly those of queries.
	Reads *forebay.Class
	// Reads of files that were opened with vfs.SequentialReadsOption: those of compactions and long scans.
	SequentialReads *forebay.Class
	// Writes, by category ("pebble-wal", "pebble-memtable-flush", "pebble-compaction").
	Writes map[vfs.DiskWriteCategory]*forebay.Class
	// Writes of other categories.
	OtherWrites *forebay.Class
}

// New wraps a file system. Files without a descriptor, such as those in memory, are not scheduled.
func New(base vfs.FS, classes Classes) vfs.FS { return &fileSystem{base, classes} }

type fileSystem struct {
	vfs.FS
	classes Classes
}

func (fs *fileSystem) Unwrap() vfs.FS { return fs.FS }

func (fs *fileSystem) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	file, err := fs.FS.Open(name, options...)
	if err != nil || file.Fd() == vfs.InvalidFd {
		return file, err
	}
	class, err := fs.readers(options).OnFile(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &readFile{file, class, 0}, nil
}

func (fs *fileSystem) OpenReadWrite(
	name string, category vfs.DiskWriteCategory, options ...vfs.OpenOption,
) (vfs.File, error) {
	file, err := fs.FS.OpenReadWrite(name, category, options...)
	return fs.written(file, err, category, options)
}

func (fs *fileSystem) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := fs.FS.Create(name, category)
	return fs.written(file, err, category, nil)
}

func (fs *fileSystem) ReuseForWrite(
	oldname, newname string, category vfs.DiskWriteCategory,
) (vfs.File, error) {
	file, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return fs.written(file, err, category, nil)
}

func (fs *fileSystem) readers(options []vfs.OpenOption) *forebay.Class {
	if slices.Contains(options, vfs.SequentialReadsOption) {
		return fs.classes.SequentialReads
	}
	return fs.classes.Reads
}

func (fs *fileSystem) written(
	file vfs.File, err error, category vfs.DiskWriteCategory, options []vfs.OpenOption,
) (vfs.File, error) {
	if err != nil || file.Fd() == vfs.InvalidFd {
		return file, err
	}
	class, known := fs.classes.Writes[category]
	if !known {
		class = fs.classes.OtherWrites
	}
	readers, err := fs.readers(options).OnFile(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	writer, err := class.NewWriter(file, 0)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &writtenFile{readFile{file, readers, 0}, writer}, nil
}

// readFile is a file whose reads wait for permits unless the page is in memory.
type readFile struct {
	vfs.File
	class *forebay.Class
	// The position of Read and Write, which are called by one goroutine at a time.
	position int64
}

func (f *readFile) Read(data []byte) (int, error) {
	n, err := f.ReadAt(data, f.position)
	f.position += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *readFile) ReadAt(data []byte, offset int64) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	return f.class.ReadAt(f.File, data, offset)
}

// Prefetch prefetches the range under a permit.
func (f *readFile) Prefetch(offset, length int64) error {
	_, err := f.class.Do(context.Background(), forebay.Read, int(length), func() (int, error) {
		err := f.File.Prefetch(offset, length)
		if err == syscall.Errno(0) { // Pebble returns this for success.
			err = nil
		}
		return int(length), err
	})
	return err
}

// writtenFile is a file whose write-back is scheduled in the class of its writer.
type writtenFile struct {
	readFile
	writer *forebay.Writer
}

func (f *writtenFile) Write(data []byte) (int, error) {
	n, err := f.WriteAt(data, f.position)
	f.position += int64(n)
	return n, err
}

func (f *writtenFile) WriteAt(data []byte, offset int64) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	return f.writer.WriteAt(data, offset)
}

func (f *writtenFile) Sync() error { return f.writer.Sync() }

func (f *writtenFile) SyncData() error { return f.writer.SyncData() }

// SyncTo starts write-back of the dirty bytes, without a guarantee.
func (f *writtenFile) SyncTo(int64) (fullSync bool, err error) { return false, f.writer.WriteBack() }

func (f *writtenFile) Close() error { return errors.Join(f.writer.Close(), f.File.Close()) }
