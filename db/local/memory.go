package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Limits of a private Postgres' buffers. Postgres takes only the memory that it uses.
const (
	leastBuffers = 128 << 20
	mostBuffers  = 1 << 30
)

// sharedBuffers returns how many bytes Postgres should buffer: an eighth of the machine's memory, because the machine
// does other work, too. A vector index that does not fit is searched several times more slowly.
func sharedBuffers(memoryBytes int64) int64 {
	return min(max(memoryBytes/8, leastBuffers), mostBuffers)
}

// memory returns how many bytes of memory this process may use, according to the files below root: the machine's
// memory, or less if a control group limits it. It returns 0 if these files do not exist, as on macOS.
func memory(root string) (bytes int64) {
	if text, err := os.ReadFile(filepath.Join(root, "proc/meminfo")); err == nil {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
				kibibytes, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
				bytes = kibibytes << 10
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "sys/fs/cgroup/memory.max"))
	if err != nil {
		return bytes
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil { // "max" is no limit
		return bytes
	}
	if bytes == 0 {
		return limit
	}
	return min(bytes, limit)
}
