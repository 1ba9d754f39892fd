package sandbox

import "golang.org/x/sys/unix"

// archCalls are the calls of programCalls that have another name on this architecture.
func archCalls() []uint32 { return []uint32{unix.SYS_NEWFSTATAT} }
