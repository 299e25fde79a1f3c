package forebay

// #include <forebay.h>
//
// void forebayGoLog(void *context, int level, char *text, size_t len);
import "C"

import (
	"context"
	"log/slog"
	"sync/atomic"
	"unsafe"
)

var logger atomic.Pointer[slog.Logger]

// SetLog sets the logger for messages of all schedulers of the process, such as disks without an entry,
// unscheduled I/O and slow requests. Without a logger nothing is logged. nil removes it.
func SetLog(to *slog.Logger) error {
	logger.Store(to)
	var callback C.forebay_log_callback
	if to != nil {
		callback = C.forebay_log_callback(C.forebayGoLog)
	}
	return call(func() C.int { return C.forebay_set_log(callback, nil) })
}

//export forebayGoLog
func forebayGoLog(_ unsafe.Pointer, level C.int, text *C.char, length C.size_t) {
	at := slog.LevelInfo
	if level == C.FOREBAY_LOG_WARN {
		at = slog.LevelWarn
	}
	if to := logger.Load(); to != nil {
		to.Log(context.Background(), at, C.GoStringN(text, C.int(length)))
	}
}
