package forebay

// #include <forebay.h>
//
// // The result of a request, returned by value, so that C gets no pointers to memory of Go.
// struct asked { int code; forebay_permit permit; forebay_waiting waiting; };
//
// static struct asked forebay_go_ask(forebay_class c, int op, uint64_t len, forebay_events events) {
//     struct asked asked = {0, 0, 0};
//     asked.code = forebay_admit_event(c, op, len, events, 0, &asked.permit, &asked.waiting);
//     return asked;
// }
//
// static struct asked forebay_go_try(forebay_class c, int op, uint64_t len) {
//     struct asked asked = {0, 0, 0};
//     asked.code = forebay_admit(c, op, len, 0, &asked.permit);
//     return asked;
// }
//
// // `waiting` is 0 if there is no event.
// static struct asked forebay_go_next(forebay_events events) {
//     struct forebay_event event = FOREBAY_INIT(forebay_event);
//     if (forebay_events_next(events, &event) != FOREBAY_OK) event.waiting = 0;
//     struct asked asked = {event.code, event.permit, event.waiting};
//     return asked;
// }
import "C"

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// Op is the operation of a permit.
type Op int

const (
	Read  Op = C.FOREBAY_READ
	Write Op = C.FOREBAY_WRITE
	// Discard has the length of the discarded range.
	Discard Op = C.FOREBAY_DISCARD
	// Flush may have the length 0.
	Flush Op = C.FOREBAY_FLUSH
)

// Permit is the permission to do one I/O now. Hold it for exactly as long as the I/O takes.
type Permit struct {
	handle  atomic.Uint64
	cleanup runtime.Cleanup
}

var leaked atomic.Uint64

// LeakedPermits returns how many permits of the process were dropped without Complete. The garbage
// collector found them and ended them.
func LeakedPermits() uint64 { return leaked.Load() }

func newPermit(handle C.forebay_permit) *Permit {
	p := new(Permit)
	p.handle.Store(uint64(handle))
	p.cleanup = runtime.AddCleanup(p, func(handle C.forebay_permit) {
		leaked.Add(1)
		C.forebay_free(handle)
	}, handle)
	return p
}

// Complete ends the permit after its I/O, with the results of ReadAt or a similar call. io.EOF does not
// count as an error of the disk. Completing a permit twice gives ErrHandle.
func (p *Permit) Complete(n int, result error) error {
	handle := C.forebay_permit(p.handle.Swap(0))
	p.cleanup.Stop()
	runtime.KeepAlive(p)
	if result != nil && !errors.Is(result, io.EOF) {
		n = -1
	}
	return call(func() C.int { return C.forebay_complete(handle, C.int64_t(n)) })
}

// TryAdmit returns a permit if it does not have to wait for one, else ErrTimedOut.
func (c *Class) TryAdmit(op Op, length int) (*Permit, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	asked := C.forebay_go_try(c.handle, C.int(op), C.uint64_t(length))
	runtime.KeepAlive(c)
	if asked.code != C.FOREBAY_OK {
		return nil, lastError(asked.code)
	}
	return newPermit(asked.permit), nil
}

// Admit waits, without a thread, until the scheduler grants the operation to the class. When the context
// ends first, the request is cancelled, and the context's error is returned.
func (c *Class) Admit(ctx context.Context, op Op, length int) (*Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	queue, err := started()
	if err != nil {
		return nil, err
	}
	asked, err := queue.ask(c, op, length)
	if err != nil {
		return nil, err
	}
	if asked.waiting == 0 {
		return newPermit(asked.permit), nil
	}
	outcomes := queue.outcomes(asked.waiting)
	select {
	case got := <-outcomes:
		queue.forget(asked.waiting)
		return got.permit, got.err
	case <-ctx.Done():
	}
	// A request that cannot be cancelled has ended, and its event follows.
	if C.forebay_free(asked.waiting) != C.FOREBAY_OK {
		if got := <-outcomes; got.permit != nil {
			got.permit.giveBack()
		}
	}
	queue.forget(asked.waiting)
	return nil, ctx.Err()
}

// Do admits, works and completes, with an error if work panics.
func (c *Class) Do(ctx context.Context, op Op, length int, work func() (int, error)) (n int, err error) {
	permit, err := c.Admit(ctx, op, length)
	if err != nil {
		return 0, err
	}
	n = -1
	defer func() { err = errors.Join(err, permit.Complete(n, err)) }()
	return work()
}

// giveBack ends a permit that was not used.
func (p *Permit) giveBack() {
	p.cleanup.Stop()
	C.forebay_free(C.forebay_permit(p.handle.Swap(0)))
}

type outcome struct {
	permit *Permit
	err    error
}

// queue holds the events of all waiting requests of the process. A goroutine delivers them.
type queue struct {
	events  C.forebay_events
	mutex   sync.Mutex
	waiting map[C.forebay_waiting]chan outcome
}

var (
	running  atomic.Pointer[queue]
	starting sync.Mutex
)

// started returns the queue of the process. Where there is no descriptor left for it, the next one tries
// again.
func started() (*queue, error) {
	if q := running.Load(); q != nil {
		return q, nil
	}
	starting.Lock()
	defer starting.Unlock()
	if q := running.Load(); q != nil {
		return q, nil
	}
	q, err := newQueue()
	if err != nil {
		return nil, err
	}
	running.Store(q)
	return q, nil
}

func newQueue() (q *queue, err error) {
	q = &queue{waiting: make(map[C.forebay_waiting]chan outcome)}
	if err = call(func() C.int { return C.forebay_events_new(&q.events) }); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			C.forebay_free(q.events)
		}
	}()
	var fd C.int
	if err = call(func() C.int { return C.forebay_events_fd(q.events, &fd) }); err != nil {
		return q, err
	}
	// os.File closes its descriptor, so it gets a duplicate.
	own, err := syscall.Dup(int(fd))
	if err != nil {
		return q, os.NewSyscallError("dup", err)
	}
	syscall.CloseOnExec(own)
	file := os.NewFile(uintptr(own), "forebay events")
	conn, err := file.SyscallConn()
	if err != nil {
		return q, err
	}
	go func() {
		defer runtime.KeepAlive(file)
		// All events are taken each time that the descriptor becomes readable.
		_ = conn.Read(func(uintptr) bool {
			for q.next() {
			}
			return false
		})
	}()
	return q, nil
}

func (q *queue) ask(c *Class, op Op, length int) (C.struct_asked, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	asked := C.forebay_go_ask(c.handle, C.int(op), C.uint64_t(length), q.events)
	runtime.KeepAlive(c)
	if asked.code < 0 {
		return asked, lastError(asked.code)
	}
	return asked, nil
}

// next delivers the outcome of one request. It returns false if there is none.
func (q *queue) next() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	event := C.forebay_go_next(q.events)
	if event.waiting == 0 {
		return false
	}
	var got outcome
	if event.code == C.FOREBAY_OK {
		got.permit = newPermit(event.permit)
	} else {
		got.err = lastError(event.code)
	}
	q.outcomes(event.waiting) <- got
	return true
}

// outcomes returns the channel for the outcome of a request. The event may come before Admit asks for it.
func (q *queue) outcomes(waiting C.forebay_waiting) chan outcome {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	outcomes := q.waiting[waiting]
	if outcomes == nil {
		outcomes = make(chan outcome, 1)
		q.waiting[waiting] = outcomes
	}
	return outcomes
}

func (q *queue) forget(waiting C.forebay_waiting) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	delete(q.waiting, waiting)
}
