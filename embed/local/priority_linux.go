package local

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// leastPriority is the niceness of a thread that runs when others leave a processor idle.
const leastPriority = 19

// giveWay runs the rest of the calling goroutine on a thread of least priority. The thread ends with the goroutine,
// because raising its priority again would need privileges.
func giveWay() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), leastPriority) // if this fails, the work only competes more
}
