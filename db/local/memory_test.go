package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/loci-memory/loci/db/local"
)

func TestBuffersFitTheMemory(t *testing.T) {
	t.Parallel()
	const meminfo = "MemFree:  1024 kB\nMemTotal:       16777216 kB\nSwapTotal: 5 kB\n"
	for _, tt := range []struct {
		name, meminfo, limit string
		want                 int64
	}{
		{"an eighth of the machine's memory", "MemTotal: 4194304 kB\n", "", 512 << 20},
		{"at most a gibibyte", meminfo, "", 1 << 30},
		{"an eighth of a control group's limit", meminfo, "2147483648\n", 256 << 20},
		{"a control group may have no limit", meminfo, "max\n", 1 << 30},
		{"a limit above the memory is none", meminfo, "99999999999999\n", 1 << 30},
		{"at least 128 MiB", "MemTotal: 1024 kB\n", "", 128 << 20},
		{"128 MiB where nothing says how much there is", "", "", 128 << 20},
	} {
		root := t.TempDir()
		for path, text := range map[string]string{"proc/meminfo": tt.meminfo, "sys/fs/cgroup/memory.max": tt.limit} {
			if text == "" {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(root, path), text, 0o644)
		}
		if got := local.SharedBuffersOf(root); got != tt.want {
			t.Errorf("%s: %d bytes of buffers with meminfo %q and limit %q, want %d", tt.name, got, tt.meminfo, tt.limit,
				tt.want)
		}
	}
}
