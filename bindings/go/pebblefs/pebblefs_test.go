package pebblefs

import (
	"encoding/binary"
	"io"
	"math/rand"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"forebay"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func must[T any](got T, err error) T {
	if err != nil {
		panic(err)
	}
	return got
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newScheduler(dir string, flags forebay.Flags) (*forebay.Scheduler, Classes) {
	disk := forebay.Disk{
		Name: "disk", Mountpoint: dir, ReadIOPS: 200_000, WriteIOPS: 100_000,
		ReadBandwidth: 2_000_000_000, WriteBandwidth: 1_000_000_000,
	}
	scheduler := must(forebay.FromRates([]forebay.Disk{disk}, flags))
	class := func(name string, shares uint32) *forebay.Class { return must(scheduler.AddClass(name, shares)) }
	wal, flushes, compactions := class("wal", 1000), class("flushes", 500), class("compactions", 100)
	return scheduler, Classes{
		Reads:           class("queries", 1000),
		SequentialReads: compactions,
		Writes:          map[vfs.DiskWriteCategory]*forebay.Class{"pebble-wal": wal, "pebble-memtable-flush": flushes},
		OtherWrites:     compactions,
	}
}

// readCounter counts the bytes read from files with and without the option.
type readCounter struct {
	vfs.FS
	usual, sequential atomic.Int64
}

func (c *readCounter) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	file, err := c.FS.Open(name, options...)
	if err != nil || filepath.Ext(name) != ".sst" {
		return file, err
	}
	counted := countedFile{file, &c.usual}
	if slices.Contains(options, vfs.SequentialReadsOption) {
		counted.bytes = &c.sequential
	}
	return counted, nil
}

// part is the percentage of bytes that were read with the option since the last time.
func (c *readCounter) part() (percent float64, bytes int64) {
	usual, sequential := c.usual.Swap(0), c.sequential.Swap(0)
	return 100 * float64(sequential) / float64(max(usual+sequential, 1)), usual + sequential
}

type countedFile struct {
	vfs.File
	bytes *atomic.Int64
}

func (f countedFile) ReadAt(data []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(data, offset)
	f.bytes.Add(int64(n))
	return n, err
}

const keys, valueSize = 100_000, 512

func key(number int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(number)) }

func open(dir string, fs vfs.FS) *pebble.DB {
	cache := pebble.NewCache(1 << 20)
	defer cache.Unref()
	return must(pebble.Open(dir, &pebble.Options{FS: fs, MemTableSize: 4 << 20, Cache: cache}))
}

func TestADatabaseKeepsWhatWasWrittenAndItsClassesDoTheWork(t *testing.T) {
	dir := t.TempDir()
	scheduler, classes := newScheduler(dir, forebay.Strict)
	counter := &readCounter{FS: New(vfs.Default, classes)}
	db, random := open(dir, counter), rand.New(rand.NewSource(1))
	value := make([]byte, valueSize)
	for _, number := range random.Perm(keys) {
		random.Read(value[8:])
		copy(value, key(number))
		check(t, db.Set(key(number), value, pebble.NoSync))
	}
	check(t, db.LogData(nil, pebble.Sync))
	check(t, db.Compact(t.Context(), key(0), key(keys), true))
	compactions, bytes := counter.part()
	t.Logf("compactions: %.1f %% of %d bytes with the option", compactions, bytes)
	check(t, db.Close())

	db = open(dir, counter)
	counter.part()
	for range 5000 {
		number := random.Intn(keys)
		got, closer, err := db.Get(key(number))
		if check(t, err); string(got[:8]) != string(key(number)) || len(got) != valueSize {
			t.Fatalf("%d has %d bytes: %x", number, len(got), got[:8])
		}
		check(t, closer.Close())
	}
	gets, bytes := counter.part()
	t.Logf("gets: %.1f %% of %d bytes with the option", gets, bytes)
	iterator, count := must(db.NewIter(nil)), 0
	for valid := iterator.First(); valid; valid = iterator.Next() {
		count++
	}
	check(t, iterator.Close())
	scans, bytes := counter.part()
	t.Logf("a scan: %.1f %% of %d bytes with the option", scans, bytes)
	check(t, db.Close())
	if count != keys || compactions < 50 || gets > 5 {
		t.Errorf("%d keys, compactions %.1f %%, gets %.1f %%", count, compactions, gets)
	}
	snapshot := must(scheduler.Snapshot())
	for _, name := range []string{"wal", "flushes", "compactions"} {
		if class := snapshot.Class(name); class.Operations[forebay.Write] == 0 {
			t.Errorf("no writes: %+v", class)
		}
	}
}

func TestAFileHasOnePositionAndOnesInMemoryStay(t *testing.T) {
	dir := t.TempDir()
	_, classes := newScheduler(dir, 0)
	fs := New(vfs.Default, classes)
	file := must(fs.OpenReadWrite(filepath.Join(dir, "file"), "other"))
	must(file.Write([]byte("0123456789")))
	must(file.WriteAt([]byte("abc"), 2))
	if full, err := file.SyncTo(10); full || err != nil {
		t.Error(full, err)
	}
	check(t, file.SyncData())
	check(t, file.Sync())
	if n, err := file.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Error(n, err)
	}
	check(t, file.Close())
	file = must(fs.ReuseForWrite(filepath.Join(dir, "file"), filepath.Join(dir, "again"), "pebble-wal"))
	must(file.Write([]byte("xyz")))
	check(t, file.Prefetch(0, 10))
	rest := must(io.ReadAll(file))
	if check(t, file.Close()); string(rest) != "bc56789" {
		t.Errorf("%q", rest)
	}
	memory := New(vfs.NewMem(), classes)
	if _, is := must(memory.Create("file", "pebble-wal")).(*writtenFile); is {
		t.Error("a file in memory is scheduled")
	}
}
