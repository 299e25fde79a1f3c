package forebay

// #include <forebay.h>
import "C"

import (
	"runtime"
	"syscall"
	"unsafe"
)

// Code is the kind of an error. It is an error itself, for errors.Is.
type Code int

// The codes are described in forebay.h.
const (
	ErrHandle    Code = C.FOREBAY_E_HANDLE
	ErrInvalid   Code = C.FOREBAY_E_INVALID
	ErrTimedOut  Code = C.FOREBAY_E_TIMED_OUT
	ErrNotFound  Code = C.FOREBAY_E_NOT_FOUND
	ErrExists    Code = C.FOREBAY_E_EXISTS
	ErrBusy      Code = C.FOREBAY_E_BUSY
	ErrRemoved   Code = C.FOREBAY_E_REMOVED
	ErrConfig    Code = C.FOREBAY_E_CONFIG
	ErrUnlisted  Code = C.FOREBAY_E_UNLISTED
	ErrSystem    Code = C.FOREBAY_E_SYSTEM
	ErrCancelled Code = C.FOREBAY_E_CANCELLED
	ErrVersion   Code = C.FOREBAY_E_VERSION
	ErrInternal  Code = C.FOREBAY_E_INTERNAL
)

// Error returns the name of the code, such as "FOREBAY_E_HANDLE".
func (c Code) Error() string { return C.GoString(C.forebay_code_name(C.int(c))) }

// Error is the error of a call. It wraps its code, and its errno if a system call failed.
type Error struct {
	Code    Code
	Errno   syscall.Errno
	Message string
}

func (e *Error) Error() string { return "forebay: " + e.Message }

// Unwrap returns the code and, if it is not 0, the errno.
func (e *Error) Unwrap() []error {
	if e.Errno == 0 {
		return []error{e.Code}
	}
	return []error{e.Code, e.Errno}
}

// lastError returns the last error of the thread. The thread that got the code has to call it.
func lastError(code C.int) error {
	var length C.size_t
	text := C.forebay_last_error(&length)
	return &Error{Code(code), syscall.Errno(C.forebay_last_errno()), C.GoStringN(text, C.int(length))}
}

// call makes a call that only returns a code. It stays on one thread, because messages belong to threads.
func call(work func() C.int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if code := work(); code != C.FOREBAY_OK {
		return lastError(code)
	}
	return nil
}

// object is a handle that is freed when nothing refers to it any more.
type object struct{ handle C.uint64_t }

func newObject(handle C.uint64_t) *object {
	o := &object{handle}
	runtime.AddCleanup(o, func(handle C.uint64_t) { C.forebay_free(handle) }, handle)
	return o
}

// call makes a call with the handle.
func (o *object) call(work func(handle C.uint64_t) C.int) error {
	defer runtime.KeepAlive(o)
	return call(func() C.int { return work(o.handle) })
}

// make makes an object by a call with the handle.
func (o *object) make(work func(handle C.uint64_t, made *C.uint64_t) C.int) (*object, error) {
	var made C.uint64_t
	if err := o.call(func(handle C.uint64_t) C.int { return work(handle, &made) }); err != nil {
		return nil, err
	}
	return newObject(made), nil
}

// str returns the pointer and the length of a string.
func str(s string) (*C.char, C.size_t) {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s))), C.size_t(len(s))
}
