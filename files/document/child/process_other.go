//go:build !linux

package child

import (
	"syscall"
	"time"
)

// attributes keep a terminal's signals away. No signal tells the child of its parent's death: it ends at its own bounds.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// limitProcess leaves the bounds to the process itself and to its parent.
func limitProcess(int64, time.Duration) {}
