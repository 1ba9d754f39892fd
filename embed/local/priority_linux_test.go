package local_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/loci-memory/loci/embed/local"
)

// niceness returns the niceness of the calling goroutine's thread.
func niceness(t testing.TB) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	if err != nil {
		t.Error(err)
	}
	return 20 - raw // the system call returns 20 minus the niceness
}

func TestOnlyThreadsOfTheBackgroundGiveWay(t *testing.T) {
	t.Parallel()
	before := niceness(t)
	inBackground, elsewhere := make(chan int), make(chan int)
	for range 8 {
		go func() { local.GiveWay(); inBackground <- niceness(t) }()
		if got := <-inBackground; got != 19 {
			t.Errorf("in the background: got niceness %d, want 19", got)
		}
		go func() { elsewhere <- niceness(t) }()
		if got := <-elsewhere; got != before {
			t.Errorf("elsewhere: got niceness %d, want %d", got, before)
		}
	}
}
