package forebay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func newTestScheduler(t *testing.T, iops uint64, flags Flags) *Scheduler {
	t.Helper()
	disk := Disk{"disk", "", iops, iops, iops * 100_000, iops * 100_000}
	return must(FromRates([]Disk{disk}, flags))
}

func must[T any](got T, err error) T {
	if err != nil {
		panic(err)
	}
	return got
}

// waitFor waits until the statistics of a class are as wanted.
func waitFor(t *testing.T, s *Scheduler, class string, wanted func(ClassStats) bool) ClassStats {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		stats := *must(s.Snapshot()).Class(class)
		if wanted(stats) {
			return stats
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: %+v", stats)
		}
	}
}

func threads(t *testing.T) (count int) {
	t.Helper()
	for line := range strings.Lines(string(must(os.ReadFile("/proc/self/status")))) {
		if rest, found := strings.CutPrefix(line, "Threads:"); found {
			must(fmt.Sscan(rest, &count))
		}
	}
	return count
}

// fill takes permits until the next one would have to wait.
func fill(t *testing.T, class *Class) (held []*Permit) {
	t.Helper()
	for {
		permit, err := class.TryAdmit(Read, 4096)
		if errors.Is(err, ErrTimedOut) {
			return held
		}
		held = append(held, must(permit, err))
	}
}

