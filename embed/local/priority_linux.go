package local

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// leastPriority is the niceness of a thread that runs when others leave a processor idle.
const leastPriority = 19

// giveWay lets the rest of the calling goroutine run on a thread of least priority, which ends with it. A thread's
// priority cannot be raised again without privileges.
func giveWay() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), leastPriority) // without it, the work is only less polite
}
