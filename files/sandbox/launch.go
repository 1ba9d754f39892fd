package sandbox

import "time"

// exitUnconfined is the exit code of Launch if it did not start the program.
const exitUnconfined = 125

// maxFileBytes is the size limit of a file that a program writes.
const maxFileBytes = 512 << 20

// launch is the argument of Launch.
type launch struct {
	Command     []string      `json:"command"`
	Scratch     string        `json:"scratch"`
	Inside      string        `json:"inside"` // Scratch.Inside
	Parent      int           `json:"parent"` // the process of the server
	MemoryBytes int64         `json:"memory_bytes"`
	CPU         time.Duration `json:"cpu"`
}