func complete(t *testing.T, permits []*Permit) {
	t.Helper()
	for _, permit := range permits {
		if err := permit.Complete(4096, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGoroutinesThatWaitHoldNoThread(t *testing.T) {
	const goroutines, cancellable = 20_000, 5_000
	scheduler := newTestScheduler(t, 100_000, 0)
	class := must(scheduler.AddClass("queries", 100))
	is(t, class.SetLimits(Limits{OperationsPerSecond: 1}), nil)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	var done, cancelled atomic.Int64
	for number := range goroutines {
		group.Add(1)
		go func() {
			defer group.Done()
			mine := context.Background()
			if number < cancellable {
				mine = ctx
			}
			_, err := class.Do(mine, Read, 4096, func() (int, error) { return 4096, nil })
			switch {
			case err == nil:
				done.Add(1)
			case errors.Is(err, context.Canceled):
				cancelled.Add(1)
			default:
				t.Error(err)
			}
		}()
	}
	waitFor(t, scheduler, "queries", func(s ClassStats) bool {
		return int64(s.Queued)+done.Load() == goroutines
	})
	count := threads(t)
	t.Logf("%d threads while %d goroutines wait", count, goroutines)
	if count >= 50 {
		t.Error("threads wait")
	}
	cancel()
	waitFor(t, scheduler, "queries", func(s ClassStats) bool {
		return int64(s.Queued)+done.Load()+cancelled.Load() == goroutines && cancelled.Load() > cancellable/2
	})
	is(t, class.SetLimits(Limits{}), nil)
	group.Wait()
	end := *must(scheduler.Snapshot()).Class("queries")
	// Permits that were granted when their context ended have been given back.
	total, ended := end.Operations[Read]+end.Cancelled, done.Load()+cancelled.Load()
	if total != goroutines || ended != goroutines || end.InDisk != 0 || end.Queued != 0 {
		t.Errorf("%d done, %d cancelled: %+v", done.Load(), cancelled.Load(), end)
	}
	if count := threads(t); count >= 50 {
		t.Errorf("%d threads at the end", count)
	}
	queue := must(started())
	if queue.mutex.Lock(); len(queue.waiting) != 0 {
		t.Errorf("%d outcomes are kept", len(queue.waiting))
	}
	queue.mutex.Unlock()
}

// Contexts that end while permits are granted leave nothing behind, whichever happens first.
func TestCancellingWhilePermitsAreGranted(t *testing.T) {
	scheduler := newTestScheduler(t, 20_000, 0)
	class := must(scheduler.AddClass("queries", 100))
	var group sync.WaitGroup
	var granted, ended sync.Map
	for worker := range 32 {
		group.Add(1)
		go func() {
			defer group.Done()
			for round := range 100 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(worker*round)*time.Microsecond)
				permit, err := class.Admit(ctx, Write, 4096)
				switch {
				case err == nil:
					granted.Store([2]int{worker, round}, true)
					err = permit.Complete(4096, nil)
				case errors.Is(err, context.DeadlineExceeded):
					ended.Store(worker, true)
					err = nil
				}
				if cancel(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	end := waitFor(t, scheduler, "queries", func(s ClassStats) bool { return s.Queued == 0 && s.InDisk == 0 })
	var count uint64
	granted.Range(func(any, any) bool { count++; return true })
	if _, some := ended.Load(1); !some || count == 0 || end.Operations[Write] < count {
		t.Errorf("%d granted, %+v", count, end)
	}
}

func TestLeakedPermitsAreCountedAndGivenBack(t *testing.T) {
	scheduler := newTestScheduler(t, 1000, 0)
	class := must(scheduler.AddClass("queries", 100))
	before := LeakedPermits()
	complete(t, []*Permit{must(class.Admit(context.Background(), Read, 4096))})
	count := uint64(len(fill(t, class)))
	waitFor(t, scheduler, "queries", func(s ClassStats) bool { runtime.GC(); return s.InDisk == 0 })
	if leaked := LeakedPermits() - before; leaked != count {
		t.Errorf("%d of %d", leaked, count)
	}
}

func TestAnEndedContextQueuesNoRequest(t *testing.T) {
	class := must(newTestScheduler(t, 1000, 0).AddClass("queries", 100))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := class.Admit(ctx, Read, 4096); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n, err := class.Do(ctx, Read, 4096, func() (int, error) { panic("without a permit") }); n != 0 || err == nil {
		t.Error(n, err)
	}
}

func TestWorkThatPanicsGivesItsPermitBack(t *testing.T) {
	scheduler := newTestScheduler(t, 1000, 0)
	class := must(scheduler.AddClass("queries", 100))
	func() {
		defer func() { recover() }()
		class.Do(context.Background(), Read, 4096, func() (int, error) { panic("on purpose") })
	}()
	if stats := must(scheduler.Snapshot()).Class("queries"); stats.InDisk != 0 || stats.Errors != 1 {
		t.Errorf("%+v", stats)
	}
}

// In a process of its own, whose first request is this one.
func TestARequestWithoutADescriptorFailsAndTheNextDoesNot(t *testing.T) {
	if os.Getenv("FOREBAY_TEST_CHILD") == "" {
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), "FOREBAY_TEST_CHILD=1")
		if output, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
		return
	}
	class := must(newTestScheduler(t, 1000, 0).AddClass("queries", 100))
	reader, writer, err := os.Pipe() // for its first file the runtime opens others
	is(t, errors.Join(err, reader.Close(), writer.Close()), nil)
	var limit syscall.Rlimit
	is(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit), nil)
	for _, room := range []uint64{0, 1} { // for neither descriptor, and for one of the two
		fd := must(syscall.Dup(0))
		is(t, syscall.Close(fd), nil)
		is(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(fd) + room, Max: limit.Max}), nil)
		_, err := class.Admit(context.Background(), Read, 4096)
		is(t, err, syscall.EMFILE)
		is(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit), nil)
		if again := must(syscall.Dup(0)); again != fd {
			t.Errorf("%d is open", fd)
		} else {
			is(t, syscall.Close(again), nil)
		}
	}
	is(t, must(class.Admit(context.Background(), Read, 4096)).Complete(4096, nil), nil)
}

func BenchmarkAdmit(b *testing.B) {
	disk := Disk{"disk", "", 100_000_000, 100_000_000, 1_000_000_000_000, 1_000_000_000_000}
	class := must(must(FromRates([]Disk{disk}, Unlimited)).AddClass("queries", 100))
	b.ReportAllocs()
	for b.Loop() {
		must(class.Admit(context.Background(), Read, 4096)).Complete(4096, nil)
	}
}
