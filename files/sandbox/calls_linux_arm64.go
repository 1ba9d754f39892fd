package sandbox

import "golang.org/x/sys/unix"

// archCalls are those of programCalls that this architecture names so.
func archCalls() []uint32 { return []uint32{unix.SYS_NEWFSTATAT} }
